"""The latency monitor: moments at which something held the server up, by what it was; and what of
them is shown, as a drawing and in words.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import zip_longest
from typing import Final

from server.config.registry import Config

OFF: Final = 2**62 - 1
"""More nanoseconds than anything takes. (Compiled code compares larger numbers more slowly.)"""

KEPT: Final = 160
"""How many samples of an event are kept."""

COMMAND: Final = b"command"
FAST_COMMAND: Final = b"fast-command"
"""Commands that are marked as fast, which should never take long."""
FORK: Final = b"fork"
WRITE: Final = b"aof-write"
"""The append-only file was written."""
WRITE_WAITS: Final = b"aof-write-pending-fsync"
"""It was written while a thread was syncing it, which may make the write wait."""
WRITE_BESIDE_CHILD: Final = b"aof-write-active-child"
"""It was written while a child process wrote a base."""
WRITE_ALONE: Final = b"aof-write-alone"
"""It was written while nothing else used the disk."""
FSYNC: Final = b"aof-fsync-always"
EXPIRY: Final = b"expire-cycle"

Sample = tuple[int, int]
"""Unix seconds, and the longest that it took in that second, in milliseconds."""


class Series:
    """The samples of one event: at most one sample a second."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque(maxlen=KEPT)
        self.highest = 0
        """The longest that it ever took, in milliseconds."""

    def add(self, seconds: int, milliseconds: int) -> None:
        """Notes a sample; of those of one second the longest is kept."""
        self.highest = max(self.highest, milliseconds)
        if self.samples and self.samples[-1][0] == seconds:
            milliseconds = max(milliseconds, self.samples.pop()[1])
        self.samples.append((seconds, milliseconds))


class LatencyMonitor:
    """Notes what takes ``latency-monitor-threshold`` milliseconds or more.

    ``clock`` gives Unix milliseconds; ``nanoseconds`` is a clock that never goes back."""

    def __init__(
        self,
        config: Config,
        clock: Callable[[], int],
        nanoseconds: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._config = config
        self._clock = clock
        self.nanoseconds = nanoseconds
        self.events: dict[bytes, Series] = {}

    def begin(self) -> int:
        """When something begins that is to be watched; 0 while nothing is."""
        return self.nanoseconds() if self._config.latency_monitor_threshold else 0

    def end(self, event: bytes, began: int) -> None:
        """Notes what began when :meth:`begin` said so, if it took long."""
        if began:
            self.note(event, self.nanoseconds() - began)

    def note(self, event: bytes, nanoseconds: int) -> None:
        """Notes what took so many nanoseconds, if that is long."""
        threshold: int = self._config.latency_monitor_threshold
        milliseconds = nanoseconds // 1_000_000
        if threshold and milliseconds >= threshold:
            series = self.events.setdefault(event, Series())
            series.add(self._clock() // 1000, milliseconds)

    def forget(self, events: list[bytes]) -> int:
        """Forgets these events, or all; returns how many there were."""
        found = [event for event in events or list(self.events) if event in self.events]
        for event in dict.fromkeys(found):
            del self.events[event]
        return len(dict.fromkeys(found))


ROWS: Final = 4
"""How many lines high a drawing is."""
COLUMNS: Final = 80
"""How many samples are drawn side by side; more come below."""
_MARKS: Final = "_o#"
"""The top of a column, by how far it reaches into its line."""

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))

DISABLED: Final = (
    "The latency monitor is off. CONFIG SET latency-monitor-threshold <milliseconds> turns it on:"
    " whatever holds the server up for as long as that, or longer, is noted from then on.\n"
)
NOTHING_NOTED: Final = (
    "Nothing has held the server up for as long as latency-monitor-threshold says, or longer.\n"
)

_LOG_STARTS_LATE: Final = (
    "Commands are logged as slow only from {slow} on, which is longer than what the latency monitor"
    " notes: CONFIG SET slowlog-log-slower-than {microseconds} lets the slow log name them."
)
_LOG_IS_OFF: Final = (
    "The slow log is off: CONFIG SET slowlog-log-slower-than {microseconds} lets it name the"
    " commands that take long."
)
_DISK: Final = (
    "The disk keeps the server waiting. appendfsync everysec syncs beside the commands and not"
    " before each reply; no-appendfsync-on-rewrite yes leaves the disk to a rewrite while it runs."
    " Another process that writes much to the same disk has the same effect."
)

