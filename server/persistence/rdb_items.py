"""What is in an RDB file, put into a server's keyspace before it listens."""

from __future__ import annotations

from server.persistence.aof_replay import Loader
from server.road.state import ServerState
from storage.aof.errors import LoadError
from storage.aof.lookup import shown
from storage.engine.stream import Stream
from storage.rdb.read import Aux, Item, Key, Library


class ItemLoader:
    """Takes the items of one file. With ``expire`` keys whose time is over are left out, as Redis
    does with a file that no commands follow."""

    def __init__(self, state: ServerState, loader: Loader, *, expire: bool = False) -> None:
        self._keyspace = state.keyspace
        self._loader = loader
        self._expires_until = state.clock() if expire else 0
        self._stats = state.stats
        self._stats.rdb_keys_loaded = self._stats.rdb_keys_expired = 0
        self.keys = 0
        """How many keys have been loaded."""

    def take(self, item: Item) -> None:
        """Puts an item in its place. Raises :class:`LoadError` if that cannot be done."""
        if isinstance(item, Key):
            self._take_key(item)
        elif isinstance(item, Library):
            self._loader.apply([b"FUNCTION", b"LOAD", item.code])
        else:
            assert isinstance(item, Aux)

    def _take_key(self, item: Key) -> None:
        databases = self._keyspace.databases
        if item.db >= len(databases):
            raise LoadError(f"there is no database {item.db}: there are {len(databases)}")
        if item.value is None:
            raise LoadError(
                f"the key {shown(item.key)} is a {item.kind}, and Penstock holds streams and"
                " strings: 'penstock import' leaves others out"
            )
        database = databases[item.db]
        if item.key in database.values:
            raise LoadError(f"the key {shown(item.key)} is there twice")
        if item.expires_at is not None and item.expires_at <= self._expires_until:
            self._stats.rdb_keys_expired += 1
            return
        if isinstance(item.value, Stream):
            database.attach(item.key, item.value)
        else:
            database.set_string(item.key, bytes(item.value))
        if item.expires_at is not None:
            database.expire_at(item.key, item.expires_at)
        self._keyspace.effects.clear()
        self.keys += 1
        self._stats.rdb_keys_loaded += 1


class Replay:
    """Applies append-only files to an empty keyspace, as a server does that starts: RDB files and
    commands."""

    def __init__(self, state: ServerState, loader: Loader) -> None:
        self.begin_file = loader.begin_file
        self.take_run = loader.take_run
        self.apply_all = loader.apply_all
        self.drop_group = loader.drop_group
        self.take_item = ItemLoader(state, loader).take
