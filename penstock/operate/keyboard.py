"""Keys that are pressed in a terminal, as they come, without a line to end them."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator
from typing import Final

from penstock.operate import top_pages as keys

_NAMES: Final = {
    b"\x1b[A": keys.UP,
    b"\x1bOA": keys.UP,
    b"\x1b[B": keys.DOWN,
    b"\x1bOB": keys.DOWN,
    b"\x1b[5~": keys.PAGE_UP,
    b"\x1b[6~": keys.PAGE_DOWN,
    b"\x1b[H": keys.HOME,
    b"\x1b[1~": keys.HOME,
    b"\x1b[F": keys.END,
    b"\x1b[4~": keys.END,
    b"\r": keys.ENTER,
    b"\n": keys.ENTER,
    b"\x1b[C": keys.ENTER,
    b"\x1b": keys.BACK,
    b"\x1b[D": keys.BACK,
    b"\x7f": keys.ERASE,
    b"\x08": keys.ERASE,
}
"""What terminals send for keys that are no characters (ECMA-48, and xterm's control sequences)."""

_LONGEST: Final = 64
"""How many bytes are taken at a time."""


def key_of(data: bytes) -> str:
    """Return the key that a terminal has sent as these bytes: a name, a character, or ``""`` for
    one that has no name here."""
    if data in _NAMES:
        return _NAMES[data]
    text = data.decode("utf-8", "replace")
    return text if len(text) == 1 and text.isprintable() else ""


class Keyboard:
    """Reads keys from a file descriptor, or waits only if it has none."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def read(self, seconds: float) -> str | None:
        """Return the next key; ``None`` if none was pressed for so long. Raises :class:`EOFError`
        when the terminal has gone."""
        watched = [] if self._descriptor is None else [self._descriptor]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self._descriptor is None or not ready:
            return None
        try:
            data = os.read(self._descriptor, _LONGEST)
        except OSError:  # The terminal was closed.
            data = b""
        if not data:
            raise EOFError
        return key_of(data)


@contextlib.contextmanager
def opened() -> Iterator[Keyboard]:
    """A keyboard of the terminal at standard input, which sends keys at once meanwhile and does not
    show them; one that never sends any where that is no terminal."""
    if not sys.stdin.isatty():
        yield Keyboard(None)
        return
    import termios  # There is none where there are no terminals.
    import tty

    descriptor = sys.stdin.fileno()
    former = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, former)
