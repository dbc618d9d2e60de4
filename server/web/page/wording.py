"""How names, numbers, times and sizes are written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from server.web.metrics.text import readable
from storage.engine import ids

NONE: Final = "\N{EN DASH}"
"""What stands where there is nothing to tell."""

LONGEST: Final = 200
"""How many characters of a name are shown."""

_SIZES: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "KB"))
_LENGTHS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))

EARLIEST_MS: Final = 10**12
"""The first ID that is taken for a time (in 2001); those below are numbers of another kind."""


def shown(name: bytes, most: int = LONGEST) -> str:
    """A name or value as text: characters that do not show themselves are escaped, those that turn
    the direction of writing too, and what is too long is cut."""
    return shown_part(name[:most], len(name))


def shown_part(data: bytes, length: int) -> str:
    """The same, where ``data`` is the beginning of so many bytes."""
    rest = length - len(data)
    text = _beginning(data) if rest else readable(data)
    clean = "".join(each if each.isprintable() else _escaped(each) for each in text)
    if rest:
        return f"{clean}… ({number(rest)} more bytes)"
    return clean or '""'


def _beginning(data: bytes) -> str:
    """Text that may have been cut inside of a character."""
    for end in range(len(data), max(len(data) - 4, -1), -1):
        try:
            data[:end].decode()
        except UnicodeDecodeError:
            continue
        return readable(data[:end])
    return readable(data)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def number(value: int) -> str:
    """A number with commas between thousands."""
    return f"{value:,}"


def size(count: int) -> str:
    """A number of bytes."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def duration(ms: int) -> str:
    """A length of time in its two largest units."""
    if ms < 1000:
        return f"{max(0, ms)} ms"
    at = next(at for at, (unit, _) in enumerate(_LENGTHS) if ms >= unit)
    unit, name = _LENGTHS[at]
    text = f"{ms // unit} {name}"
    if at + 1 == len(_LENGTHS) or ms // unit >= 10:
        return text
    smaller, its_name = _LENGTHS[at + 1]
    rest = ms % unit // smaller
    return f"{text} {rest} {its_name}" if rest else text


def moment(ms: int) -> str:
    """A time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return NONE


def id_text(entry_id: int) -> str:
    """The ID of an entry."""
    return ids.text(entry_id).decode()


def id_moment(entry_id: int) -> str:
    """The time in an ID, if it is one."""
    ms = ids.split(entry_id)[0]
    return moment(ms) if ms >= EARLIEST_MS else NONE


def deliveries(count: int) -> str:
    """A delivery count; one that XNACK FATAL has set to the highest says so."""
    return "given up" if count >= 2**63 - 1 else number(count)
