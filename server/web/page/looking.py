"""One request for a screen: who asks for what, and with what it is answered."""

from __future__ import annotations

from server.services import Services
from server.web.pace import Pace
from server.web.page.addresses import Fields
from server.web.page.sampling import Sampler, stream_at
from server.web.page.viewer import Viewer
from server.web.page.wording import shown
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.keyspace.databases import Database


class Refused(Exception):
    """Why there is no such screen for that user, or why an action does not run."""

    def __init__(self, text: str, status: int = 404) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class Look:
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
        self.pace = Pace()
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
