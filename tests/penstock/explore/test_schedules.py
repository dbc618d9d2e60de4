"""How orders are named."""

from __future__ import annotations

import re

import pytest

from penstock.explore.schedules import parsed_schedule, schedule_id


@pytest.mark.parametrize(
    ("choices", "workers", "text"),
    [
        (["ann", "bob", "bob", "ann"], ["ann", "bob"], "abba"),
        (["ann", "+", "bob"], ["ann", "bob"], "a+b"),
        (["ann"] * 19 + ["bob", "ann"], ["ann", "bob"], "a19ba"),
        (["w1", "w2", "w2", "+", "w1"], ["w1", "w2"], "w1.w2*2.+.w1"),
        (["_a", "b"], ["_a", "b"], "_a.b"),
    ],
)
def test_an_order_is_known_by_its_name(choices: list[str], workers: list[str], text: str) -> None:
    assert schedule_id(choices, workers) == text
    assert parsed_schedule(text, workers) == choices


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        ("abc", ["ann", "bob"]),
        ("2a", ["ann", "bob"]),
        ("w1.w3", ["w1", "w2"]),
        ("w1*x", ["w1", "w2"]),
        ("crash-after@2", ["ann", "bob"]),
    ],
)
def test_what_names_no_order_is_refused(text: str, workers: list[str]) -> None:
    told = f"{text!r} is no order of the workers {', '.join(workers)}"
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        parsed_schedule(text, workers)
