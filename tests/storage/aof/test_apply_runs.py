"""Runs of XADD are loaded as single commands are: the same state, the same errors."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from storage.aof.apply_commands import Restorer
from storage.aof.framing import Annotation, Command, LoadError
from storage.aof.reader import Damaged, Reader, Tail
from storage.aof.snapshot import snapshot
from storage.engine.stream import Stream
from storage.errors import StorageFailure
from storage.keyspace.databases import Keyspace
from tests.storage.aof.disks import MemoryDisk
from tests.storage.aof.samples import EXEC, MULTI, encoded
from tests.support.bits import flips
from tests.support.checksum_lines import with_lines
from tests.support.examples import scaled

SETTINGS = settings(
    max_examples=scaled(300), deadline=None, suppress_health_check=list(HealthCheck)
)

KEYS = st.sampled_from([b"s", b"other"])
IDS = st.one_of(
    st.builds(
        b"%d-%d".__mod__,
        st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 2, 999, 1000, 5000, 2**64 - 1, 2**64])),
    ),
    st.sampled_from([b"7", b"07-1", b"7-01", b"+7-1", b"7-", b"-7", b"*", b"7-x", b"", b"7-1-1"]),
)
VALUES = st.one_of(
    st.sampled_from([b"", b"v", b"19.8", b"a\r\nb", b"\r\n", b"v" * 200, b"v" * 4097]),
    st.binary(max_size=5),
)
ADDITIONS = st.builds(
    lambda name, key, entry_id, names, values: [
        name,
        key,
        entry_id,
        *(word for pair in zip(names, values, strict=False) for word in pair),
    ],
    st.sampled_from([b"XADD", b"XADD", b"xadd"]),
    KEYS,
    IDS,
    st.sampled_from([[b"f"], [b"f", b"g"], [b"g"], []]),
    st.lists(VALUES, min_size=2, max_size=2),
)
OTHERS: st.SearchStrategy[list[Command]] = st.sampled_from(
    [
        [[b"SELECT", b"1"]],
        [[b"SELECT", b"0"]],
        [[b"XADD", b"s", b"MAXLEN", b"=", b"2", b"9-9", b"f", b"v"]],
        [[b"XTRIM", b"s", b"MAXLEN", b"1"]],
        [[b"XDEL", b"s", b"1-1"]],
        [MULTI, [b"XADD", b"s", b"8-1", b"f", b"v"], EXEC],
        [[b"XADD", b"s", b"8-2", b"f"]],
    ]
)
ASCENDING = st.builds(
    lambda key, first, count: [
        [b"XADD", key, b"%d-%d" % (first + place // 3, place % 3), b"f", b"%d" % place]
        for place in range(count)
    ],
    KEYS,
    st.integers(1, 20_000),
    st.integers(1, 30),
)
COMMANDS = st.lists(
    st.one_of(ASCENDING, ASCENDING, ADDITIONS.map(lambda one: [one]), OTHERS), max_size=12
).map(lambda parts: [command for part in parts for command in part])


class Loaded:
    """What comes of loading a file, and whether it ended well."""

    def __init__(self, data: bytes, *, runs: bool, chunk: int = 500) -> None:
        keyspace = Keyspace()
        keyspace.limits.max_entries = 10
        keyspace.limits.max_bytes = 200
        self.stream: object = None
        self.error: object = None
        self.taken = 0
        self._restorer = Restorer(keyspace, 0)
        take_run = self._take if runs else None
        self.reader = Reader("file", MemoryDisk(data), chunk=chunk, take_run=take_run)
        try:
            self._load()
        except Damaged as error:
            self.error = str(error)
        self.tail: Tail | None = self.reader.tail
        self.commands = self.reader.commands
        self.state = b"".join(snapshot(keyspace))
        for database in keyspace.databases:
            for value in database.values.values():
                assert isinstance(value, Stream)
                value.check()

    def _take(self, data: bytes, at: int) -> tuple[int, int, list[Annotation]]:
        end, count, lines = self._restorer.take_run(data, at)
        assert (end > at) == (count > 0)
        self.taken += count
        return end, count, lines

    def _load(self) -> None:
        for batch in self.reader:
            for place, command in enumerate(batch.commands):
                try:
                    self._restorer.apply(command)
                except (LoadError, StorageFailure, ValueError, IndexError) as error:
                    self.error = batch.offset_of(place), type(error), str(error)
                    return

    @property
    def outcome(self) -> tuple[object, ...]:
        """All that must not depend on runs being taken."""
        return self.error, self.state, None if self.error else (self.tail, self.commands)


@SETTINGS
@given(
    commands=COMMANDS,
    cut=st.integers(0, 3),
    chunk=st.sampled_from([40, 300, 5000]),
    every=st.sampled_from([0, 1, 4]),
)
@example([[b"XADD", b"s", b"%d-0" % (ms * 500), b"f", b"v"] for ms in range(1, 40)], 0, 5000, 0)
@example([[b"XADD", b"s", b"%d-0" % (ms * 500), b"f", b"v"] for ms in range(1, 40)], 0, 100, 1)
def test_runs_give_the_state_and_the_errors_of_single_commands(
    commands: list[Command],
    cut: int,
    chunk: int,
    every: int,
) -> None:
    """Also with a checksum behind every so many commands."""
    data = written(commands, every)
    data = data[: len(data) - cut]
    expected = Loaded(data, runs=False, chunk=chunk).outcome
    assert Loaded(data, runs=True, chunk=chunk).outcome == expected


def written(commands: list[Command], every: int) -> bytes:
    """The commands as a file, written so many at a time."""
    if not every:
        return encoded(*commands)
    groups = [commands[at : at + every] for at in range(0, len(commands), every)]
    return with_lines(*(encoded(*group) for group in groups))


RUN: list[Command] = [
    [b"XADD", b"s", b"%d-0" % number, b"field", b"%d" % number] for number in range(1, 40)
]


MIDDLE = range(8 * 400, 8 * 700, 5)
"""Bits of the file of that run: two or one of each byte."""


def test_a_changed_bit_anywhere_in_a_run_is_seen_as_without_runs() -> None:
    for _, damaged in flips(encoded(*RUN), MIDDLE):
        expected = Loaded(damaged, runs=False).outcome
        assert Loaded(damaged, runs=True).outcome == expected


@pytest.mark.parametrize("runs", [True, False])
def test_each_bit_that_changes_in_a_run_with_checksums_is_found(runs: bool) -> None:
    """By its checksum, or before that is met by a command that makes no sense."""
    for _, damaged in flips(written(RUN, 1), MIDDLE):
        assert Loaded(damaged, runs=runs).error is not None


def test_a_run_goes_on_behind_checksums() -> None:
    data = written(RUN, 1)
    loaded = Loaded(data, runs=True, chunk=500)
    assert loaded.commands == len(RUN)
    assert len(RUN) - loaded.taken == 500 // len(written(RUN[:1], 1))
    assert loaded.reader.uncovered.size == 0


def test_all_but_the_first_commands_of_a_file_are_taken_as_runs() -> None:
    loaded = Loaded(encoded(*RUN), runs=True, chunk=200)
    assert loaded.commands == len(RUN)
    assert len(RUN) - loaded.taken == 200 // len(encoded(RUN[0]))


def test_other_field_names_and_another_key_begin_another_run() -> None:
    commands: list[Command] = []
    for number in range(1, 100):
        key = b"s" if number % 40 < 20 else b"t"
        names = [b"f", b"v"] if number < 50 else [b"g", b"v", b"h", b"v"]
        commands.append([b"XADD", key, b"%d-0" % number, *names])
    data = encoded(*commands)
    loaded = Loaded(data, runs=True, chunk=120)
    assert loaded.taken > 60
    assert loaded.outcome == Loaded(data, runs=False).outcome


def test_commands_that_are_for_other_servers_are_skipped_in_a_run() -> None:
    skip = [b"ECHO", encoded([b"penstock:1", b"skip", b"1"])]
    data = encoded(RUN[0], skip, *RUN[1:])
    loaded = Loaded(data, runs=True, chunk=len(encoded(RUN[0], skip)))
    assert loaded.error is None
    assert b"$3\r\n2-0\r\n" not in loaded.state
    assert b"$3\r\n3-0\r\n" in loaded.state


@pytest.mark.parametrize("limits", [(10, 200), (0, 0), (0, 400), (50, 0)])
@pytest.mark.parametrize(
    "entry_ids",
    [
        [b"7-%d" % (995 + place) for place in range(60)],
        [b"7-%d" % (5000 + place) for place in range(60)],
        [b"%d-0" % (7 + 500 * place) for place in range(60)],
    ],
    ids=["large numbers", "larger numbers", "far apart"],
)
def test_runs_of_unusual_ids_fill_the_same_blocks(
    entry_ids: list[bytes], limits: tuple[int, int]
) -> None:
    settings_of = encoded([b"penstock:1", b"settings", *(b"%d" % n for n in limits), b"1", b"1"])
    commands: list[Command] = [[b"XADD", b"s", one, b"f", b"v"] for one in entry_ids]
    data = encoded([b"ECHO", settings_of], *commands)
    loaded = Loaded(data, runs=True, chunk=300)
    assert loaded.taken > 40
    assert loaded.outcome == Loaded(data, runs=False).outcome
