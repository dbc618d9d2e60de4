"""What these tests share: commands in the process of the test."""

from __future__ import annotations

import pytest

from pipeline_tests.plain.files import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs commands of ``penstock-pipeline``."""
    return Command(capsys)
