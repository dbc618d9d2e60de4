"""Whatever arguments a command is given: it is answered, and an error has changed nothing."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from server.core.table import Command, subcommands
from tests.support.direct import Direct
from tests.support.examples import scaled
from tests.support.pictures import picture

_KEPT_OUT = {"shutdown", "debug|sleep", "client|pause", "exec"}
"""What would stop the test, or is tested where its state is."""

_WORDS = re.compile(r"[A-Z][A-Z-]+")


def _leaves() -> list[Command]:
    """Every command that can be called, subcommands in place of their containers."""
    entries = dict.fromkeys(Direct().server.state.table.values())
    leaves = [leaf for entry in entries for leaf in subcommands(entry) or [entry]]
    return [leaf for leaf in leaves if leaf.fullname not in _KEPT_OUT]


def _tokens(command: Command) -> st.SearchStrategy[bytes]:
    words = [word.encode() for word in _WORDS.findall(command.about.syntax)]
    return st.sampled_from(
        [*words, *(word.lower() for word in words), b"STREAMS", b">", b"$", b"*"]
    )


_VALUES = st.one_of(
    st.sampled_from(
        [b"k", b"s", b"g", b"ann", b"new", b"", b"0", b"1", b"-1", b"1-1", b"2-*", b"~"]
    ),
    st.sampled_from([b"9223372036854775807", b"-9223372036854775808", b"9" * 30, b"1e400", b"nan"]),
    st.binary(max_size=6),
)


@st.composite
def requests(draw: st.DrawFn) -> list[bytes]:
    """A request for some command, with about as many arguments as it takes."""
    command = draw(st.sampled_from(_COMMANDS))
    wanted = abs(command.arity) - len(command.name.split())
    count = draw(st.integers(max(0, wanted - 1), wanted + 4))
    arguments = st.one_of(_tokens(command), _VALUES, _VALUES)
    return [
        *(word.encode() for word in command.name.split()),
        *(draw(arguments) for _ in range(count)),
    ]


_COMMANDS = _leaves()


@settings(max_examples=scaled(600), deadline=None, suppress_health_check=list(HealthCheck))
@given(request=requests(), resp3=st.booleans())
@example(request=[b"XADD", b"k", b"\xff\r\n", b"a", b"b"], resp3=False)
def test_it_is_answered_and_an_error_changes_nothing(request: list[bytes], resp3: bool) -> None:
    direct = Direct(enable_debug_command="yes")
    client = direct.client(resp3=resp3)
    for setup in (
        ("XADD", "k", "1-1", "a", "b"),
        ("XADD", "k", "1-2", "a", "b"),
        ("XGROUP", "CREATE", "k", "g", "0"),
        ("XREADGROUP", "GROUP", "g", "ann", "COUNT", "1", "STREAMS", "k", ">"),
        ("SET", "s", "10"),
    ):
        client.send(*setup)
    before = picture(direct.server.state.keyspace)
    reply = client.send(*request)
    assert client.parked or client.closed or client.session.closing or reply is not None
    if reply is not None and reply.startswith(b"-"):
        assert reply.endswith(b"\r\n")
        assert reply.count(b"\r\n") == 1
        assert picture(direct.server.state.keyspace) == before
    direct.server.state.keyspace.check()
