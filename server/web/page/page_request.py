"""One request for a screen: who asks for what, and with what it is answered."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from server.commands.keys.scan import type_name
from server.runtime.clockwork import Slice
from server.services import Services
from server.web.page.logins import Viewer
from server.web.page.marks import marks_of
from server.web.page.sampling import Sampler
from server.web.page.traces import History, Window
from server.web.page.wording import shown
from server.web.survey import STEP_NS, is_past, stream_at
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.errors import InvalidID
from storage.keyspace.databases import Database

_SAFE: Final = ":@._~-"
"""What stays as it is in a name that is packed; ``%`` and blanks do not."""


REDRIVE: Final = (b"PENSTOCK", b"REDRIVE")
"""The command that moves dead letters back to their groups."""

MAX_FIELDS: Final = 2000
"""How many fields there may be."""


def policy_command(word: bytes, key: bytes, group: bytes, *rest: bytes) -> list[bytes]:
    """The command that sets (``SET``) or takes away (``DEL``) policies of a group."""
    return [b"PENSTOCK", b"POLICY", word, key, b"GROUP", group, *rest]


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


def key_url(db: int, key: bytes) -> str:
    """The address of a key of any type."""
    return url("/key", db=db, key=packed(key))


def group_url(db: int, key: bytes, group: bytes, **fields: object) -> str:
    """The address of a consumer group."""
    return url("/group", db=db, key=packed(key), group=packed(group), **fields)


def consumer_url(db: int, key: bytes, group: bytes, name: bytes, **fields: object) -> str:
    """The address of a consumer."""
    given = {"group": packed(group), "name": packed(name), **fields}
    return url("/consumer", db=db, key=packed(key), **given)


def entry_url(db: int, key: bytes, entry_id: str) -> str:
    """The address of an entry."""
    return url("/entry", db=db, key=packed(key), id=entry_id)


def letters_url(db: int, key: bytes, **fields: object) -> str:
    """The address of a stream of dead letters."""
    return url("/letters", db=db, key=packed(key), **fields)


SPANS: Final = (5, 15, 60, 360, 1440)
"""How many minutes of the past charts can show."""


class Fields:
    """The fields of an address or of a form: none, if there are too many. Of those with the same
    name the last counts, except in :meth:`every`."""

    def __init__(self, text: str) -> None:
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            pairs = []
        self.pairs = pairs
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
        return [value for own, value in self.pairs if own == name]


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
        part: bool = False,
    ) -> None:
        self.server = server
        self.sampler = sampler
        self.viewer = viewer
        self.fields = fields
        self.address = address
        self.peer = peer
        self.part = part
        """Whether the browser has the frame around the screen already."""
        self.pace = Slice(STEP_NS)
        self.now: int = server.state.clock()
        """Unix milliseconds."""
        self.minutes = fields.whole("minutes", SPANS[1], SPANS[0], SPANS[-1])
        """How much of the past charts show."""

    @property
    def sees_all(self) -> bool:
        """Whether figures of all streams together tell the user nothing that it may not know."""
        user = self.viewer.user
        whole = any(each.all_keys for each in (user.root, *user.selectors))
        return not user.limited or (whole and self.viewer.may_see(b""))

    def window(
        self, history: History | None, db: int | None = None, key: bytes = b"", group: bytes = b""
    ) -> Window | None:
        """Return of the history of a group, of a stream or of everything what charts show."""
        if history is None:
            return None
        marks = marks_of(self.server, self.viewer, db, key, group)
        return Window(history, self.minutes * 60_000, marks)

    def spans(self) -> list[tuple[int, str]]:
        """Return how much charts may show, in minutes, each with the address of that screen."""
        pairs = [pair for pair in self.fields.pairs if pair[0] != "minutes"]
        here = self.address.partition("?")[0]
        return [(each, f"{here}?{urlencode([*pairs, ('minutes', each)])}") for each in SPANS]

    def require(self, *request: bytes) -> None:
        """Raises :class:`Refused` if the user may not run the request."""
        denial = self.viewer.denial(*request)
        if denial is not None:
            raise Refused(denial, 403)

    def obstacle(self, *request: bytes) -> str | None:
        """Why whoever looks cannot have this command run from the page, ``None`` if that can be."""
        if not self.server.state.config.web_actions:
            return "The page is read-only: the setting web-actions is no."
        if self.viewer.login is None:
            return "Log in to change something."
        return self.viewer.denial(*request)

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
            other = database.values.get(key)
            if other is not None and not is_past(database, key, self.now):
                raise Refused(f"{shown(key)} is not a stream: it holds a {type_name(other)}.")
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

    def entry(self) -> tuple[Database, bytes, Stream, int, bytes]:
        """The stream, an entry's ID that the field ``id`` names, and the entry as it is kept."""
        database, key, stream = self.stream()
        self.require(b"XRANGE", key, b"-", b"+")
        try:
            entry_id = ids.parse(self.fields.text("id").encode())
        except InvalidID:
            raise Refused("That is not the ID of an entry.", 400) from None
        payload = stream.log.get(entry_id)
        if payload is None:
            raise Refused(f"The stream {shown(key)} has no entry {ids.text(entry_id).decode()}.")
        return database, key, stream, entry_id, payload
