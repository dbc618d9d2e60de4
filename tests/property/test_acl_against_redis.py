"""Random rules: what a user is then, and what it may do, must be what a real server says."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis.stateful import RuleBasedStateMachine, rule
from hypothesis.strategies import SearchStrategy, builds, just, lists, one_of, sampled_from

from server.acl.rules import ABSENT
from tests.conformance.reference import RealServer
from tests.property.stream_commands import Words
from tests.property.test_streams_against_redis import RealClient, run
from tests.support.direct import Direct, parsed
from tests.support.examples import scaled

COMMANDS: Final = [
    "get",
    "set",
    "del",
    "mget",
    "mset",
    "copy",
    "rename",
    "exists",
    "type",
    "select",
    "publish",
    "psubscribe",
    "subscribe",
    "spublish",
    "ping",
    "echo",
    "xadd",
    "xread",
    "xreadgroup",
    "xgroup",
    "xgroup|create",
    "xgroup|destroy",
    "xinfo",
    "xinfo|stream",
    "eval",
    "eval_ro",
    "config",
    "config|get",
    "client|id",
    "object|encoding",
    "command",
    "command|docs",
    "bitfield",
    "bitop",
    "flushall",
    "hello",
    "nocmd",
    "hset",
    "hset|a",
    "vadd",
    "module",
    "module|load",
    "module|load|a",
    "xgroup|nosub",
    "xgroup|create|x",
    "get|",
    "|get",
]

CATEGORIES: Final = [
    "all",
    "read",
    "write",
    "stream",
    "string",
    "hash",
    "keyspace",
    "fast",
    "slow",
    "dangerous",
    "connection",
    "no",
]

REQUESTS: Final = [
    request.split()
    for request in """\
get a
GET ab
set a 1
set b 1 GET
set a 1 XX get EX 10
set get 1
del a b
mget a ab b
mset a 1 b 2
mset a 1 b
copy a b
rename ab b
exists a b
select 0
select 1
publish c1 m
publish d m
psubscribe c* d
psubscribe d*
subscribe c1 d
ssubscribe c1
spublish d m
ping
echo a
xadd a * f v
xread streams a b 0 0
xread block 0 streams a b 0
xread count 1 streams ab $
xreadgroup group g streams streams a >
xreadgroup group streams a streams ab >
xgroup create a g 0
xgroup destroy b g
xgroup help
xinfo stream a
eval x 1 a
eval x 2 a b
eval x 0 a
eval x 3 a
eval_ro x 1 ab
config get port
client id
object encoding b
command docs
command
bitfield a get u8 0
bitfield a overflow sat set u8 0 1
bitop and a b ab
flushall
hello 3
auth x
get
xgroup create a
nocmd
xgroup nosub
""".splitlines()
]


def _command_rules() -> SearchStrategy[str]:
    names = one_of(
        sampled_from(COMMANDS),
        sampled_from(COMMANDS).map(str.upper),
        sampled_from(["select|0", "select|1", "GET|a", "xadd|A", "bitop|and", "xgroup|create|a"]),
        sampled_from(CATEGORIES).map("@{}".format),
        sampled_from(CATEGORIES).map("@{}".format).map(str.upper),
    )
    return builds("{}{}".format, sampled_from("+-"), names)


PATTERNS: Final = ["a", "b", "a*", "*b", "*", "", "[ab]", "a?", "c*", "c1", "d", "\\*"]

SELECTOR_RULES: Final = one_of(
    _command_rules(),
    _command_rules(),
    builds(
        "{}{}".format,
        sampled_from(["~", "~", "%R~", "%W~", "%RW~", "%r~", "%~", "%X~", "%R", "&", "&"]),
        sampled_from(PATTERNS),
    ),
    sampled_from(["allkeys", "resetkeys", "~*", "ALLCHANNELS", "resetchannels", "&*"]),
    sampled_from(["allcommands", "nocommands", "+@all", "-@all"]),
)

SELECTORS: Final = lists(SELECTOR_RULES, max_size=5).map(lambda rules: f"({' '.join(rules)})")

USER_RULES: Final = one_of(
    SELECTOR_RULES,
    SELECTOR_RULES,
    SELECTOR_RULES,
    SELECTORS,
    sampled_from(["on", "off", "nopass", "resetpass", ">a", ">b", "<a", "<b", "#", "!x"]),
    sampled_from(["clearselectors", "reset", "sanitize-payload", "skip-sanitize-payload"]),
    sampled_from(["foo", "(on)", "(", ")"]),
    just("#" + "0a" * 32),
    just("!" + "0a" * 32),
)


def machine_for(theirs: RealClient, resp3: bool) -> type[RuleBasedStateMachine]:
    """A state machine that gives both servers the same rules and compares what they say."""

    class Comparison(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.ours = Direct().client(resp3=resp3)
            theirs.raw("ACL", "DELUSER", "t")

        def both(self, *command: str) -> bytes:
            reply = self.ours.send(*command)
            assert reply is not None
            assert reply == theirs.raw(*command), command
            return reply

        @rule(rules=lists(USER_RULES, max_size=6))
        def set_user(self, rules: Words) -> None:
            self.both("ACL", "SETUSER", "t", *rules)
            self.both("ACL", "GETUSER", "t")
            self.both("ACL", "LIST")

        @rule(request=sampled_from(REQUESTS))
        def try_request(self, request: Words) -> None:
            self.both("ACL", "DRYRUN", "t", *request)

        @rule()
        def set_user_anew_from_its_line(self) -> None:
            line = self.ours.server.state.users.lines()[-1].decode()
            if line.startswith("user t "):
                self.both("ACL", "DELUSER", "t")
                reply = self.both("ACL", "SETUSER", *line.split(" ")[1:])
                # %RW~* is shown as ~*, behind which neither server takes another pattern.
                assert reply == b"+OK\r\n" or ("~* " in line and b"after the * pattern" in reply)
                self.both("ACL", "LIST")

    return Comparison


@pytest.mark.parametrize("resp3", [False, True], ids=["RESP2", "RESP3"])
def test_users_are_what_the_real_server_makes_of_the_rules(real: RealServer, resp3: bool) -> None:
    with RealClient(real.address, resp3) as theirs:
        run(machine_for(theirs, resp3), scaled(25), steps=40)


def test_rules_may_name_every_command_of_the_real_server(real: RealServer) -> None:
    with RealClient(real.address, False) as theirs:
        names = parsed(theirs.raw("COMMAND", "LIST"))
    client = Direct().client()
    rules = [f"+{name.decode()}" for name in names]
    assert client.send("ACL", "SETUSER", "t", *rules) == b"+OK\r\n"
    here = parsed(client.send("COMMAND", "LIST"))
    missing = {name.lower() for name in names} - set(here)
    assert missing == ABSENT
