"""The garbage collector's threshold is as it was once nobody reads entries any more."""

from __future__ import annotations

import gc

from pyspark_redis_streams.read.fetching import MANY_OBJECTS, gc_paused


def test_the_last_to_end_restores_the_threshold() -> None:
    usual = gc.get_threshold()
    first, second = gc_paused(), gc_paused()
    with first:
        second.__enter__()
        assert gc.get_threshold() == (MANY_OBJECTS, *usual[1:])
    assert gc.get_threshold() == (MANY_OBJECTS, *usual[1:])
    second.__exit__(None, None, None)
    assert gc.get_threshold() == usual


def test_an_error_restores_the_threshold() -> None:
    usual = gc.get_threshold()
    try:
        with gc_paused():
            raise ValueError
    except ValueError:
        assert gc.get_threshold() == usual
