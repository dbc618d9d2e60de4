"""The trace by itself: what it keeps, and what goes when it is full."""

from __future__ import annotations

from server.state.monitors import TraceBuffer
from tests.support.direct import START_MS, Direct


def sent(trace: TraceBuffer, direct: Direct, *words: str, name: bytes = b"") -> None:
    """Another client, with this name, has sent the words."""
    session = direct.server.state.new_session(7)
    session.name = name
    table = direct.server.state.table
    given = [word.encode() for word in words]
    trace.note(session, table.get(words[0].encode()), given, session.name)


def started(most: int = 100, most_bytes: int = 1000) -> tuple[TraceBuffer, Direct]:
    direct = Direct()
    trace = TraceBuffer(direct.server.state.clock, most, most_bytes)
    trace.start(1, None)
    return trace, direct


def test_what_was_taken_is_forgotten() -> None:
    trace, direct = started()
    for number in range(3):
        sent(trace, direct, "get", str(number))
    assert [traced.words[1] for traced in trace.take(2)] == [b"0", b"1"]
    assert [traced.words[1] for traced in trace.take(2)] == [b"2"]
    assert trace.take(None) == []
    assert (trace.kept, trace.lost) == (0, 0)


def test_the_oldest_go_when_there_are_too_many_and_are_counted() -> None:
    trace, direct = started(most=2)
    for number in range(5):
        sent(trace, direct, "get", str(number))
    assert (trace.kept, trace.lost) == (2, 3)
    assert [traced.words[1] for traced in trace.take(None)] == [b"3", b"4"]


def test_the_oldest_go_when_they_are_too_long() -> None:
    trace, direct = started(most_bytes=20)
    for number in range(5):
        sent(trace, direct, "get", f"{number}234567")
    assert (trace.kept, trace.lost) == (2, 3)
    trace.take(None)
    sent(trace, direct, "get", "1234567890")
    assert (trace.kept, trace.lost) == (1, 3)
    sent(trace, direct, "get", "x" * 30)
    assert (trace.kept, trace.lost) == (0, 5)


def test_starting_again_forgets_what_there_was() -> None:
    trace, direct = started(most=1)
    sent(trace, direct, "get", "a")
    sent(trace, direct, "get", "b")
    trace.start(2, b"x*")
    assert (trace.kept, trace.lost, trace.pattern) == (0, 0, b"x*")
    sent(trace, direct, "get", "a", name=b"y")
    sent(trace, direct, "get", "b", name=b"xy")
    (traced,) = trace.take(None)
    assert traced[:5] == (START_MS, 7, b"xy", 0, [b"get", b"b"])
