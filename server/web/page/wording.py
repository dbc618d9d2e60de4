"""How names, numbers, times and sizes are written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from server.delivery.health import EARLIEST_MS
from server.runtime.quantities import number, size
from server.web.metrics.text import readable
from storage.engine import ids

NONE: Final = "\N{EN DASH}"
"""What stands where there is nothing to tell."""

LONGEST: Final = 200
"""How many characters of a name are shown."""

_KINDS: Final = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG", "PNG"),
    (b"GIF8", "GIF"),
    (b"%PDF", "PDF"),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "ZIP"),
    (b"Obj\x01", "Avro"),
    (b"PAR1", "Parquet"),
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
)


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


def is_text(data: bytes, whole: bool = True) -> bool:
    """Whether these bytes are text that shows itself; one that is not ``whole`` may have been cut
    inside of a character."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if whole or error.start < len(data) - 3:
            return False
        text = data[: error.start].decode()
    return all(each.isprintable() or each in "\t\n\r" for each in text)


def kind_of(data: bytes) -> str:
    """What binary data begins like, empty if that is not known."""
    return next((kind for start, kind in _KINDS if data.startswith(start)), "")


def value_text(data: bytes, length: int) -> str:
    """A value in a list, where ``data`` is its beginning: text, or what kind of data it is."""
    if is_text(data, len(data) == length):
        return " ".join(shown_part(data, length).split()) if length else '""'
    return f"<{', '.join(filter(None, ('binary', size(length), kind_of(data))))}>"


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


def rate(value: float | None) -> str:
    """Entries a second."""
    if value is None:
        return NONE
    return f"{value:,.1f}" if 0 < value < 100 else f"{value:,.0f}"


def counted(count: int, one: str, more: str = "") -> str:
    """A number with its noun, which agrees with it."""
    return f"{number(count)} {one if count == 1 else more or one + 's'}"


def moment(ms: int) -> str:
    """A time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return NONE


def id_text(entry_id: int) -> str:
    """The ID of an entry."""
    return ids.text(entry_id).decode()


def id_ms(entry_id: int) -> int | None:
    """The milliseconds in an ID, if they are a time."""
    ms = ids.split(entry_id)[0]
    return ms if ms >= EARLIEST_MS else None


def deliveries(count: int) -> str:
    """A delivery count; one that XNACK FATAL has set to the highest says so."""
    return "given up" if count >= 2**63 - 1 else number(count)
