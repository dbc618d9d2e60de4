"""How numbers, sizes and lengths of time are written for people: on the page and in terminals."""

from __future__ import annotations

from typing import Final

_SIZES: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "KB"))
_LENGTHS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_SHORT_MS: Final = 10_000
"""Below so many milliseconds, parts of a second are told."""


def number(value: int) -> str:
    """Return a number with commas between thousands."""
    return f"{value:,}"


def size(count: int) -> str:
    """Return a number of bytes."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def latency(nanoseconds: int) -> str:
    """Return a short length of time: in microseconds below a millisecond, in milliseconds up to a
    second, else as :func:`duration` says."""
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1000:.3g} µs"
    ms = nanoseconds / 1_000_000
    return f"{ms:.3g} ms" if ms < 999.5 else duration(round(ms))


def duration(ms: int) -> str:
    """Return a length of time in its two largest units: ``40 ms``, ``2.5 s``, ``3 h 9 min``."""
    if ms < 1000:
        return f"{max(0, ms)} ms"
    if ms < _SHORT_MS:
        return f"{ms // 10 / 100:g} s"
    at = next(at for at, (unit, _) in enumerate(_LENGTHS) if ms >= unit)
    unit, name = _LENGTHS[at]
    text = f"{ms // unit} {name}"
    if at + 1 == len(_LENGTHS) or ms // unit >= 10:
        return text
    smaller, its_name = _LENGTHS[at + 1]
    rest = ms % unit // smaller
    return f"{text} {rest} {its_name}" if rest else text
