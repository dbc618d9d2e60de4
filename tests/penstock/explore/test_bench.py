"""What an invariant says of the data."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.explore.bench import said

OF_PYTEST = "assert '20' == '15'\n  \n  - 15\n  + 20"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"total 20, should be 15\n{OF_PYTEST}", "total 20, should be 15"),
        ("two lines\nof one's own", "two lines\nof one's own"),
        (OF_PYTEST, OF_PYTEST),
        ("", "the invariant does not hold"),
    ],
)
def test_what_pytest_adds_to_a_text_is_left_out(text: str, told: str) -> None:
    def check(client: Any) -> None:
        raise AssertionError(text)

    assert said(check, None) == told


@pytest.mark.parametrize(
    ("answer", "told"),
    [(None, ""), (True, ""), (False, "the invariant does not hold"), ("no tea", "no tea")],
)
def test_an_invariant_may_answer(answer: Any, told: str) -> None:
    assert said(lambda client: answer, None) == told
