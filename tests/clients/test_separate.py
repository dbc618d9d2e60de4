"""Libraries without a suite to run here, in short programs that print what the server lets them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.clients.applications import find
from tests.support.process import printed_by
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.slow

FOLDER: Final = Path(__file__).parent / "separate"

PRINTED: Final = {
    "limits": """\
FixedWindowRateLimiter [True, True, False] True 0
FixedWindowRateLimiter True False
MovingWindowRateLimiter [True, True, False] True 0
MovingWindowRateLimiter True False
SlidingWindowCounterRateLimiter [True, True, False] True 0
SlidingWindowCounterRateLimiter True False
3
[True, True, False]
""",
    "flask": """\
['1', '2', '1', '3']
[True, True]
bye 1 1 2
1
""",
}
"""What each program prints, as with Redis 8.0.6."""


@pytest.mark.parametrize("library", PRINTED)
def test_a_program_prints_what_it_does_with_redis(library: str, penstock: PenstockThread) -> None:
    program = str(FOLDER / f"{library}_program.py")
    printed = printed_by(find("python"), program, penstock.url, cwd=FOLDER, PYTHONPATH="")
    assert printed == PRINTED[library]
