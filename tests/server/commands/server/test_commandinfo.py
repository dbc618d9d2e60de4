from __future__ import annotations

import pytest

from server.commands.declare import command
from server.core.table import KeySpec, commands, every
from tests.conformance.reference import RealServer
from tests.server.command_info import described_by, described_by_penstock, recorded
from tests.support.direct import Direct, DirectClient


def bulks(*items: str) -> bytes:
    return b"*%d\r\n" % len(items) + b"".join(
        b"$%d\r\n%b\r\n" % (len(item), item.encode()) for item in items
    )


class TestInfo:
    def test_every_command_is_described_as_the_real_server_does(self) -> None:
        ours = described_by_penstock()
        for name, theirs in recorded().items():
            assert ours[name] == theirs, name

    def test_only_commands_that_are_newer_are_missing_in_the_record(self) -> None:
        assert sorted(described_by_penstock().keys() - recorded().keys()) == [
            "blmovem",
            "delex",
            "digest",
            "increx",
            "lmovem",
            "msetex",
            "penstock",
            "penstock|help",
            "penstock|history",
            "penstock|nack",
            "penstock|policy",
            "penstock|redrive",
            "penstock|stats",
            "sdiffcard",
            "sunioncard",
            "xackdel",
            "xcfgset",
            "xdelex",
            "xidmprecord",
            "xnack",
        ]

    def test_the_record_is_what_the_real_server_says(self, real_server: str) -> None:
        with RealServer(real_server) as real:
            described = described_by(real)
        assert recorded() == {name: described[name] for name in recorded()}

    def test_the_subcommands_of_a_container_are_an_array(self) -> None:
        client = Direct().client(resp3=True)
        reply = client.send("COMMAND", "INFO", "memory")
        assert reply is not None
        assert reply.startswith(
            b"*1\r\n*10\r\n$6\r\nmemory\r\n:-2\r\n~0\r\n:0\r\n:0\r\n:0\r\n~1\r\n+@slow\r\n"
            b"~0\r\n~0\r\n*6\r\n*10\r\n$12\r\nmemory|usage\r\n"
        )

    def test_without_names_it_is_command(self, client: DirectClient) -> None:
        assert client.send("COMMAND", "INFO") == client.send("COMMAND")

    def test_subcommands_are_not_counted(self, client: DirectClient) -> None:
        assert client.send("COMMAND", "COUNT") == b":%d\r\n" % len(commands())


class TestList:
    def test_all_names_subcommands_included(self, client: DirectClient) -> None:
        names = [entry.fullname for entry in every()]
        assert "xgroup|create" in names
        assert client.send("COMMAND", "LIST") == bulks(*names)

    @pytest.mark.parametrize("category", ["transaction", "TRANSACTION"])
    def test_by_category(self, client: DirectClient, category: str) -> None:
        assert client.send("COMMAND", "LIST", "filterby", "aclcat", category) == bulks(
            "multi", "discard", "watch", "unwatch", "exec"
        )


class TestGetKeys:
    @pytest.mark.parametrize(
        ("request_", "keys"),
        [
            ("get a", "a"),
            ("mset a 1 b 2", "a b"),
            ("mset a 1 b", "a b"),
            ("msetex 2 a 1 b 2 ex 9", "a b"),
            ("bitop and d a b", "d a b"),
            ("lcs a b len", "a b"),
            ("rename a b", "a b"),
            ("copy a b", "a b"),
            ("object encoding k", "k"),
            ("memory usage k", "k"),
            ("xgroup create k g $", "k"),
            ("xread streams a 0", "a"),
            ("xread streams a b 0", "a"),
            ("xread count 1 streams a b c 0 0", "a b"),
            ("xread count streams streams a 0", "streams"),
            ("xreadgroup group g c count 1 streams k j > >", "k j"),
            ("xreadgroup group streams c streams k >", "k"),
        ],
    )
    def test_keys_are_found(self, client: DirectClient, request_: str, keys: str) -> None:
        assert client.send("COMMAND", "GETKEYS", *request_.split()) == bulks(*keys.split())

    @pytest.mark.parametrize(
        ("request_", "flags"),
        [
            ("get k", "RO access"),
            ("getex k", "RW access update"),
            ("getdel k", "RW access delete"),
            ("set k v", "OW update"),
            ("set k v ex 10", "OW update"),
            ("set k get", "OW update"),
            ("set k v get", "RW access update"),
            ("bitfield k", "RO access"),
            ("bitfield k get u8 0 overflow sat GET u8 8", "RO access"),
            ("bitfield k get u8 0 incrby u8 0", "RW access update"),
            ("bitfield k foo", "RW access update"),
            ("delex k", "RM delete"),
            ("delex k ifeq v", "RW access delete"),
            ("xadd k * f v", "RW update"),
        ],
    )
    def test_flags_say_what_is_done(self, client: DirectClient, request_: str, flags: str) -> None:
        words = flags.split()
        listed = b"".join(b"+%b\r\n" % word.encode() for word in words)
        assert client.send("COMMAND", "GETKEYSANDFLAGS", *request_.split()) == (
            b"*1\r\n*2\r\n$1\r\nk\r\n*%d\r\n" % len(words) + listed
        )

    def test_channels_are_no_keys(self) -> None:
        assert not KeySpec("not_key").names_keys
        assert KeySpec("RO access").names_keys


class TestTheTable:
    def test_a_container_never_runs_itself(self, client: DirectClient) -> None:
        container = client.server.state.table[b"xgroup"]
        with pytest.raises(AssertionError, match="resolved to its subcommand"):
            container.handler(client.server.services, client.session, [b"XGROUP"])

    def test_a_command_is_defined_once(self) -> None:
        define = command("PING", since="1.0.0", summary="Again.")
        with pytest.raises(AssertionError, match="defined twice"):
            define(lambda server, session, args: None)
