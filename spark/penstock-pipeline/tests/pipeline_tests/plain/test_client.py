"""The client of the pipeline tools: replies, transactions and errors, without PySpark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from redis.exceptions import WatchError

from penstock_pipeline.client import AddressError, CommandRefused, RetryingClient, ServerFailed
from pyspark_redis_streams.settings import write_settings
from tests.migration.pretending import Pretender, refusing
from tests.support.answering import answering, with_reply
from tests.support.ports import free_port
from tests.support.process import ROOT
from tests.support.servers import PenstockThread

ENDLESS = b"$100000000\r\n" + b"x" * 2_000_000


def client_of(url: str, **options: str) -> RetryingClient:
    return RetryingClient(write_settings({"url": url, **options}).servers)


@pytest.fixture
def client() -> Iterator[RetryingClient]:
    with PenstockThread() as server, closing(client_of(server.url)) as connected:
        yield connected


def test_replies_are_raw(client: RetryingClient) -> None:
    assert client.call("XADD", "k", "1-1", "f", "v") == b"1-1"
    assert client.call("XRANGE", "k", "-", "+") == [[b"1-1", [b"f", b"v"]]]
    assert client.scan("*") == [b"k"]
    assert (client.info(b"k").length, client.info(b"none").length) == (1, 0)


def test_a_refused_command_is_told_and_others_are_answered(client: RetryingClient) -> None:
    client.call("SET", "text", "v")
    wrong = "WRONGTYPE Operation against a key holding the wrong kind of value"
    with pytest.raises(CommandRefused) as caught:
        client.call("XLEN", "text")
    assert str(caught.value) == f"{client.name} refuses: {wrong}"
    refused, length = client.try_all([("XLEN", "text"), ("XLEN", "k")])
    assert (str(refused), length) == (str(caught.value), 0)


@pytest.mark.parametrize("error", ["NOAUTH Authentication required.", "OOM not enough memory"])
def test_what_is_refused_for_every_key_is_a_failure_of_the_server(error: str) -> None:
    with (
        PenstockThread() as server,
        Pretender(server.port, refusing("XADD", error)) as proxy,
        closing(client_of(f"redis://127.0.0.1:{proxy.port}")) as client,
    ):
        text = f"^{client.name} refuses: {error}"
        with pytest.raises(ServerFailed, match=text):
            client.call("XADD", "k", "*", "f", "v")
        with pytest.raises(ServerFailed, match=text):
            client.try_all([("XADD", "k", "*", "f", "v")])


def test_a_server_that_is_not_there_is_named() -> None:
    where = f"127.0.0.1:{free_port()}"
    client = client_of(f"redis://:secret@{where}/3", retries="0")
    with closing(client), pytest.raises(ServerFailed) as caught:
        client.call("PING")
    assert str(caught.value) == f"{where}/3 can't be reached: Connection refused"


def test_a_cluster_that_goes_on_and_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock_pipeline.client.MOST_BYTES", 1_000_000)
    for answer in (with_reply(ENDLESS), lambda _: ENDLESS):
        with answering(answer) as url:
            client = client_of(url.replace("redis://", "redis+cluster://"), retries="0")
            with closing(client), pytest.raises(ServerFailed) as caught:
                client.call("PING")
        assert str(caught.value).endswith(" node: a reply of more than 1,000,000 bytes")


def test_wrong_settings_of_the_client_are_told() -> None:
    options = {"redis.socket_timeout": "soon"}
    client = client_of("redis://127.0.0.1", **options)
    with pytest.raises(AddressError, match=r"option 'redis.socket_timeout' is 'soon'"):
        client.call("PING")


def test_a_transaction_fails_if_a_watched_key_has_changed(client: RetryingClient) -> None:
    with client.transaction() as pipeline:
        pipeline.watch("k")
        client.call("SET", "k", "other")
        pipeline.multi()
        pipeline.execute_command("SET", "k", "mine")
        with pytest.raises(WatchError):
            pipeline.execute()
    assert client.call("GET", "k") == b"other"


def test_an_error_inside_a_transaction_names_the_server(client: RetryingClient) -> None:
    client.call("SET", "text", "v")
    with (  # noqa: PT012
        pytest.raises(CommandRefused, match=f"^{client.name} refuses: .*WRONGTYPE"),
        client.transaction() as pipeline,
    ):
        pipeline.execute_command("XLEN", "text")
        pipeline.execute()


def test_pyspark_is_not_needed() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import penstock_pipeline.client\n"
        "import pyspark_redis_streams\n"
        "try:\n"
        "    pyspark_redis_streams.DefaultSource\n"
        "except ModuleNotFoundError:\n"
        "    print('only the data source needs it')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("only the data source needs it\n", "")
