from __future__ import annotations

import pytest

from server.commands.declare import command
from server.road.table import KeySpec, commands, every
from tests.conformance.reference import RealServer
from tests.server.command_info import described_by, described_by_penstock, recorded
from tests.support.direct import Direct, DirectClient

GET_2 = (
    b"*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
    b"*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access"
    b"\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex"
    b"\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\n"
    b"lastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n"
)
XREADGROUP_3 = (
    b"*10\r\n$10\r\nxreadgroup\r\n:-7\r\n~3\r\n+write\r\n+blocking\r\n+movablekeys\r\n:0\r\n:0\r\n"
    b":0\r\n~4\r\n+@write\r\n+@stream\r\n+@slow\r\n+@blocking\r\n~0\r\n~1\r\n%3\r\n$5\r\nflags\r\n"
    b"~2\r\n+RO\r\n+access\r\n$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$7\r\nkeyword\r\n$4\r\n"
    b"spec\r\n%2\r\n$7\r\nkeyword\r\n$7\r\nSTREAMS\r\n$9\r\nstartfrom\r\n:4\r\n$9\r\nfind_keys\r\n"
    b"%2\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n%3\r\n$7\r\nlastkey\r\n:-1\r\n$7\r\nkeystep"
    b"\r\n:1\r\n$5\r\nlimit\r\n:2\r\n~0\r\n"
)
NO_KEYS = b"-ERR The command has no key arguments\r\n"
NOT_A_COMMAND = b"-ERR Invalid command specified\r\n"
WRONG_ARITY = b"-ERR Invalid number of arguments specified for command\r\n"
NOT_EXTRACTABLE = b"-ERR Invalid arguments specified for command\r\n"
SYNTAX = b"-ERR syntax error\r\n"


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
            "delex",
            "digest",
            "increx",
            "msetex",
            "penstock",
            "penstock|help",
            "penstock|history",
            "penstock|nack",
            "penstock|policy",
            "penstock|redrive",
            "penstock|stats",
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

    def test_the_shape_in_resp2(self, client: DirectClient) -> None:
        assert client.send("COMMAND", "INFO", "GET") == b"*1\r\n" + GET_2

    def test_the_shape_in_resp3(self) -> None:
        client = Direct().client(resp3=True)
        assert client.send("COMMAND", "INFO", "xreadgroup") == b"*1\r\n" + XREADGROUP_3

    def test_what_does_not_exist_is_null(self, client: DirectClient) -> None:
        names = ["nope", "get", "get|x", "xgroup|nope", "client list", ""]
        nulls = b"$-1\r\n" * 4
        assert client.send("COMMAND", "INFO", *names) == (b"*6\r\n$-1\r\n" + GET_2 + nulls)

    def test_subcommands_are_found_by_their_full_name(self, client: DirectClient) -> None:
        assert client.send("COMMAND", "INFO", "CLIENT|LIST") == (
            b"*1\r\n*10\r\n$11\r\nclient|list\r\n:-2\r\n*4\r\n+admin\r\n+noscript\r\n+loading\r\n"
            b"+stale\r\n:0\r\n:0\r\n:0\r\n*4\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n+@connection"
            b"\r\n*1\r\n$23\r\nnondeterministic_output\r\n*0\r\n*0\r\n"
        )

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

    @pytest.mark.parametrize("pattern", ["xinfo*", "XINFO*"])
    def test_by_pattern_subcommands_included(self, client: DirectClient, pattern: str) -> None:
        assert client.send("COMMAND", "LIST", "FILTERBY", "PATTERN", pattern) == bulks(
            "xinfo", "xinfo|stream", "xinfo|groups", "xinfo|consumers", "xinfo|help"
        )

    @pytest.mark.parametrize("category", ["transaction", "TRANSACTION"])
    def test_by_category(self, client: DirectClient, category: str) -> None:
        assert client.send("COMMAND", "LIST", "filterby", "aclcat", category) == bulks(
            "multi", "discard", "watch", "unwatch", "exec"
        )

    @pytest.mark.parametrize(
        ("kind", "name"), [("ACLCAT", "nope"), ("ACLCAT", "@read"), ("MODULE", "json")]
    )
    def test_nothing_passes(self, client: DirectClient, kind: str, name: str) -> None:
        assert client.send("COMMAND", "LIST", "FILTERBY", kind, name) == b"*0\r\n"

    @pytest.mark.parametrize(
        "words",
        [
            ["FOO"],
            ["FILTERBY"],
            ["FILTERBY", "PATTERN"],
            ["FILTERBY", "FOO", "x"],
            ["FILTERBY", "PATTERN", "x", "y"],
            ["FOO", "PATTERN", "x"],
        ],
    )
    def test_bad_filters(self, client: DirectClient, words: list[str]) -> None:
        assert client.send("COMMAND", "LIST", *words) == SYNTAX


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
        ("request_", "reply"),
        [
            ("nope", NOT_A_COMMAND),
            ("xgroup foo", NOT_A_COMMAND),
            ("xgroup", NO_KEYS),
            ("xgroup help", NO_KEYS),
            ("ping a b c", NO_KEYS),
            ("exec", NO_KEYS),
            ("get", WRONG_ARITY),
            ("get a b", WRONG_ARITY),
            ("xread streams", WRONG_ARITY),
            ("xread count 1 foo", NOT_EXTRACTABLE),
        ],
    )
    def test_there_are_none(self, client: DirectClient, request_: str, reply: bytes) -> None:
        for subcommand in ("GETKEYS", "GETKEYSANDFLAGS"):
            assert client.send("COMMAND", subcommand, *request_.split()) == reply

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

    def test_each_key_has_its_own_flags(self) -> None:
        client = Direct().client(resp3=True)
        assert client.send("COMMAND", "GETKEYSANDFLAGS", "copy", "a", "b") == (
            b"*2\r\n*2\r\n$1\r\na\r\n~2\r\n+RO\r\n+access\r\n"
            b"*2\r\n$1\r\nb\r\n~2\r\n+OW\r\n+update\r\n"
        )

    def test_channels_are_no_keys(self) -> None:
        assert not KeySpec("not_key").names_keys
        assert KeySpec("RO access").names_keys


class TestTheRest:
    def test_unknown_subcommands(self, client: DirectClient) -> None:
        assert client.send("COMMAND", "FOO") == (
            b"-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n"
        )
        assert client.send("COMMAND", "COUNT", "x") == (
            b"-ERR wrong number of arguments for 'command|count' command\r\n"
        )


class TestTheTable:
    def test_a_container_never_runs_itself(self, client: DirectClient) -> None:
        container = client.server.state.table[b"xgroup"]
        with pytest.raises(AssertionError, match="resolved to its subcommand"):
            container.handler(client.server.services, client.session, [b"XGROUP"])

    def test_a_command_is_defined_once(self) -> None:
        define = command("PING", since="1.0.0", summary="Again.")
        with pytest.raises(AssertionError, match="defined twice"):
            define(lambda server, session, args: None)
