"""The longest round of the event loop where there is very much of one thing:
``python -m tests.reliability.rounds``.

Each case fills a server of its own, and does one thing to it; the server watches itself meanwhile,
and says how much processor time its event loop took at most before it looked at others again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.driver import Client, pack
from benchmarks.servers import WATCHED, Running, with_options
from tests.reliability.waits import watching

KEY: Final = "s"
GROUP: Final = "g"
OWNER: Final = "owner"
Act = Callable[[Client, int], None]
"""What is done by a client where there are so many."""


@dataclass(frozen=True)
class Case:
    """``act`` is done to a server that ``prepare`` has filled with ``many`` of something."""

    title: str
    many: int
    prepare: Act
    act: Act
    options: tuple[str, ...] = ()
    """With what the server is started."""


# --- many groups of one stream -----------------------------------------------------------------

ENTRIES: Final = 1000
"""How many entries each of many groups has pending."""


def _entries(count: int, *fields: str) -> Iterator[bytes]:
    for number in range(1, count + 1):
        yield pack("XADD", KEY, f"{number}-1", *(fields or ("lane", "one")))


def _groups(count: int, pending: int) -> Iterator[bytes]:
    for number in range(count):
        yield pack("XGROUP", "CREATE", KEY, f"g{number}", 0)
        words = ("GROUP", f"g{number}", OWNER, "COUNT", pending, "STREAMS", KEY, ">")
        yield pack("XREADGROUP", *words)


def _many_groups(client: Client, count: int) -> None:
    client.feed(_entries(ENTRIES))
    client.feed(_groups(count, ENTRIES), batch=10)


def _ordered_groups(client: Client, count: int) -> None:
    """All lanes are there: somebody has read each group."""
    _many_groups(client, count)
    client.call("PENSTOCK", "POLICY", "SET", KEY, "order-by", "lane")
    client.feed(_groups_read(count), batch=10)
    _settle()


def _groups_read(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield pack("XREADGROUP", "GROUP", f"g{number}", OWNER, "STREAMS", KEY, ">")


def _settle() -> None:
    """Lets the server do by itself what it has begun."""
    time.sleep(0.5)


def _set(*words: str) -> Act:
    def act(client: Client, count: int) -> None:
        client.call("PENSTOCK", "POLICY", "SET", KEY, *words)
        _settle()

    return act


def _rename(client: Client, count: int) -> None:
    client.call("RENAME", KEY, "other")
    _settle()


def _copy(client: Client, count: int) -> None:
    client.call("COPY", KEY, "other")
    _settle()


# --- one lane of many --------------------------------------------------------------------------


def _one_lane(client: Client, count: int) -> None:
    client.feed(_entries(count))
    client.call("XGROUP", "CREATE", KEY, GROUP, 0)
    words = ("GROUP", GROUP, OWNER, "COUNT", 1000, "STREAMS", KEY, ">")
    while client.call("XREADGROUP", *words):
        pass
    client.call("PENSTOCK", "POLICY", "SET", KEY, "order-by", "lane")
    _until_lanes_are_made(client)


def _until_lanes_are_made(client: Client) -> None:
    """The memory that the stream takes grows until then."""
    before = -1
    while (size := client.call("MEMORY", "USAGE", KEY)) != before:
        before = size
        time.sleep(0.5)


def _acknowledge(client: Client, count: int) -> None:
    client.call("XACK", KEY, GROUP, *[f"{number}-1" for number in range(1, count // 10 + 1)])


def _acknowledge_backwards(client: Client, count: int) -> None:
    client.call(
        "XACK", KEY, GROUP, *[f"{number}-1" for number in range(count, count * 9 // 10, -1)]
    )


def _delete_consumer(client: Client, count: int) -> None:
    client.call("XGROUP", "DELCONSUMER", KEY, GROUP, OWNER)


# --- many streams, and what is made of them -----------------------------------------------------


def _nothing(client: Client, count: int) -> None:
    """The server is as it starts."""


def _make_streams(client: Client, count: int) -> None:
    client.feed(pack("XADD", f"s:{number}", "1-1", "f", "v") for number in range(count))


ONE_LINE: Final = ("--stream-policy", "s:*", "*", "retention", "1d")
"""A line with a policy for all of these streams."""


def _policed(client: Client, count: int) -> None:
    client.feed(pack("XADD", f"s:{number}", "*", "f", "v") for number in range(count))
    _settle()


def _swap(client: Client, count: int) -> None:
    client.call("SWAPDB", 0, 1)
    _settle()


def _flush(client: Client, count: int) -> None:
    client.call("FLUSHALL")
    _settle()


def _chain(client: Client, count: int) -> None:
    """Each stream has the next one for its dead letters; the first has a letter to come."""
    policy = ("PENSTOCK", "POLICY", "SET")
    client.feed(pack("XADD", f"d:{number}", "1-1", "f", "v") for number in range(count))
    client.feed(
        pack(*policy, f"d:{number}", "max-deliveries", 1, "dead-letter", f"d:{number + 1}")
        for number in range(count)
    )
    client.call("XGROUP", "CREATE", "d:0", GROUP, 0)
    client.call("XREADGROUP", "GROUP", GROUP, OWNER, "STREAMS", "d:0", ">")


def _bury(client: Client, count: int) -> None:
    client.call("XNACK", "d:0", GROUP, "FATAL", "IDS", 1, "1-1")
    _settle()


# --- many nodes, many groups, and what goes of the stream by itself ----------------------------


def _many_nodes(client: Client, count: int) -> None:
    client.call("CONFIG", "SET", "stream-node-max-entries", 1)
    client.feed(_entries(count))


# --- long replies, and messages for many --------------------------------------------------------


def _stats(client: Client, count: int) -> None:
    client.call("PENSTOCK", "STATS", KEY)


def _stats_of_one(client: Client, count: int) -> None:
    client.call("PENSTOCK", "STATS", KEY, GROUP)


def _few_groups(client: Client, count: int) -> None:
    client.call("XADD", KEY, "1-1", "f", "v")
    client.feed(pack("XGROUP", "CREATE", KEY, f"g{number}", 0) for number in range(count))


def _consumers(client: Client, count: int) -> None:
    client.call("XADD", KEY, "1-1", "f", "v")
    client.call("XGROUP", "CREATE", KEY, GROUP, 0)
    client.feed(
        pack("XGROUP", "CREATECONSUMER", KEY, GROUP, f"c{number}") for number in range(count)
    )


def _tell_consumers(client: Client, count: int) -> None:
    client.call("XINFO", "CONSUMERS", KEY, GROUP)


def _numbers(client: Client, count: int) -> None:
    client.call("EVAL", NUMBERS, 0, count)


NUMBERS: Final = "local t = {} for i = 1, tonumber(ARGV[1]) do t[i] = i end return t"

READERS: Final = 300
"""How many wait for IDs to come while others add."""


def _await(client: Client, clients: int, request: tuple[str | int, ...], added: int) -> None:
    """So many clients wait with the same request while entries are added in a pipeline."""
    with ExitStack() as waiting:
        for number in range(clients):
            reader = waiting.enter_context(Client(client.address))
            reader.send(pack(*(f"c{number}" if word == OWNER else word for word in request)))
        _settle()
        client.send(b"".join(pack("XADD", KEY, "*", "f", "v") for _ in range(added)))
        for _ in range(added):
            client.read()
        _settle()


def _add_for_later_readers(client: Client, count: int) -> None:
    _await(client, READERS, ("XREAD", "BLOCK", 0, "STREAMS", KEY, f"{2**50}-0"), count)


def _add_for_a_group(client: Client, count: int) -> None:
    request = ("XREADGROUP", "GROUP", GROUP, OWNER, "BLOCK", 0, "STREAMS", KEY, ">")
    _await(client, count, request, count)


def _one_group(client: Client, count: int) -> None:
    client.call("XGROUP", "CREATE", KEY, GROUP, "$", "MKSTREAM")


EVENTS: Final = 1000
"""How many entries are added in a pipeline while others hear of each."""


def _notifying(client: Client, count: int) -> None:
    client.call("CONFIG", "SET", "notify-keyspace-events", "Et")


def _add_for_listeners(client: Client, count: int) -> None:
    """So many clients hear of each entry."""
    with ExitStack() as listening:
        for _ in range(count):
            listener = listening.enter_context(Client(client.address))
            listener.call("SUBSCRIBE", "__keyevent@0__:xadd")
        client.feed(_entries(EVENTS), batch=EVENTS)


CASES: Final = (
    Case(
        "`order-by` set for 1,000 groups of 1,000 pending entries",
        *(1000, _many_groups, _set("order-by", "lane")),
    ),
    Case(
        "another policy set for 1,000 groups with `order-by`",
        *(1000, _ordered_groups, _set("ack-wait", "1d")),
    ),
    Case("RENAME of a stream with 1,000 groups with `order-by`", 1000, _ordered_groups, _rename),
    Case("COPY of a stream with 1,000 groups with `order-by`", 1000, _ordered_groups, _copy),
    Case("XACK of 20,000 of a lane of 200,000", 200_000, _one_lane, _acknowledge),
    Case("XACK of the last 20,000, backwards", 200_000, _one_lane, _acknowledge_backwards),
    Case("XGROUP DELCONSUMER of who has a lane of 200,000", 200_000, _one_lane, _delete_consumer),
    Case("150,000 new streams", 150_000, _nothing, _make_streams),
    Case("SWAPDB of 150,000 streams with a policy", 150_000, _policed, _swap, ONE_LINE),
    Case("FLUSHALL of 150,000 streams with a policy", 150_000, _policed, _flush, ONE_LINE),
    Case("a burial in a chain of 100,000 dead-letter streams", 100_000, _chain, _bury),
    Case(
        "`retention-bytes` set for 200,000 nodes",
        *(200_000, _many_nodes, _set("retention-bytes", "1mb")),
    ),
    Case(
        "`retention-unread keep` with 2,000 groups",
        *(2000, _many_groups, _set("retention", "1d", "retention-unread", "keep")),
    ),
    Case("PENSTOCK STATS of 20,000 groups", 20_000, _few_groups, _stats),
    Case("PENSTOCK STATS of 100,000 consumers", 100_000, _consumers, _stats_of_one),
    Case("XINFO CONSUMERS of 100,000", 100_000, _consumers, _tell_consumers),
    Case("a script that answers 1,000,000 numbers", 1_000_000, _nothing, _numbers),
    Case(
        "XADD of 5,000 in a pipeline, 300 wait for IDs to come",
        *(5000, _one_group, _add_for_later_readers),
    ),
    Case(
        "XADD of 5,000 in a pipeline, 5,000 readers of a group wait",
        *(5000, _one_group, _add_for_a_group),
    ),
    *(
        Case(
            f"XADD of 1,000 in a pipeline, 300 hear of each, appendonly {kept}",
            *(300, _notifying, _add_for_listeners, ("--appendonly", kept)),
        )
        for kept in ("no", "yes")
    ),
)
"""All of them, in the order of the table."""


def measure(case: Case, scale: float) -> float:
    """Return the longest round, in milliseconds of processor time."""
    many = max(int(case.many * scale), 1)
    with (
        Running(with_options(WATCHED, case.options)) as server,
        Client(server.address) as client,
    ):
        case.prepare(client, many)
        with watching(server) as seen:
            case.act(client, many)
        return seen["cpu_ms"]


def measure_all(cases: Iterable[Case], scale: float = 1.0) -> dict[str, float]:
    """Return the longest round of each case, by its title."""
    found: dict[str, float] = {}
    for case in cases:
        found[case.title] = measure(case, scale)
        print(case.title, round(found[case.title], 1), file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.rounds", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose title has this text")
    parser.add_argument("--scale", type=float, default=1.0, help="the part of it (%(default)s)")
    options = parser.parse_args()
    chosen = tuple(case for case in CASES if options.only in case.title)
    print(json.dumps(measure_all(chosen, options.scale), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
