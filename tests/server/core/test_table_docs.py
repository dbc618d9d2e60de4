from __future__ import annotations

from collections.abc import Iterator

import pexpect
import pytest

from server.commands.server.commandinfo import documentation
from server.core.table import commands, every
from tests.support.direct import Direct, DirectClient, parsed
from tests.support.process import end
from tests.support.servers import PenstockThread

PING_2 = (
    b"$4\r\nping\r\n*10\r\n$7\r\nsummary\r\n$30\r\nShows that the server answers.\r\n"
    b"$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n"
    b"$10\r\ncomplexity\r\n$4\r\nO(1)\r\n$9\r\narguments\r\n*1\r\n*8\r\n$4\r\nname\r\n$7\r\nmessage"
    b"\r\n$4\r\ntype\r\n$6\r\nstring\r\n$12\r\ndisplay_text\r\n$7\r\nmessage\r\n"
    b"$5\r\nflags\r\n*1\r\n+optional\r\n"
)


def test_a_command_is_documented(client: DirectClient) -> None:
    assert client.send("COMMAND", "DOCS", "PING") == b"*2\r\n" + PING_2


def test_names_that_do_not_exist_are_left_out(client: DirectClient) -> None:
    assert client.send("COMMAND", "DOCS", "nope", "ping", "get|x") == b"*2\r\n" + PING_2
    assert client.send("COMMAND", "DOCS", "nope") == b"*0\r\n"


def test_resp3_gets_maps_and_sets() -> None:
    client = Direct().client(resp3=True)
    assert client.send("COMMAND", "DOCS", "quit") == (
        b"%1\r\n$4\r\nquit\r\n%7\r\n$7\r\nsummary\r\n$22\r\nCloses the connection.\r\n"
        b"$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n"
        b"$10\r\ncomplexity\r\n$4\r\nO(1)\r\n$9\r\ndoc_flags\r\n~1\r\n+deprecated\r\n"
        b"$16\r\ndeprecated_since\r\n$5\r\n7.2.0\r\n"
        b"$11\r\nreplaced_by\r\n$27\r\njust closing the connection\r\n"
    )


def test_history_comes_before_arguments() -> None:
    client = Direct().client(resp3=True)
    assert client.send("COMMAND", "DOCS", "client|pause") == (
        b"%1\r\n$12\r\nclient|pause\r\n%6\r\n$7\r\nsummary\r\n"
        b"$65\r\nHolds commands back for a while, all of them or those that write.\r\n"
        b"$5\r\nsince\r\n$5\r\n3.0.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n"
        b"$10\r\ncomplexity\r\n$4\r\nO(1)\r\n"
        b"$7\r\nhistory\r\n~1\r\n*2\r\n$5\r\n6.2.0\r\n$28\r\nThe modes `WRITE` and `ALL`.\r\n"
        b"$9\r\narguments\r\n*2\r\n"
        b"%3\r\n$4\r\nname\r\n$7\r\ntimeout\r\n$4\r\ntype\r\n$7\r\ninteger\r\n"
        b"$12\r\ndisplay_text\r\n$7\r\ntimeout\r\n"
        b"%4\r\n$4\r\nname\r\n$12\r\nwrite-or-all\r\n$4\r\ntype\r\n$5\r\noneof\r\n"
        b"$5\r\nflags\r\n~1\r\n+optional\r\n$9\r\narguments\r\n*2\r\n"
        b"%4\r\n$4\r\nname\r\n$5\r\nwrite\r\n$4\r\ntype\r\n$10\r\npure-token\r\n"
        b"$12\r\ndisplay_text\r\n$5\r\nwrite\r\n$5\r\ntoken\r\n$5\r\nWRITE\r\n"
        b"%4\r\n$4\r\nname\r\n$3\r\nall\r\n$4\r\ntype\r\n$10\r\npure-token\r\n"
        b"$12\r\ndisplay_text\r\n$3\r\nall\r\n$5\r\ntoken\r\n$3\r\nALL\r\n"
    )


def test_keys_name_their_key_specification(client: DirectClient) -> None:
    reply = client.send("COMMAND", "DOCS", "rename")
    assert reply is not None
    assert b"$3\r\nkey\r\n$14\r\nkey_spec_index\r\n:0\r\n" in reply
    assert b"$6\r\nnewkey\r\n$14\r\nkey_spec_index\r\n:1\r\n" in reply


def test_repeated_keys_share_a_key_specification(client: DirectClient) -> None:
    reply = client.send("COMMAND", "DOCS", "mset")
    assert reply is not None
    assert reply.count(b"key_spec_index\r\n:0\r\n") == 1
    assert b"$5\r\nflags\r\n*1\r\n+multiple\r\n" in reply


def test_subcommands_are_part_of_their_container(client: DirectClient) -> None:
    reply = client.send("COMMAND", "DOCS", "xgroup")
    assert reply is not None
    assert b"$11\r\nsubcommands\r\n*12\r\n$13\r\nxgroup|create\r\n" in reply


def test_an_unknown_complexity_is_left_out(
    client: DirectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = client.server.state.table[b"ping"]
    monkeypatch.setattr(entry.about, "complexity", "")  # All servers share it.
    assert "complexity" not in [name for name, _ in documentation(entry).pairs]


def test_every_command_says_what_it_does_since_when_and_at_what_cost(
    client: DirectClient,
) -> None:
    for entry in every(client.server.state.table):
        assert entry.about.summary.endswith("."), entry.name
        assert entry.about.summary[0].isupper(), entry.name
        assert entry.about.since.count(".") == 2, entry.name
    everything = client.send("COMMAND", "DOCS")
    assert everything is not None
    names = len(commands(client.server.state.table))
    assert everything.startswith(b"*%d\r\n" % (2 * names))


def test_what_only_penstock_has_is_there_since_a_version_of_penstock() -> None:
    resp3 = Direct().client(resp3=True)
    docs = parsed(resp3.send("COMMAND", "DOCS", "penstock"), "utf-8")["penstock"]
    assert (docs["since"], docs["group"]) == ("0.1.0", "stream")
    assert {each["since"] for each in docs["subcommands"].values()} == {"0.1.0"}
    [choice] = docs["subcommands"]["penstock|policy"]["arguments"]
    tokens = [each["arguments"][0]["token"] for each in choice["arguments"]]
    assert tokens == ["SET", "GET", "DEL"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
class TestRedisCli:
    @pytest.fixture
    def cli(self, penstock: PenstockThread) -> Iterator[pexpect.spawn]:
        if pexpect.which("redis-cli") is None:
            pytest.skip("no redis-cli on PATH")
        cli = pexpect.spawn(
            f"redis-cli -p {penstock.port}", dimensions=(40, 250), timeout=10, encoding="utf-8"
        )
        cli.expect_exact(f"127.0.0.1:{penstock.port}> ")
        yield cli
        end(cli)

    @pytest.mark.parametrize(
        ("typed", "hint"),
        [
            ("xlen ", "key"),
            ("xgroup create ", "key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]"),
            ("client pause ", "timeout [WRITE|ALL]"),
            ("mset a ", "value [key value ...]"),
            ("xdel k ", "id [id ...]"),
        ],
    )
    def test_it_hints_at_the_arguments_to_come(
        self, cli: pexpect.spawn, typed: str, hint: str
    ) -> None:
        cli.send(typed)
        cli.expect_exact(f"> {typed}\x1b[0;90;49m{hint}\x1b[0m")
