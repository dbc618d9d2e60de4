"""A whole run: every database, every stream, other values, the verification, the summary."""

from __future__ import annotations

from typing import Final, NamedTuple

from rich.console import Console

from penstock.client.connection import ServerConnection, readable
from penstock.client.errors import CommandRefused, ServerFailed
from penstock.client.nodes import Nodes
from penstock.client.urls import Address
from penstock.migration.copy import Copied, CopiedGroup, copy_stream
from penstock.migration.plan import (
    Endpoints,
    Plan,
    StreamGone,
    StreamRefused,
    TargetAction,
    make_plan,
)
from penstock.migration.read import (
    Keys,
    count_entries,
    find_keys,
    list_databases,
    read_groups,
    require_different_databases,
)
from penstock.migration.report import (
    Bar,
    Depth,
    Progress,
    StreamOutcome,
    SummaryRow,
    left_out,
    list_names,
    print_summary,
)
from penstock.migration.values import READING, STRING, copy_values
from penstock.migration.verify import verify_stream
from penstock.terminal import plural, shown

_BATCH: Final = 50
"""Keys at a time; a value may be large."""


class MigrationOptions(NamedTuple):
    """The options of the command line."""

    source: Address | str
    """A server, or the path of an RDB file."""
    target: Address
    globs: tuple[bytes, ...] = (b"*",)
    databases: tuple[int, ...] | None = None
    """Numbers of databases to copy, each into the one of the same number; an empty tuple for all
    that hold keys, ``None`` for those that the addresses name, and the first of a file."""
    replace: bool = False
    strings: bool = False
    values: bool = False
    """Whether values of all types are copied, and not only streams."""
    depth: Depth = Depth.FULL
    dry_run: bool = False

    @property
    def copied_kinds(self) -> frozenset[str]:
        """What TYPE says of the values that are copied beside streams."""
        if self.values:
            return frozenset(kind.decode() for kind in READING)
        return frozenset({STRING.decode()} if self.strings else ())


AGAIN: Final = "what was copied is kept, and the same command goes on from there"

_INTENTIONS: Final = {
    TargetAction.COPY: "would be copied",
    TargetAction.CONTINUE: "would be brought up to date",
    TargetAction.REPLACE: "would replace what the target has",
}


def run(options: MigrationOptions, console: Console) -> bool:
    """Copies and verifies; whether everything is equal then. Raises :class:`ClientError`."""
    rows: list[SummaryRow] = []
    fine = True
    assert not isinstance(options.source, str)
    for source_db, target_db in _database_pairs(options.source, options):
        with (
            Nodes("source", options.source, source_db) as source,
            Nodes("target", options.target, target_db) as target,
            readable(*source.all, *target.all),
        ):
            for node in target.all:
                node.require_counters()
            require_different_databases(source, target)
            console.print(f"{source.name} -> {target.name}", highlight=False, markup=False)
            prefix = f"{source_db}: " if options.databases is not None else ""
            migration = _Migration(source, target, options, console, prefix)
            fine &= migration.run()
            rows += (row for _, row in sorted(migration.rows.items()))
    print_summary(console, rows)
    return fine and all(row.fine for row in rows)


def _database_pairs(source: Address, options: MigrationOptions) -> list[tuple[int, int]]:
    """Return the numbers of the databases on the source and on the target."""
    if options.databases is None:
        return [(source.db or 0, options.target.db or 0)]
    numbers = list(options.databases)
    if not numbers:
        with ServerConnection("source", source, 0) as connection, readable(connection):
            numbers = list_databases(connection)
    return [(number, number) for number in numbers]


