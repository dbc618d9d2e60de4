"""How long each command took, and what follows from that: histograms, the slow log, the latency
monitor; and MONITOR, which is told of commands in the same place.

**Cost.** The dispatcher measures every command anyway, for INFO commandstats. All that it does
besides, unless something is to be noted, is one comparison with ``threshold`` and one increment in
a list. While somebody monitors, ``threshold`` is below zero, so that no command passes unseen.

A command that waits, or that is executed in steps, counts once, when it has ended, with the time in
which it really ran. The XADDs that the fast path adds together count with their mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from server.config.registry import Config
from server.core.table import Arguments, Command
from server.state.latency import COMMAND, FAST_COMMAND, OFF, LatencyMonitor
from server.state.monitors import Monitors, visible
from server.state.session import Session


class SlowCommand(NamedTuple):
    """A command that took long: when it had run, how long, what, and whose it was.

    ``arguments`` are cut; ``given`` is how many there were. Address and name are empty for a
    command of a script."""

    identity: int
    seconds: int
    microseconds: int
    arguments: list[bytes]
    address: bytes
    name: bytes
    given: int


class SlowLog:
    """The entries, the newest first. Which commands get in is decided by ``limit_ns``."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._next = 0
        self.entries: deque[SlowCommand] = deque()

    @property
    def limit_ns(self) -> int:
        """From how many nanoseconds on a command is logged."""
        microseconds: int = self._config.slowlog_log_slower_than
        if microseconds < 0 or not self._config.slowlog_max_len:
            return OFF
        return min(microseconds * 1000, OFF)

    def add(
        self, session: Session, command: Command, args: Arguments, nanoseconds: int, now_ms: int
    ) -> None:
        """Logs a command that has run."""
        entry = SlowCommand(
            self._next,
            now_ms // 1000,
            nanoseconds // 1000,
            self._cut(visible(command, args)),
            session.link.addr.encode("utf-8", "surrogateescape"),
            session.name,
            len(args),
        )
        self._next += 1
        self.entries.appendleft(entry)
        while len(self.entries) > self._config.slowlog_max_len:
            self.entries.pop()

    def _cut(self, args: Arguments) -> Arguments:
        """The arguments as far as the limits of an entry let them be kept."""
        most: int = self._config.slowlog_entry_max_argc
        kept = args if len(args) <= most else args[: most - 1]
        shown = [self._cut_one(arg) for arg in kept]
        if len(kept) < len(args):
            shown.append(b"... (%d more arguments)" % (len(args) - len(kept)))
        return shown

    def _cut_one(self, arg: bytes) -> bytes:
        most: int = self._config.slowlog_entry_max_string_len
        if len(arg) <= most:
            return arg
        return b"%b... (%d more bytes)" % (arg[:most], len(arg) - most)


SINGLE_NS: Final = 1_000_000
"""A slow log that begins below this wants to know of each XADD, not of the mean of many."""


class Timings:
    """The notes that are taken of the commands of a server.

    ``clock`` gives Unix milliseconds; ``watches`` is told whether every command has to be seen by
    itself."""

    def __init__(
        self, config: Config, clock: Callable[[], int], watches: Callable[[bool], None]
    ) -> None:
        self._config = config
        self._clock = clock
        self._watches = watches
        self.slow_log = SlowLog(config)
        self.latency = LatencyMonitor(config, clock)
        self.monitors = Monitors(clock)
        self.tracking = True
        """Whether histograms are kept."""
        self.threshold = OFF
        """From how many nanoseconds on the dispatcher calls :meth:`notice`."""
        self._slow_ns = self._logged_ns = OFF
        self.forget_counts()
        config.listen("latency-tracking", self._track)
        for name in ("slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold"):
            config.listen(name, lambda value: self._update())

    def forget_counts(self) -> None:
        """Sets the counters of INFO to zero; the slow log itself stays."""
        self.slow_count = 0
        """How many commands have been logged as slow."""
        self.slow_sum_ns = 0
        self.slow_max_ns = 0

    def forget_all(self) -> None:
        """Begins anew with the slow log, and with what the latency monitor has noted."""
        self.slow_log = SlowLog(self._config)
        self.latency.forget([])

    def _track(self, tracking: bool) -> None:
        self.tracking = tracking

    def _update(self) -> None:
        """Finds out from when on anything is to be noted."""
        milliseconds: int = self._config.latency_monitor_threshold
        self._logged_ns = self.slow_log.limit_ns
        self._slow_ns = min(self._logged_ns, milliseconds * 1_000_000 or OFF)
        self.threshold = -1 if self.monitors.sessions else self._slow_ns
        self._watches(self.sees_each)

    @property
    def sees_each(self) -> bool:
        """Whether every command has to be seen by itself."""
        return bool(self.monitors.sessions) or self._logged_ns < SINGLE_NS

    # --- commands -------------------------------------------------------------------------

    def count(self, session: Session, command: Command, args: Arguments, nanoseconds: int) -> None:
        """A command has ended, which ran for so long."""
        command.nanoseconds += nanoseconds
        self.record(session, command, args, nanoseconds)

    def record(self, session: Session, command: Command, args: Arguments, nanoseconds: int) -> None:
        """Record a command whose time is in its counter already."""
        command.calls += 1
        if self.tracking:
            command.durations.add(nanoseconds)
        if nanoseconds >= self._slow_ns:
            self._note_slow(session, command, args, nanoseconds)

    def count_run(self, command: Command, count: int, nanoseconds: int) -> int:
        """So many calls have run as one, which took this long together. Which of them took longer
        than others is not known: each counts with the mean, which is returned, for :meth:`notice`.
        """
        mean = nanoseconds // count
        command.calls += count
        command.nanoseconds += nanoseconds
        if self.tracking:
            command.durations.add(mean, count)
        return mean

    def notice(self, session: Session, command: Command, args: Arguments, nanoseconds: int) -> None:
        """A command has run, and has been counted, that took ``threshold`` or longer."""
        if self.monitors.sessions:
            self.monitors.show(session, command, args)
        if nanoseconds >= self._slow_ns:
            self._note_slow(session, command, args, nanoseconds)

    def announce(self, session: Session, command: Command, args: Arguments) -> None:
        """Shows a command to those who monitor: one that begins to wait, or that has failed."""
        if self.monitors.sessions:
            self.monitors.show(session, command, args)

    def announce_script(self, session: Session, args: Arguments) -> None:
        """Shows a script to those who monitor: before it runs, and so before what it calls."""
        if self.monitors.sessions:
            assert session.command is not None
            self.monitors.show_now(session, session.command, args)

    def _note_slow(
        self, session: Session, command: Command, args: Arguments, nanoseconds: int
    ) -> None:
        flags = command.flags
        self.latency.note(FAST_COMMAND if "fast" in flags else COMMAND, nanoseconds)
        if nanoseconds < self._logged_ns or "skip_slowlog" in flags:
            return
        self.slow_log.add(session, command, args, nanoseconds, self._clock())
        self.slow_count += 1
        self.slow_sum_ns += nanoseconds
        self.slow_max_ns = max(self.slow_max_ns, nanoseconds)
        command.slow_count += 1
        command.slow_sum_ns += nanoseconds
        command.slow_max_ns = max(command.slow_max_ns, nanoseconds)

    # --- clients --------------------------------------------------------------------------

    def monitor(self, session: Session) -> None:
        """Shows the client every command from now on."""
        self.monitors.join(session)
        self._update()

    def stop_monitoring(self, session: Session) -> None:
        """The client is gone, or does not want to see commands any more, if it ever did."""
        if session.monitoring:
            self.monitors.leave(session)
            self._update()
