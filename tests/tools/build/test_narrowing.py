"""No compiled module believes of an attribute what a call may have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.process import ROOT
from tests.tools.build.narrowing import beliefs
from tools.build import native

PLANTED: Final = """
from __future__ import annotations
from collections.abc import Callable


class Timer:
    pass


class Late(Timer):
    pass


_last: Timer | None = None


class Due:
    def __init__(self, call: Callable[[], None]) -> None:
        self.timer: Timer | None = None
        self.other: Timer | str = ""
        self.call = call
        self.closed = False

    def asks_again(self) -> None:
        self.timer = None
        self.call()
        if self.timer is None:  # believed
            self.call()

    def was_asked_before(self) -> None:
        if self.timer is not None:
            return
        self.call()
        if self.timer:  # believed
            self.call()

    def returns_it(self) -> Timer | None:
        self.timer = None
        self.call()
        return self.timer  # believed

    def believes_there_is_one(self) -> bool:
        self.timer = Timer()
        self.call()
        return self.timer is None  # believed

    def asks_for_its_class(self) -> bool:
        self.other = Timer()
        self.call()
        return isinstance(self.other, str)  # believed

    def asks_for_a_variable(self) -> bool:
        global _last
        _last = None
        self.call()
        return not _last  # believed

    def asks_in_a_function_of_its_own(self) -> bool:
        found: Timer | None = None

        def find() -> None:
            nonlocal found
            found = Timer()

        found = None
        find()
        return found is None  # believed

    def uses_it(self) -> None:
        if self.timer is None:
            self.timer = Timer()
        self.call()
        self.use(self.timer)

    def use(self, timer: Timer) -> None:
        if self.timer is timer and not self.closed and isinstance(self.timer, Late):
            self.closed = True
            self.call()
            if not self.closed:
                self.timer = None

    def asks_in_a_loop(self) -> None:
        self.timer = None
        while self.timer is None:
            self.timer = Timer()
"""
"""What is believed, and what is not, or does no harm."""


def test_nothing_is_believed_that_a_call_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED)
    lines = enumerate(PLANTED.splitlines(), 1)
    believed = [f"{planted}:{number}" for number, line in lines if line.endswith("# believed")]
    found = beliefs([*native.sources(), str(planted)])
    assert [each.rpartition(": ")[0] for each in found] == believed
