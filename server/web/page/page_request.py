"""One request for a screen: who asks for what, and with what it is answered."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from server.runtime.clockwork import Slice
from server.services import Services
from server.web.page.logins import Viewer
from server.web.page.sampling import Sampler
from server.web.page.wording import shown
from server.web.survey import STEP_NS, stream_at
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

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


class Refused(Exception):
    """Why there is no such screen for that user, or why an action does not run."""

    def __init__(self, text: str, status: int = 404) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class PageRequest:
    """What the functions of screens are given to work with; ``fields`` are those of the address or
    of the form, and ``address`` is where the request went, ``peer`` from where it came."""

    def __init__(
        self,
        server: Services,
        sampler: Sampler,
        viewer: Viewer,
        fields: Fields,
        address: str,
        peer: str,
    ) -> None:
        self.server = server
        self.sampler = sampler
        self.viewer = viewer
        self.fields = fields
        self.address = address
        self.peer = peer
        self.pace = Slice(STEP_NS)
        self.now: int = server.state.clock()
        """Unix milliseconds."""

    def require(self, *request: bytes) -> None:
        """Raises :class:`Refused` if the user may not run the request."""
        denial = self.viewer.denial(*request)
        if denial is not None:
            raise Refused(denial, 403)

    @property
    def database(self) -> Database:
        """The database that the field ``db`` names; raises :class:`Refused`."""
        databases = self.server.state.keyspace.databases
        index = self.fields.whole("db", 0, 0, len(databases))
        if index == len(databases):
            raise Refused("There is no such database.")
        return databases[index]

    def stream(self) -> tuple[Database, bytes, Stream]:
        """The stream that the fields ``db`` and ``key`` name; raises :class:`Refused`."""
        database, key = self.database, self.fields.name("key")
        self.require(b"XINFO", b"STREAM", key)
        stream = stream_at(database, key, self.now)
        if stream is None:
            raise Refused(f"There is no stream {shown(key)} in database {database.index}.")
        return database, key, stream

    def group(self) -> tuple[Database, bytes, Stream, Group]:
        """The same with the group that the field ``group`` names."""
        database, key, stream = self.stream()
        self.require(b"XINFO", b"GROUPS", key)
        name = self.fields.name("group")
        group = stream.groups.get(name)
        if group is None:
            raise Refused(f"The stream {shown(key)} has no group {shown(name)}.")
        return database, key, stream, group