ADVICE: Final[tuple[tuple[frozenset[bytes], str], ...]] = (
    (
        frozenset({COMMAND, FAST_COMMAND}),
        "SLOWLOG GET names the commands that took long. Many keys or entries in one command are"
        " what usually takes long: ask for fewer at a time (COUNT), and trim streams often rather"
        " than much.",
    ),
    (
        frozenset({FORK}),
        "A fork copies the tables of the process's memory: it takes longer the more memory there"
        " is, and much longer with transparent huge pages, which can be turned off for the system.",
    ),
    (frozenset({WRITE, WRITE_WAITS, WRITE_BESIDE_CHILD, WRITE_ALONE, FSYNC}), _DISK),
    (
        frozenset({EXPIRY}),
        "Many keys expire in the same moment. Times to live that differ a little spread the work.",
    ),
)
"""What may be done, by the events for which it helps."""


# --- the drawing -----------------------------------------------------------------------------


def graph(event: bytes, series: Series, now: int) -> str:
    """A column for each of the last samples, with how long ago it was written below it.

    ``now`` is Unix time in seconds."""
    taken = [milliseconds for _, milliseconds in series.samples]
    ages = [age(max(0, now - seconds)) for seconds, _ in series.samples]
    lines = [
        f"{event.decode('utf-8', 'replace')} - high {max(taken)} ms, low {min(taken)} ms"
        f" (all time high {series.highest} ms)",
        "-" * COLUMNS,
    ]
    tops = heights(taken)
    for first in range(0, len(tops), COLUMNS):
        chosen = slice(first, first + COLUMNS)
        lines += [*drawing(tops[chosen], ages[chosen]), ""]
    return "\n".join(lines) + "\n"


def heights(values: list[int]) -> list[int]:
    """How many steps high each value is drawn: the lowest at 0."""
    low, extent = min(values), max(values) - min(values) or 1
    steps = ROWS * len(_MARKS)
    return [min(steps - 1, (value - low) * steps // extent) for value in values]


def drawing(tops: list[int], ages: list[str]) -> list[str]:
    """The lines of columns side by side that are so many steps high, with their ages from the top
    to the bottom below them."""
    rows = ["".join(_mark(top, row) for top in tops) for row in reversed(range(ROWS))]
    labels = ["".join(letters) for letters in zip_longest(*ages, fillvalue=" ")]
    return [*rows, " " * len(tops), *labels]


def _mark(top: int, row: int) -> str:
    """Return the mark in a line of a column that ends at the step ``top``."""
    reached, rest = divmod(top, len(_MARKS))
    return " " if row > reached else "|" if row < reached else _MARKS[rest]


def age(seconds: int) -> str:
    """A time in its largest unit: ``42s``, ``3m``."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


# --- the words -------------------------------------------------------------------------------


def diagnosis(monitor: LatencyMonitor, threshold_ms: int, slow_log_ns: int) -> str:
    """Return a text of what was noted, and what may be done about it. ``slow_log_ns`` is from how
    many nanoseconds on commands are logged as slow."""
    if not threshold_ms:
        return DISABLED
    if not monitor.events:
        return NOTHING_NOTED
    found = [
        f"{number}. {_summary(event, series)}"
        for number, (event, series) in enumerate(monitor.events.items(), 1)
    ]
    advice = [text for events, text in ADVICE if events & monitor.events.keys()]
    if slow_log_ns > threshold_ms * 1_000_000:
        advice.append(_about_slow_log(threshold_ms, slow_log_ns))
    parts = ["The server has been held up:", *found, "", "What may help:"]
    return "\n".join([*parts, *(f"- {text}" for text in advice)]) + "\n"


def _about_slow_log(threshold_ms: int, slow_log_ns: int) -> str:
    text = _LOG_IS_OFF if slow_log_ns == OFF else _LOG_STARTS_LATE
    return text.format(slow=f"{slow_log_ns // 1_000_000} ms", microseconds=threshold_ms * 1000)


def _summary(event: bytes, series: Series) -> str:
    """How often, how long, and how far apart."""
    taken = [milliseconds for _, milliseconds in series.samples]
    mean = _mean(taken, lambda value: value)
    deviation = _mean(taken, lambda value: abs(value - mean))
    span = series.samples[-1][0] - series.samples[0][0]
    apart = f", {span / (len(taken) - 1):.2f} s apart" if len(taken) > 1 else ""
    times = "once" if len(taken) == 1 else f"in {len(taken)} seconds"
    return (
        f"{event.decode('utf-8', 'replace')}: {times} (average {mean:.0f} ms, mean deviation"
        f" {deviation:.0f} ms{apart}). Longest: {series.highest} ms."
    )


def _mean(values: list[int], of: Callable[[int], float]) -> float:
    return sum(map(of, values)) / len(values)
