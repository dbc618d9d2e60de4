"""``redrive``: dead letters go back to where they are from, each once."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import redis

from penstock_pipeline.dead_letters import Letter, LetterChoice, redrive, unpack
from penstock_pipeline.servers import StreamClient, open_client
from pipeline_tests.commands import Command
from source_tests.conftest import PROGRAMS
from tests.support.cluster import real_cluster


def letter(stream: str, id: str, reason: str = "why", *fields: str) -> list[str]:
    heads = ["dead-letter-stream", stream, "dead-letter-id", id, "dead-letter-pipeline", "p"]
    return [*heads, "dead-letter-reason", reason, *(fields or ("a", "1", "a", id))]


@pytest.fixture
def client(server: redis.Redis) -> redis.Redis:
    """A client that leaves the replies to XRANGE alone."""
    server.response_callbacks.pop("XRANGE")
    return server


def fields_of(client: redis.Redis, key: str) -> list[list[bytes]]:
    reply: Any = client.execute_command("XRANGE", key, "-", "+")
    return [fields for _, fields in reply]


def bury(client: redis.Redis, *letters: list[str]) -> None:
    for fields in letters:
        client.execute_command("XADD", "dead", "*", *fields)


def test_a_letter_is_taken_apart_behind_its_reason() -> None:
    fields = [part.encode() for part in letter("s", "1-1", "why", "dead-letter-id", "x")]
    assert unpack(fields) == Letter(b"s", b"1-1", b"why", [b"dead-letter-id", b"x"])


@pytest.mark.parametrize(
    "fields",
    [
        [b"a", b"b"],
        [b"dead-letter-stream", b"s"],
        [b"dead-letter-reason", b"why", b"a", b"b"],
        [b"dead-letter-stream", b"s", b"dead-letter-reason", b"why"],
    ],
)
def test_other_entries_are_no_letters(fields: list[bytes]) -> None:
    assert unpack(fields) is None


def test_letters_go_back_to_their_streams(command: Command, client: redis.Redis, url: str) -> None:
    bury(client, letter("s", "1-1"), letter("t", "2-1"), letter("s", "3-1"))
    client.xadd("dead", {"no": "letter"})
    lines = command.out("redrive", "--url", url, "--dead-letters", "dead")
    assert lines == ["s: 2 sent", "t: 1 sent", "dead: 3 sent, 1 there"]
    assert fields_of(client, "s") == [[b"a", b"1", b"a", b"1-1"], [b"a", b"1", b"a", b"3-1"]]
    assert fields_of(client, "t") == [[b"a", b"1", b"a", b"2-1"]]
    assert fields_of(client, "dead") == [[b"no", b"letter"]]


def test_letters_may_be_chosen(command: Command, client: redis.Redis, url: str) -> None:
    bury(client, letter("s", "1-1", "too hot"), letter("t", "2-1", "too hot"), letter("s", "3-1"))
    base = ("redrive", "--url", url, "--dead-letters", "dead")
    assert command.out(*base, "--stream", "s", "--reason", "hot", "--dry-run") == [
        "s: 1 would be sent",
        "dead: 1 would be sent, 3 there",
    ]
    assert client.exists("s") == 0
    assert command.out(*base, "--reason", "hot", "--to", "u", "--limit", "1") == [
        "u: 1 sent",
        "dead: 1 sent, 2 there",
    ]
    assert fields_of(client, "u") == [[b"a", b"1", b"a", b"1-1"]]


def test_more_letters_than_one_transaction_holds(
    command: Command, client: redis.Redis, url: str
) -> None:
    bury(client, *(letter("s", f"{n}-1") for n in range(1, 1002)))
    lines = command.out("redrive", "--url", url, "--dead-letters", "dead")
    assert lines == ["s: 1,001 sent", "dead: 1,001 sent, 0 there"]
    assert [fields[3] for fields in fields_of(client, "s")] == [b"%d-1" % n for n in range(1, 1002)]


def test_letters_back_to_the_stream_of_letters_are_sent_once(
    command: Command, client: redis.Redis, url: str
) -> None:
    bury(client, letter("dead", "1-1", "why", *letter("s", "2-1")))
    lines = command.out("redrive", "--url", url, "--dead-letters", "dead")
    assert lines == ["dead: 1 sent", "dead: 1 sent, 1 there"]


def test_a_letter_that_another_has_sent_is_left_out(
    client: redis.Redis, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    import penstock_pipeline.dead_letters as module

    bury(client, letter("s", "1-1"), letter("s", "2-1"))
    original = module._send_together
    calls: list[int] = []

    def with_a_rival(connected: Any, key: bytes, choice: LetterChoice, portion: Any) -> Any:
        if not calls:
            calls.append(1)
            client.xdel("dead", portion[0][0])
        return original(connected, key, choice, portion)

    monkeypatch.setattr(module, "_send_together", with_a_rival)
    with open_client(None, url, []) as connected:
        assert redrive(connected, b"dead", LetterChoice(), False, Console(quiet=True)) == 1
    assert fields_of(client, "s") == [[b"a", b"1", b"a", b"2-1"]]


def test_a_target_that_is_no_stream_is_told_and_the_letter_stays(
    command: Command, client: redis.Redis, url: str
) -> None:
    bury(client, letter("s", "1-1"))
    client.set("s", "text")
    message = command.error("redrive", "--url", url, "--dead-letters", "dead")
    assert message == "'s' is no stream but a string"
    assert len(fields_of(client, "dead")) == 1


def test_what_is_missing_is_told(command: Command, url: str) -> None:
    assert command.error("redrive", "--url", url) == (
        "no dead letters are named: give --dead-letters or --file"
    )
    assert command.error("redrive", "--url", "${NOBODY}", "--dead-letters", "d") == (
        "the environment variable NOBODY is not set"
    )
    assert command.error("redrive", "--option", "retries", "--dead-letters", "d") == (
        "--option is 'retries'; allowed: NAME=VALUE"
    )
    unreachable = ("--url", "redis://:secret@127.0.0.1:1", "--option", "retries=0")
    message = command.error("redrive", *unreachable, "--dead-letters", "d")
    assert message.startswith("127.0.0.1:1/0 can't be reached: ")
    assert "secret" not in message


def test_in_a_cluster_a_letter_is_sent_once_though_the_command_is_killed_before_it_is_removed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = next(filter(None, PROGRAMS.values()), None)
    if program is None:
        pytest.skip("no real server (see PENSTOCK_REFERENCE_SERVERS)")
    call = StreamClient.call

    def killed(client: StreamClient, *words: Any) -> Any:
        return sys.exit("killed") if words[0] == "XDEL" else call(client, *words)

    with real_cluster(program) as nodes:
        node = redis.cluster.ClusterNode("127.0.0.1", nodes[0].port)
        again = ("redrive", "--url", f"redis+cluster://127.0.0.1:{nodes[0].port}")
        with redis.RedisCluster(startup_nodes=[node]) as client:
            for fields in (letter("s", "1-1"), letter("t", "2-1")):
                client.execute_command("XADD", "dead", "*", *fields)
            with monkeypatch.context() as crash:
                crash.setattr(StreamClient, "call", killed)
                with pytest.raises(SystemExit):
                    command.out(*again, "--dead-letters", "dead")
            assert [client.xlen(key) for key in ("s", "t", "dead")] == [1, 0, 2]
            lines = command.out(*again, "--dead-letters", "dead")
            assert lines == ["s: 1 sent", "t: 1 sent", "dead: 2 sent, 0 there"]
            assert [client.xlen(key) for key in ("s", "t")] == [1, 1]
