"""What is found out by asking the servers, before Spark is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing import Penstock
from penstock_pipeline.errors import PipelineError
from penstock_pipeline.servers import look_at_servers, preflight
from pipeline_tests.plain.files import Command, pipeline, text, write
from tests.support.certificates import Certificates
from tests.support.ports import free_port
from tests.support.servers import PenstockThread


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No server is asked again where that is in vain: the client pauses before it does that."""
    paused: list[float] = []
    monkeypatch.setattr("redis.retry.sleep", paused.append)
    yield
    assert paused == []


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Certificates]]:
    """A server that speaks TLS on its only port, and its certificates."""
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    port = free_port()
    settings = certificates.settings(tls_port=port, tls_auth_clients="no")
    with PenstockThread(**settings):
        yield port, certificates


def refused(folder: Path, url: str, source: str = "") -> str:
    with pytest.raises(PipelineError) as caught:
        preflight(pipeline(folder, url, source))
    return str(caught.value)


def test_a_stream_that_is_there_is_no_reason_to_warn(penstock: Penstock, tmp_path: Path) -> None:
    penstock.client.xadd("orders", {"a": 1})
    assert preflight(pipeline(tmp_path, penstock.url, 'subscribe_pattern = "ord*"')) == []


def test_streams_that_are_not_there_are_warnings(penstock: Penstock, tmp_path: Path) -> None:
    found = preflight(pipeline(tmp_path, penstock.url, 'subscribe_pattern = "x*"'))
    place = f"127.0.0.1:{penstock.port}/0"
    assert found == [
        f"stream 'orders' is not on {place}: nothing is read until it is created",
        f"no stream on {place} matches 'x*' yet",
    ]


def test_a_key_that_is_no_stream_is_refused(penstock: Penstock, tmp_path: Path) -> None:
    penstock.client.set("orders", "text")
    assert "WRONGTYPE" in refused(tmp_path, penstock.url)


def test_a_server_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    said = refused(tmp_path, f"redis://:hush@127.0.0.1:{free_port()}", "retries = 0")
    assert "can't be reached: Connection refused" in said
    assert "hush" not in said


def test_a_wrong_password_is_told_without_it(tmp_path: Path) -> None:
    with PenstockThread(requirepass="right") as server:
        said = refused(tmp_path, f"redis://:hush@127.0.0.1:{server.port}")
        assert "refuses: WRONGPASS" in said
        assert "check the credentials" in said
        assert "hush" not in said
        assert "NOAUTH" in refused(tmp_path, server.url)


def test_a_user_who_may_only_read_the_streams_is_let_in(tmp_path: Path) -> None:
    with PenstockThread() as server:
        users = "SETUSER u on >p ~orders resetchannels -@all +xinfo +xrange"
        import redis

        with redis.Redis(port=server.port) as client:
            client.execute_command("ACL", *users.split())
            client.xadd("orders", {"a": 1})
        assert preflight(pipeline(tmp_path, f"redis://u:p@127.0.0.1:{server.port}")) == []


def test_tls_to_a_port_without_it_is_told_at_once(penstock: Penstock, tmp_path: Path) -> None:
    said = refused(tmp_path, f"rediss://127.0.0.1:{penstock.port}")
    assert "answers without TLS: write redis:// in place of rediss://" in said


def test_a_port_that_speaks_tls_is_told_to_a_client_that_does_not(
    tls: tuple[int, Certificates], tmp_path: Path
) -> None:
    said = refused(tmp_path, f"redis://127.0.0.1:{tls[0]}", "retries = 0")
    assert "speaks TLS only: write rediss:// in place of redis://" in said


def test_a_certificate_that_nobody_vouches_for_is_told(
    tls: tuple[int, Certificates], tmp_path: Path
) -> None:
    said = refused(tmp_path, f"rediss://127.0.0.1:{tls[0]}")
    assert "TLS fails: " in said
    assert "certificate verify failed" in said


def test_tls_with_the_right_authority_is_fine(
    tls: tuple[int, Certificates], tmp_path: Path
) -> None:
    port, certificates = tls
    source = f'redis.ssl_ca_certs = "{certificates.authority}"'
    assert len(preflight(pipeline(tmp_path, f"rediss://127.0.0.1:{port}", source))) == 1


def test_the_servers_are_described(penstock: Penstock, tmp_path: Path, command: Command) -> None:
    penstock.client.xadd("orders", {"a": 1}, id="1700000000000-0")
    penstock.client.xadd("orders", {"a": 2}, id="1700000060000-0")
    penstock.client.xgroup_create("orders", "workers", "1700000000000-0")
    file = write(tmp_path, text(penstock.url, 'subscribe_pattern = "o*"'))
    status, out, err = command("validate", "--connect", file)
    assert (status, err) == (0, "")
    title, version, *lines = out.splitlines()
    assert title == f"127.0.0.1:{penstock.port}/0 (source)"
    assert version.startswith("  answers: Penstock ")
    assert lines == [
        "  stream 'orders': 2 entries, from 2023-11-14 22:13:20 to 2023-11-14 22:14:20",
        "    groups: workers (lag 1, 0 pending)",
        "  1 stream matches 'o*'",
        f"{file}: no problems",
    ]


def test_what_is_needed_and_missing_ends_in_status_1(
    penstock: Penstock, tmp_path: Path, command: Command
) -> None:
    file = write(tmp_path, text(penstock.url))
    status, out, err = command("validate", "--connect", file)
    assert status == 1
    assert out.splitlines()[-1] == "  stream 'orders' is not there"
    assert err == f"{file}: 1 problem on the servers\n"


def test_a_group_to_go_on_from_has_to_be_there(penstock: Penstock, tmp_path: Path) -> None:
    penstock.client.xadd("orders", {"a": 1})
    source = 'group_id = "g"\nstarting_offsets = "group"'
    found = look_at_servers(pipeline(tmp_path, penstock.url, source))
    assert found.problems == [
        "group 'g.table', from whose position the pipeline is to begin, is not there"
    ]
    penstock.client.xgroup_create("orders", "g.table", "0")
    assert look_at_servers(pipeline(tmp_path, penstock.url, source)).problems == []


def test_each_server_is_asked_once_and_one_that_is_away_does_not_hide_another(
    penstock: Penstock, tmp_path: Path
) -> None:
    penstock.client.xadd("orders", {"a": 1})
    away = f"redis://127.0.0.1:{free_port()}"
    sinks = "".join(
        f'[[sink]]\nname = "{name}"\ntype = "stream"\nstream = "{name}"\n{more}\n'
        for name, more in (("same", ""), ("other", f'url = "{away}"\nretries = 0'))
    )
    found = look_at_servers(pipeline(tmp_path, penstock.url, more=sinks))
    titles = [line for line in found.lines if not line.startswith(" ")]
    assert titles == [
        f"127.0.0.1:{penstock.port}/0 (source, sink same)",
        f"{away.removeprefix('redis://')}/0 (sink other)",
    ]
    assert len(found.problems) == 1
    assert "can't be reached: Connection refused" in found.problems[0]
