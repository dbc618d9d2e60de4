"""Clients' own suites: where they are, and which of their cases are run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.process import ROOT

FOLDER: Final = ROOT / "build/suites"


def find(client: str) -> Path:
    """The unpacked source package of a client; skips the test if there is none."""
    found = sorted(FOLDER.glob(f"{client}-*/"))
    if not found:
        pytest.skip(f"the suite of {client} is not in {FOLDER}, where make test-clients puts it")
    return found[-1]