class _Migration:
    """The work on one database."""

    def __init__(
        self, source: Nodes, target: Nodes, options: MigrationOptions, console: Console, prefix: str
    ) -> None:
        self.rows: dict[bytes, SummaryRow] = {}
        """The row of each stream in the summary."""
        self._source = source
        self._target = target
        self._options = options
        self._console = console
        self._prefix = prefix
        self._progress = Bar(console) if console.is_terminal else Progress(console)

    def run(self) -> bool:
        """Does the work; whether all other values are equal that were to be copied."""
        keys = find_keys(self._source, self._options.globs)
        self._list_left_out(keys)
        for key, error in keys.refused.items():
            self._fail(key, error)
        if self._options.dry_run:
            self._plan(keys.streams)
        elif keys.streams:
            self._migrate(keys.streams)
        copied = self._options.copied_kinds
        chosen = {kind: names for kind, names in keys.others.items() if kind in copied}
        return not chosen or self._copy_values(chosen)

    def _list_left_out(self, keys: Keys) -> None:
        copied = self._options.copied_kinds
        others = {kind: names for kind, names in keys.others.items() if kind not in copied}
        for line in left_out(others):
            self._say(line)

    def _endpoints(self, key: bytes) -> Endpoints:
        return Endpoints(self._source.of(key), self._target.of(key))

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False)

    # --- streams -----------------------------------------------------------------------------

    def _migrate(self, streams: list[bytes]) -> None:
        try:
            if copied := self._copy(streams):
                self._verify(copied)
        except ServerFailed as error:
            raise ServerFailed(f"{error}; {AGAIN}") from error

    def _plan(self, streams: list[bytes]) -> None:
        for key in streams:
            try:
                plan = make_plan(self._endpoints(key), key, self._options.replace)
                groups = read_groups(self._source.of(key), key)
            except (CommandRefused, StreamGone, StreamRefused) as error:
                self._fail(key, error)
                continue
            pending = sum(group.pending for group in groups)
            self.rows[key] = SummaryRow(
                self._name(key),
                StreamOutcome.PLANNED,
                _INTENTIONS[plan.action],
                plan.source.length,
                len(groups),
                pending,
            )

    def _copy(self, streams: list[bytes]) -> list[Copied]:
        """Copies what can be copied."""
        done: list[Copied] = []
        count = count_entries(self._source, streams)
        with self._progress.over("Copying", len(streams), count) as progress:
            for key in streams:
                try:
                    done.append(self._copy_one(key))
                except (CommandRefused, StreamGone, StreamRefused) as error:
                    self._fail(key, error)
                    progress.end(f"{self._name(key)}: {error}")
        return done

    def _copy_one(self, key: bytes) -> Copied:
        endpoints = self._endpoints(key)
        plan = make_plan(endpoints, key, self._options.replace)
        self._progress.skip(plan.present)
        copied = copy_stream(endpoints, plan, self._progress.advance)
        self._progress.end(f"{self._name(key)}: {_describe(plan, copied)}")
        return copied

    def _verify(self, copied: list[Copied]) -> None:
        """Compares what has been copied."""
        count = sum(each.plan.source.length for each in copied)
        with self._progress.over("Verifying", len(copied), count) as progress:
            for each in copied:
                try:
                    self._verify_one(each)
                except (CommandRefused, StreamGone) as error:
                    self._fail(each.plan.key, error)
                progress.end("")

    def _verify_one(self, copied: Copied) -> None:
        endpoints = self._endpoints(copied.plan.key)
        found = verify_stream(endpoints, copied, self._options.depth, self._progress.advance)
        outcome = StreamOutcome.DIFFERS if found.differences else StreamOutcome.EQUAL
        self.rows[copied.plan.key] = SummaryRow(
            self._name(copied.plan.key),
            outcome,
            "; ".join(found.differences + found.notes),
            copied.plan.source.length,
            len(copied.groups),
            _pending(copied.groups),
            copied.added,
        )

    def _fail(self, key: bytes, error: Exception) -> None:
        outcome = (
            StreamOutcome.REFUSED if isinstance(error, StreamRefused) else StreamOutcome.FAILED
        )
        self.rows[key] = SummaryRow(self._name(key), outcome, str(error))

    def _name(self, key: bytes) -> str:
        return self._prefix + shown(key)

    # --- other values ------------------------------------------------------------------------

    def _copy_values(self, chosen: dict[str, list[bytes]]) -> bool:
        keys = sorted(key for names in chosen.values() for key in names)
        name = "string" if self._options.strings and not self._options.values else "value"
        replace, dry_run = self._options.replace, self._options.dry_run
        kinds = frozenset(kind.encode() for kind in self._options.copied_kinds)
        try:
            result = copy_values(self._source, self._target, keys, kinds, replace, dry_run)
        except CommandRefused as error:
            self._say(f"{name}s: {error}")
            return False
        verb = "to be copied" if dry_run else "copied"
        self._say(
            f"{plural(len(keys), name)}: {len(result.copied):,} {verb},"
            f" {len(result.equal):,} there already"
        )
        if result.refused:
            names = list_names(result.refused)
            self._say(f"refused, the target has something else there (see --replace): {names}")
        if result.differing:
            self._say(f"not as they were written: {list_names(result.differing)}")
        return not result.refused and not result.differing


def _describe(plan: Plan, copied: Copied) -> str:
    before = f" to the {plan.present:,} there" if plan.present else ""
    groups = plural(len(copied.groups), "group")
    pending = plural(_pending(copied.groups), "pending entry")
    return f"{plural(copied.added, 'entry')} added{before}; {groups}, {pending}"


def _pending(groups: list[CopiedGroup]) -> int:
    return sum(group.pending for group in groups)
