"""The moments of replies; tests/migration has the connection at work."""

from __future__ import annotations

from penstock.client.connection import Interval, Timed


def test_several_tries_leave_one_millisecond_where_none_of_them_does() -> None:
    first = Timed(70, Interval(1000, 1001)).distant(70)
    second = Timed(68, Interval(1001, 1002)).distant(68)
    assert (first, second) == (Interval(1070, 1071), Interval(1069, 1070))
    assert not first.exact
    assert second.narrowed(first) == Interval(1070, 1070)
    assert second.narrowed(first).exact


def test_what_has_happened_again_meanwhile_counts_by_its_last_time() -> None:
    assert Interval(2000, 2001).narrowed(Interval(1000, 1001)) == Interval(2000, 2001)
