"""What others wait while a policy has much to do: ``python -m tests.reliability.waits``.

One server holds a stream with many entries that nobody has read, and one whose entries all wait
for an acknowledgement. For each policy a copy of one of them is made, and the same is done to it
twice: without the policy, and with it. Meanwhile another client pings every millisecond, and the
server watches itself.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.driver import Client, pack
from benchmarks.durability import kept
from benchmarks.pinger import Pinger
from benchmarks.servers import WATCHED, Running, with_options

ENTRIES: Final = 1_000_000

WORK_S: Final = 2.0
"""How long a consumer reads and acknowledges."""
LONGEST_S: Final = 60.0
"""How long it is waited for work that the server does by itself."""

KEY: Final = "s"
GROUP: Final = "g"
OWNER: Final = "owner"
DEAD: Final = "dead"
UNREAD: Final = "unread"
PENDING: Final = "pending"
LETTERS: Final = "letters"

Settings = tuple[str, ...]


class Waits(NamedTuple):
    """The longest wait of another client, and the longest round of the server's event loop in
    processor time, both in milliseconds."""

    longest_ms: float
    busy_ms: float


# --- what the server holds ---------------------------------------------------------------------


def fill(client: Client, count: int) -> None:
    """Makes the streams of which copies are used."""
    client.feed(_entries(UNREAD, count))
    client.call("XGROUP", "CREATE", UNREAD, GROUP, 0)
    client.call("COPY", UNREAD, PENDING)
    while client.call(
        *("XREADGROUP", "GROUP", GROUP, OWNER, "COUNT", 1000, "STREAMS", PENDING, ">")
    ):
        pass
    client.feed(_letters(count))


def _entries(key: str, count: int) -> Iterator[bytes]:
    for number in range(count):
        order = ("order", number % 5000, "lane", "one", "kind", "tea", "at", "9000000000000")
        yield pack("XADD", key, _id_of(number), *order)


def _letters(count: int) -> Iterator[bytes]:
    """Dead letters of entries that their stream still has."""
    for number in range(count):
        origin = (b"dead-letter-stream", KEY, b"dead-letter-id", _id_of(number))
        group = (b"dead-letter-group", GROUP, b"dead-letter-consumer", OWNER)
        how = (b"dead-letter-deliveries", 5, b"dead-letter-time", 1, b"dead-letter-reason", "fatal")
        yield pack("XADD", LETTERS, _id_of(number), *origin, *group, *how, "kind", "tea")


def _id_of(number: int) -> str:
    return f"{number // 10 + 1}-{number % 10}"


# --- what is done ------------------------------------------------------------------------------


class Trial:
    """One client of a server that holds ``count`` entries at :data:`KEY`; what it does for a while
    takes ``patience`` times as long."""

    def __init__(self, client: Client, count: int, policed: bool, patience: float) -> None:
        self.client = client
        self.count = count
        self.policed = policed
        self._patience = patience

    def set(self, *settings: str, of: str = "group") -> None:
        """Sets policies, if there are to be any."""
        if self.policed:
            self._policy(of, "SET", *settings)

    def unset(self, *names: str, of: str = "group") -> None:
        """Takes policies away."""
        if self.policed:
            self._policy(of, "DEL", *names)

    def _policy(self, of: str, *words: str) -> None:
        where = (KEY, "GROUP", GROUP) if of == "group" else (KEY,)
        self.client.call("PENSTOCK", "POLICY", words[0], *where, *words[1:])

    def work(self, consumer: str = "worker", seconds: float = WORK_S) -> None:
        """Reads and acknowledges for a while, a hundred entries at a time."""
        end = time.monotonic() + seconds * self._patience
        while time.monotonic() < end:
            words = ("GROUP", GROUP, consumer, "COUNT", 100, "BLOCK", 1, "STREAMS", KEY, ">")
            found = self.client.call("XREADGROUP", *words)
            if found:
                ids = [entry[0] for entry in found[0][1]]
                self.client.call("XACK", KEY, GROUP, *ids)

    def acknowledge(self, portion: int, seconds: float = WORK_S) -> None:
        """Acknowledges pending entries in an order of chance, many at a time."""
        numbers = list(range(self.count))
        random.Random(1).shuffle(numbers)
        end = time.monotonic() + seconds * self._patience
        for at in range(0, self.count, portion):
            if time.monotonic() > end:
                break
            ids = [_id_of(number) for number in numbers[at : at + portion]]
            self.client.call("XACK", KEY, GROUP, *ids)

    def until(self, done: Callable[[], bool]) -> None:
        """Waits for what the server does by itself."""
        end = time.monotonic() + LONGEST_S
        while self.policed and not done() and time.monotonic() < end:
            time.sleep(0.05)

    def length(self, key: str = KEY) -> int:
        """How many entries a stream has."""
        found: int = self.client.call("XLEN", key)
        return found


def _ack_wait(trial: Trial) -> None:
    trial.set("ack-wait", "1")
    trial.work()


def _backoff(trial: Trial) -> None:
    trial.set("backoff", "1,2")
    trial.work()


def _long_ack_wait(trial: Trial) -> None:
    trial.set("ack-wait", "3600000")
    trial.work(seconds=0.5)
    trial.unset("ack-wait")
    trial.work(seconds=0.5)


def _max_deliveries(trial: Trial) -> None:
    trial.set("ack-wait", "1", "max-deliveries", "1", "dead-letter", DEAD)
    end = time.monotonic() + WORK_S
    trial.until(lambda: trial.length(DEAD) == trial.count or time.monotonic() > end)


def _read_exhausted(trial: Trial) -> None:
    trial.set("max-deliveries", "1", "dead-letter", DEAD)
    words = ("GROUP", GROUP, OWNER, "COUNT", 10_000, "STREAMS", KEY, 0)
    trial.client.call("XREADGROUP", *words)


def _claim_exhausted(trial: Trial) -> None:
    trial.set("max-deliveries", "1", "dead-letter", DEAD)
    trial.client.call("XAUTOCLAIM", KEY, GROUP, "other", 0, 0, "COUNT", 10_000)


def _fatal(trial: Trial) -> None:
    trial.set("dead-letter", DEAD)
    ids = [_id_of(number) for number in range(min(trial.count, 100_000))]
    mode = "FATAL" if trial.policed else "FAIL"
    trial.client.call("XNACK", KEY, GROUP, mode, "IDS", len(ids), *ids)


def _redrive(trial: Trial) -> None:
    """The entries of these letters are acknowledged, as it happens where letters are written."""
    if trial.policed:
        trial.client.call("PENSTOCK", "REDRIVE", DEAD, "COUNT", 100_000)
    else:
        trial.client.call("XRANGE", DEAD, "-", "+", "COUNT", 1000)


def _redrive_these(trial: Trial) -> None:
    ids = [_id_of(number) for number in range(min(trial.count, 100_000))]
    if trial.policed:
        trial.client.call("PENSTOCK", "REDRIVE", DEAD, *ids)
    else:
        trial.client.call("XDEL", DEAD, *ids)


def _reasons(trial: Trial) -> None:
    trial.set("reasons", "yes", "consumer-ttl", "1")
    trial.until(lambda: not trial.client.call("XINFO", "CONSUMERS", KEY, GROUP))


def _rate_limit(trial: Trial) -> None:
    trial.set("rate-limit", "10000/1s")
    trial.work()


def _consumer_ttl(trial: Trial) -> None:
    trial.set("consumer-ttl", "1")
    trial.until(lambda: not trial.client.call("XINFO", "CONSUMERS", KEY, GROUP))


def _max_pending(trial: Trial) -> None:
    trial.set("max-pending", "10")
    trial.work(seconds=0.5)
    trial.acknowledge(1000, seconds=0.5)


def _max_pending_consumer(trial: Trial) -> None:
    trial.set("max-pending-consumer", "50")
    trial.work(seconds=1)


def _one_lane(trial: Trial) -> None:
    trial.set("order-by", "lane")
    trial.work()


def _lanes(trial: Trial) -> None:
    trial.set("order-by", "order")
    trial.work()


def _priority(trial: Trial) -> None:
    trial.set("priority-field", "order")
    trial.work()


def _only(trial: Trial) -> None:
    trial.set("only", "kind=coffee")
    trial.work()


def _delay(trial: Trial) -> None:
    trial.set("delay-field", "at")
    trial.work()


def _paused(trial: Trial) -> None:
    trial.set("paused", "yes")
    trial.work(seconds=0.5)
    trial.unset("paused")
    trial.work(seconds=0.5)


def _retention(trial: Trial) -> None:
    trial.set("retention", "1000", of="stream")
    trial.until(lambda: trial.length() == 0)


def _retention_bytes(trial: Trial) -> None:
    trial.set("retention-bytes", "10kb", of="stream")
    trial.until(lambda: trial.length() < 1000)


def _retention_unread(trial: Trial) -> None:
    trial.set("retention", "1000", "retention-unread", "keep", of="stream")
    trial.acknowledge(1000)
    trial.work("late", seconds=0.5)


def _dead_letter_maxlen(trial: Trial) -> None:
    trial.set("dead-letter", DEAD, "dead-letter-maxlen", "10")
    trial.client.call("XNACK", KEY, GROUP, "FATAL", "IDS", 1, _id_of(0))


def _delete_acked(trial: Trial) -> None:
    trial.set("delete", "acked", of="stream")
    trial.acknowledge(1000)


def _delete_grace(trial: Trial) -> None:
    """All entries are acknowledged, and their grace ends at once."""
    trial.client.call("XGROUP", "DESTROY", KEY, GROUP)
    trial.client.call("XGROUP", "CREATE", KEY, GROUP, "$")
    trial.set("delete", "acked", "delete-grace", "9000000000000", of="stream")
    trial.set("delete-grace", "1000", of="stream")
    trial.until(lambda: trial.length() == 0)


def _auto_group(trial: Trial) -> None:
    trial.set("auto-group", "0", of="stream")
    if not trial.policed:
        trial.client.call("XGROUP", "CREATE", KEY, "new", 0)
    trial.client.call(*("XREADGROUP", "GROUP", "new", "c", "COUNT", 100, "STREAMS", KEY, ">"))


def _swap(trial: Trial) -> None:
    """A stream with policies changes places with another database."""
    trial.set("ack-wait", "3600000")
    trial.client.call("SWAPDB", 0, 1)
    trial.client.call("SWAPDB", 0, 1)


@dataclass(frozen=True)
class Step:
    """A policy that has much to do: ``act`` is done to a copy of ``source``, and to one of the
    letters at :data:`DEAD` if it needs ``letters``."""

    title: str
    act: Callable[[Trial], None]
    source: str = PENDING
    letters: bool = False


STEPS: Final = (
    Step("`ack-wait`, all of it due at once", _ack_wait),
    Step("`backoff`, all of it due at once", _backoff),
    Step("`ack-wait` of an hour, set and taken away", _long_ack_wait),
    Step("`max-deliveries`, all of it due at once", _max_deliveries),
    Step("`max-deliveries`, 10,000 read again by who has them", _read_exhausted),
    Step("`max-deliveries`, XAUTOCLAIM of 10,000", _claim_exhausted),
    Step("`dead-letter`, XNACK FATAL of 100,000", _fatal),
    Step("`dead-letter-maxlen` of a full stream", _dead_letter_maxlen, letters=True),
    Step("dead letters moved back, the first 100,000", _redrive, letters=True),
    Step("dead letters moved back, 100,000 by their IDs", _redrive_these, letters=True),
    Step("`consumer-ttl` of who has all of it", _consumer_ttl),
    Step("`reasons`, of all that a consumer had", _reasons),
    Step("`rate-limit`", _rate_limit, UNREAD),
    Step("`max-pending`", _max_pending),
    Step("`max-pending-consumer`", _max_pending_consumer, UNREAD),
    Step("`order-by`, one value", _one_lane, UNREAD),
    Step("`order-by`, 5,000 values", _lanes, UNREAD),
    Step("`order-by` set where all of it is pending", _lanes),
    Step("`priority-field`", _priority, UNREAD),
    Step("`priority-field` set where all of it is pending", _priority),
    Step("`only`, of which there is nothing", _only, UNREAD),
    Step("`delay-field`, one time for all", _delay, UNREAD),
    Step("`paused`, and no more", _paused, UNREAD),
    Step("`retention`, all of it too old", _retention, UNREAD),
    Step("`retention-bytes`, all of it too much", _retention_bytes, UNREAD),
    Step("`retention-unread keep`, acknowledged in any order", _retention_unread),
    Step("`delete acked`, acknowledged in any order", _delete_acked),
    Step("`delete-grace`, all of it over", _delete_grace),
    Step("`auto-group`", _auto_group, UNREAD),
    Step("SWAPDB with a policy", _swap, UNREAD),
)
"""All of them, in the order of the table."""


# --- measuring ---------------------------------------------------------------------------------


def measure(
    server: Running, client: Client, step: Step, count: int, patience: float, policed: bool
) -> Waits:
    """What others wait while the step is done, with the policy or without."""
    client.call("COPY", step.source, KEY, "REPLACE")
    if step.letters:
        client.call("COPY", LETTERS, DEAD, "REPLACE")
    trial = Trial(client, count, policed, patience)
    if step.act is _redrive or step.act is _redrive_these:
        client.call("XGROUP", "SETID", KEY, GROUP, 0)
        client.call("XGROUP", "DELCONSUMER", KEY, GROUP, OWNER)
    time.sleep(0.2)
    with watching(server) as seen, Pinger(server.address) as pinger:
        step.act(trial)
    client.call("DEL", KEY, DEAD)
    return Waits(pinger.values["longest_ms"], seen["cpu_ms"])


@contextmanager
def watching(server: Running) -> Iterator[dict[str, float]]:
    """What a server that watches itself has seen in the block, once that has ended."""
    seen: dict[str, float] = {}
    _ask_what_was_seen(server)
    yield seen
    seen.update(_ask_what_was_seen(server))


def _ask_what_was_seen(server: Running) -> dict[str, float]:
    before = server.output_so_far().count("loop_ms")
    server.signal(signal.SIGUSR1)
    while server.output_so_far().count("loop_ms") == before:
        time.sleep(0.01)
    seen: dict[str, float] = json.loads(server.output_so_far().splitlines()[-1])
    return seen


def measure_all(
    steps: Iterable[Step], count: int, patience: float = 1.0
) -> dict[str, tuple[Waits, Waits]]:
    """Of each step, by its title, what others wait without the policy, and with it."""
    found: dict[str, tuple[Waits, Waits]] = {}
    options = (*kept("everysec"), "--auto-aof-rewrite-percentage", "0")
    with Running(with_options(WATCHED, options)) as server, Client(server.address) as client:
        fill(client, count)
        for step in steps:
            without = measure(server, client, step, count, patience, policed=False)
            policed = measure(server, client, step, count, patience, policed=True)
            found[step.title] = without, policed
            print(step.title, without, policed, file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Measures, and prints the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.waits", description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES, help="entries (%(default)s)")
    parser.add_argument("--only", default="", help="steps whose title has this text")
    parser.add_argument("--output", type=Path, help="where the figures go")
    options = parser.parse_args()
    chosen = tuple(step for step in STEPS if options.only in step.title)
    text = json.dumps(measure_all(chosen, options.entries), indent=1)
    if options.output:
        options.output.write_text(text + "\n")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
