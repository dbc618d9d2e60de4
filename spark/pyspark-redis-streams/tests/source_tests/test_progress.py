"""Lag from what Spark reports."""

from __future__ import annotations

import json
from typing import Any

from pyspark_redis_streams import lag

END = {"v": 1, "servers": {"": {"a": {"id": "5-0", "n": 7, "from": "0-0", "n0": 0}}}}
LATEST = {"servers": {"": {"a": {"id": "9-0", "n": 10}, "b": {"id": "1-0", "n": 2}}}}


def test_the_lag_is_what_was_added_and_not_read() -> None:
    assert lag({"latestOffset": json.dumps(LATEST), "endOffset": json.dumps(END)}) == {
        "a": 3,
        "b": 2,
    }
    assert lag({"latestOffset": LATEST, "endOffset": END}) == {"a": 3, "b": 2}


def test_a_group_knows_its_lag_itself() -> None:
    entry = {"id": "9-0", "n": 10, "lag": 4, "pending": 6}
    source: dict[str, Any] = {"latestOffset": {"servers": {"h:1/0": {"a": entry}}}}
    assert lag({**source, "endOffset": {"q": "c", "n": 3}}) == {"h:1/0/a": 4}


def test_a_source_that_reports_nothing_has_no_lag() -> None:
    assert lag({"latestOffset": None, "endOffset": None}) == {}
    assert lag({"latestOffset": "null"}) == {}
