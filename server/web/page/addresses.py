"""Where things are on the page: paths, and names of any bytes inside them."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

_SAFE: Final = ":@._~-"
"""What stays as it is in a name that is packed; ``%`` and blanks do not."""


MOST: Final = 1000
"""How many fields there may be."""


def packed(name: bytes) -> str:
    """A name as ASCII, for a field of a form or of an address."""
    return quote(name, safe=_SAFE)


def unpacked(text: str) -> bytes:
    """The name that was packed."""
    return unquote_to_bytes(text)


def url(path: str, **fields: object) -> str:
    """An address with the fields that are not ``None``."""
    given = {name: str(value) for name, value in fields.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def stream_url(db: int, key: bytes, **fields: object) -> str:
    """The address of a stream."""
    return url("/stream", db=db, key=packed(key), **fields)


def group_url(db: int, key: bytes, group: bytes, **fields: object) -> str:
    """The address of a consumer group."""
    return url("/group", db=db, key=packed(key), group=packed(group), **fields)


class Fields:
    """The fields of an address or of a form: none, if there are too many. Of those with the same
    name the last counts, except in :meth:`every`."""

    def __init__(self, text: str) -> None:
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST)
        except ValueError:
            pairs = []
        self._pairs = pairs
        self._last = dict(pairs)

    def text(self, name: str, default: str = "") -> str:
        """A field as it was typed, without blanks around it."""
        return self._last.get(name, default).strip()

    def secret(self, name: str) -> str:
        """A field to the letter."""
        return self._last.get(name, "")

    def name(self, name: str) -> bytes:
        """A field that holds a packed name."""
        return unpacked(self._last.get(name, ""))

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A field that holds an integer, brought into these bounds; the default if it is none."""
        text = self._last.get(name, "")
        if not text.isascii() or not text.isdigit() or len(text) > 40:
            return default
        return min(max(int(text), least), most)

    def every(self, name: str) -> list[str]:
        """The values of all fields of that name."""
        return [value for own, value in self._pairs if own == name]
