"""The signals of a server process: which end it, and which it lives through as Redis does."""

from __future__ import annotations

import contextlib
import signal
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM)
"""What has a server end, with its data saved."""

IGNORED: Final = (signal.SIGUSR2, signal.SIGALRM)
"""What would end a process, and does nothing to a server. (Python ignores SIGPIPE by itself.)"""


@contextlib.contextmanager
def owned(loop: AbstractEventLoop, act: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Have ``loop`` call ``act`` for each of ``ENDING`` and for SIGHUP.

    Those that come before the call are one. After the block the process is about to be gone, and
    ignores them all, also while Python ends: the handlers of an event loop end with it, and what
    comes then would kill the process. Where an error leaves the block the former handlers are back.
    """
    came = set[signal.Signals]()

    def take(number: int, _: FrameType | None) -> None:
        if number not in came and not loop.is_closed():
            came.add(signal.Signals(number))
            loop.call_soon_threadsafe(tell, signal.Signals(number))

    def tell(number: signal.Signals) -> None:
        came.discard(number)
        act(number)

    former = {number: signal.signal(number, take) for number in (*ENDING, signal.SIGHUP)}
    former |= {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED}
    try:
        yield
    except BaseException:
        for number, handler in former.items():
            signal.signal(number, handler)
        raise
    for number in former:
        signal.signal(number, signal.SIG_IGN)


def leave_to_system() -> None:
    """Let a child of the server end by ``ENDING``, and live through SIGHUP."""
    signal.set_wakeup_fd(-1)
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
