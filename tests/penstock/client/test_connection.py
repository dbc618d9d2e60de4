"""The moments of replies; tests/migration has the connection at work."""

from __future__ import annotations

from penstock.client.connection import Moment, Timed


def test_several_tries_leave_one_millisecond_where_none_of_them_does() -> None:
    first = Timed(70, Moment(1000, 1001)).distant(70)
    second = Timed(68, Moment(1001, 1002)).distant(68)
    assert (first, second) == (Moment(1070, 1071), Moment(1069, 1070))
    assert not first.exact
    assert second.narrowed(first) == Moment(1070, 1070)
    assert second.narrowed(first).exact


def test_what_has_happened_again_meanwhile_counts_by_its_last_time() -> None:
    assert Moment(2000, 2001).narrowed(Moment(1000, 1001)) == Moment(2000, 2001)
