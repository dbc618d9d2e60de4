"""What mypy has found in one clone is there in the next."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.build.check_types import FOUND, check

NOTES = (
    "from pathlib import Path; f = Path('.mypy_cache/3.11'); f.mkdir(parents=True, exist_ok=True); "
)
MYPY = [
    sys.executable,
    "-c",
    f"{NOTES}f /= 'runs'; old = f.read_text() if f.exists() else ''; f.write_text(old + 'x');"
    " raise SystemExit(len(old) == 2)",
]
"""A mypy that adds a sign to what is noted for each run, and is not content with the third one."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(clone: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The status of a run in a clone, and what is noted there."""
    clone.mkdir(exist_ok=True)
    monkeypatch.chdir(clone)
    return check(MYPY), Path(FOUND, "3.11", "runs").read_text()


def test_a_clone_begins_with_what_was_found_in_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path / "one", monkeypatch) == (0, "x")
    assert run(tmp_path / "two", monkeypatch) == (0, "xx")
    assert run(tmp_path / "one", monkeypatch) == (0, "xx")


def test_what_is_found_where_types_are_wrong_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for clone, noted in (("one", (0, "x")), ("two", (0, "xx")), ("three", (1, "xxx"))):
        assert run(tmp_path / clone, monkeypatch) == noted
    assert run(tmp_path / "four", monkeypatch) == (1, "xxx")


def test_nothing_is_kept_where_the_user_wants_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", "0")
    assert run(tmp_path / "one", monkeypatch) == (0, "x")
    assert run(tmp_path / "two", monkeypatch) == (0, "x")
