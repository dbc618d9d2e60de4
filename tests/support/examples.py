"""How many random examples a test tries, in proportion to the profile of hypothesis."""

from __future__ import annotations

from hypothesis import settings

FULL = 100
"""The examples of the profile ``ci``; see tests/conftest.py."""


def scaled(full: int) -> int:
    """The number of examples that stands for ``full`` in the profile ``ci``."""
    return max(1, full * settings().max_examples // FULL)
