"""Loading: what append-only files and RDB files hold, put into a keyspace before it serves.

What files consist of for the most part goes straight to the engine
(:mod:`storage.aof.apply_commands`).
Whatever else changes something is run by its own handler, at a time before anything expires, and
nobody is told of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from protocol.errors import CommandError
from server.acl.users import DEFAULT_USER
from server.core.table import Arguments, Command
from server.dispatch.dispatcher import FAILURE_TEXTS, Dispatcher
from server.state.server_state import ServerState
from server.state.session import FILE
from storage.aof.apply_commands import Restorer
from storage.aof.framing import Annotation, LoadError, shown
from storage.errors import StorageFailure
from storage.rdb.read import Aux, Item, Key, LibraryCode

__all__ = ["LoadError", "Loader"]

_BEFORE_EXPIRY: Final = 0

_SAMPLED: Final = 17
"""One of so many commands is timed. It is a prime, as what clients do repeats itself."""

_KEEPS_COUNT: Final = "pfcount"
"""The command without the flag ``write`` that changes a value: it keeps what it tells there."""

_now_ns = time.perf_counter_ns


class Loader:
    """Applies the commands of files to the keyspace of a server, which serves nobody meanwhile.

    ::

        loader = Loader(state, dispatcher)
        for file in files:
            loader.begin_file()
            loader.apply_all(file)
            if loader.open_group:  # the file ends inside MULTI ... EXEC
                loader.drop_group()
        loader.finish()
    """

    def __init__(self, state: ServerState, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._keyspace = keyspace = state.keyspace
        self._now_ms = state.clock()
        self._restorer = Restorer(keyspace, self._now_ms)
        self._queue: list[Arguments] | None = None
        self._known: dict[bytes, Command] = {}
        """Commands that may be in a file, by their names in the spelling of the file."""
        self.costs: dict[bytes, int] = {}
        """The nanoseconds that commands took, by name: about, as few of them are timed."""
        self._untimed = _SAMPLED
        self._session = state.new_session(0)
        # What is in the file has been allowed when it was written.
        self._session.log_in(state.users.unlimited(DEFAULT_USER))
        self._session.caller = FILE
        self._counts = keyspace.hits, keyspace.misses, keyspace.expired
        self._on_miss, keyspace.on_miss = keyspace.on_miss, None
        keyspace.now_ms = _BEFORE_EXPIRY

    # --- files ----------------------------------------------------------------------------

    def begin_file(self) -> None:
        """Begin another file, whose contents follow."""
        self._restorer.begin_file()

    @property
    def open_group(self) -> int:
        """How many commands since a MULTI have not been applied, since its EXEC has not come;
        the MULTI counts. 0 outside of such a group."""
        return 0 if self._queue is None else 1 + len(self._queue)

    def drop_group(self) -> None:
        """Forgets the commands since a MULTI that has no EXEC."""
        self._queue = None

    def finish(self) -> None:
        """Ends loading: time is no longer what it was before everything, and keys were used now."""
        keyspace = self._keyspace
        self.drop_group()
        self._restorer.begin_file()
        keyspace.effects.clear()
        keyspace.now_ms = self._now_ms
        keyspace.hits, keyspace.misses, keyspace.expired = self._counts
        keyspace.on_miss = self._on_miss
        for database in keyspace.databases:
            database.used = dict.fromkeys(database.used, self._now_ms)

    # --- commands -------------------------------------------------------------------------

    def take_run(self, data: bytes, at: int) -> tuple[int, int, list[Annotation]]:
        """Applies the commands with which the bytes of a file go on at a place, if they are alike.

        Returns where they end, how many there were, the place itself and 0 if they have to be
        parsed, and which bytes are checksum lines."""
        if self._queue is not None:
            return at, 0, []
        started = _now_ns()
        taken = self._restorer.take_run(data, at)
        if taken[1]:
            self.note_cost(b"XADD", _now_ns() - started)
        return taken

    def note_cost(self, name: bytes, nanoseconds: int) -> None:
        """Loading what has this name took so long."""
        self.costs[name] = self.costs.get(name, 0) + nanoseconds

    def apply_all(self, commands: Sequence[Arguments]) -> None:
        """Applies commands one after the other; raises :class:`LoadError` with the place of the one
        that cannot be applied."""
        place = 0
        try:
            for args in commands:
                self.apply(args)
                place += 1
        except LoadError as error:
            error.place = place
            raise

    def apply(self, args: Arguments) -> None:
        """Applies one command, or keeps it until the EXEC of its group.

        Raises :class:`LoadError`, after which the state is of no use: part of the group may have
        been applied.
        """
        if self._queue is None:
            self._run(args)
        else:
            self._take_into_group(self._queue, args)

    def _take_into_group(self, queue: list[Arguments], args: Arguments) -> None:
        name = args[0].upper() if len(args) == 1 else b""
        if name == b"MULTI":
            raise LoadError("'MULTI': it stands inside another MULTI")
        if name == b"EXEC":
            self._queue = None
            for queued in queue:
                self._run(queued)
        else:
            queue.append(args)

    def _run(self, args: Arguments) -> None:
        self._untimed -= 1
        if self._untimed:
            self._do(args)
            return
        self._untimed = _SAMPLED
        started = _now_ns()
        self._do(args)
        self.note_cost(args[0].upper(), _SAMPLED * (_now_ns() - started))

    def _do(self, args: Arguments) -> None:
        try:
            if not self._restorer.apply(args):
                self._run_other(args)
        except LoadError as error:
            raise LoadError(f"{_command(args)}: {error}") from None
        except CommandError as refusal:
            raise LoadError(f"{_command(args)}: {refusal.text}") from None
        except StorageFailure as failure:
            raise LoadError(f"{_command(args)}: {FAILURE_TEXTS[type(failure)]}") from None
        except (ValueError, IndexError):
            raise LoadError(f"{_command(args)}: the arguments are not as they must be") from None

    def _run_other(self, args: Arguments) -> None:
        """Begins a group, or lets the command itself do what it does, and forgets what came of
        it."""
        command = self._known.get(args[0])
        if command is None or not command.fits(len(args)):
            name = args[0].upper()
            if name == b"MULTI":
                self._queue = []
                return
            if name == b"EXEC":
                raise LoadError("there is no MULTI before it")
            command = self._find(args)
        self._session.db = self._restorer.db
        self._session.db.index_loaded()
        self._dispatcher.apply(self._session, command, args)

    def _find(self, args: Arguments) -> Command:
        """The command that the request names, which may be in a file like this."""
        command, refusal = self._dispatcher.refusals.resolve(self._session, args)
        if command is None or command.subcommands:
            raise LoadError("Penstock does not know this command")
        if refusal is not None:
            raise LoadError(refusal)
        if not command.writes and command.name != _KEEPS_COUNT:
            raise LoadError("a command that changes nothing does not belong in the file")
        if command.name == command.fullname:
            self._known[args[0]] = command
        return command


class ItemLoader:
    """Takes the items of one file. With ``expire`` keys whose time is over are left out, as Redis
    does with a file that no commands follow."""

    def __init__(self, state: ServerState, loader: Loader, *, expire: bool = False) -> None:
        self._keyspace = state.keyspace
        self._loader = loader
        self._expires_until = state.timekeeper.due() if expire else 0
        self._stats = state.stats
        self._stats.rdb_keys_loaded = self._stats.rdb_keys_expired = 0
        self.keys = 0
        """How many keys have been loaded."""

    def take(self, item: Item) -> None:
        """Puts an item in its place. Raises :class:`LoadError` if that cannot be done."""
        if isinstance(item, Key):
            self._take_key(item)
        elif isinstance(item, LibraryCode):
            self._loader.apply([b"FUNCTION", b"LOAD", item.code])
        else:
            assert isinstance(item, Aux)

    def _take_key(self, item: Key) -> None:
        databases = self._keyspace.databases
        if item.db >= len(databases):
            raise LoadError(f"there is no database {item.db}: there are {len(databases)}")
        if item.value is None:
            raise LoadError(
                f"the key {shown(item.key)} is a {item.kind}, which Penstock does not have:"
                " 'penstock import' leaves such keys out"
            )
        database = databases[item.db]
        if item.key in database.values:
            raise LoadError(f"the key {shown(item.key)} is there twice")
        if item.expires_at is not None and item.expires_at <= self._expires_until:
            self._stats.rdb_keys_expired += 1
            return
        database.attach(item.key, item.value)
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


def _command(args: Arguments) -> str:
    """The command as messages name it: by its first words."""
    return " ".join(shown(word) for word in args[:3])
