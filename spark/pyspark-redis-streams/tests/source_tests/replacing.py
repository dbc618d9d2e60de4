"""What is done to a stream and its group when a query has read it, and what comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import redis

from pyspark_redis_streams.errors import DataLossError
from source_tests.driving import Query, url_of

READ: Final = 1000
"""Entries that the query has read before."""


def add(client: redis.Redis, ids: Iterable[int]) -> None:
    """Adds entries to the stream."""
    with client.pipeline(transaction=False) as pipeline:
        for id in ids:
            pipeline.xadd("s", {"f": "v"}, id=f"{id}-0")
        pipeline.execute()


def trim(client: redis.Redis, first: int) -> None:
    """Leaves entries from that one on."""
    client.xtrim("s", minid=f"{first}-0", approximate=False)


Disturb = Callable[[redis.Redis], Iterable[int]]
"""Does something to the stream or the group, and says which entries came that were not read."""


@dataclass(frozen=True)
class Case:
    """``lost`` is how many entries nobody can read any more with ``continue``.

    ``says`` is what the query says when it stops, by mode. ``copied_at`` is how many entries had
    been read when the copy was made that is restored, and ``copied`` how many there were.
    """

    title: str
    says: Mapping[str, str]
    disturb: Disturb
    lost: int = 0
    copied_at: int = READ
    copied: int = READ


@dataclass
class Outcome:
    """What a query has ``said`` with ``fail``, and ``again`` in a run after one with ``continue``.

    ``named`` are the warnings with ``continue``; rows are ``missing`` and ``twice`` after all.
    """

    said: str
    missing: int
    twice: int
    named: list[str]
    again: str


def options(client: redis.Redis, mode: str, **more: str) -> dict[str, str]:
    """Options of a query of either mode."""
    usual = {"url": url_of(client), "subscribe": "s", "startingOffsets": "earliest"}
    group = {"mode": "group", "groupId": "g", "consumerName": "q"} if mode == "group" else {}
    return {**usual, **group, "pollIntervalMs": "0", "maxOffsetsPerTrigger": "100", **more}


def keep_copy(client: redis.Redis) -> None:
    """Keeps a copy of the stream with its groups."""
    client.set("copy", client.dump("s") or b"")


def restore(client: redis.Redis) -> None:
    """Puts the copy in the place of the stream."""
    client.restore("s", 0, client.get("copy") or b"", replace=True)


def rows_after(query: Query, **options: str) -> str:
    """Runs a query to the end of what is there; what it has said if it was stopped."""
    try:
        query.restart(**options)
        query.drain()
    except DataLossError as error:
        return str(error)
    return ""


def try_case(
    client: redis.Redis, case: Case, mode: str, warnings: Callable[[], list[str]]
) -> tuple[Outcome, Query]:
    """Has a query read, disturbs it, and goes on with ``fail``, ``continue`` and ``fail`` again."""
    add(client, range(1, case.copied + 1))
    query = Query(options(client, mode))
    while len(query.rows) < case.copied_at:
        query.step()
    keep_copy(client)
    add(client, range(case.copied + 1, READ + 1))
    query.drain()
    query.close()
    wanted = [*case.disturb(client)]
    said = rows_after(query, maxOffsetsPerTrigger="10000")
    rows_after(query, onDataLoss="continue")
    named = warnings()
    add(client, range(5001, 5011))
    again = rows_after(query, onDataLoss="fail")
    counts = Counter(query.ids)
    missing = sum(f"{id}-0" not in counts for id in (*wanted, *range(5001, 5011)))
    return Outcome(said, missing, sum(counts.values()) - len(counts), named, again), query


def replaced_and_trimmed(client: redis.Redis) -> range:
    client.delete("s")
    add(client, range(1001, 3001))
    trim(client, 1501)
    return range(1001, 3001)


def renamed_and_replaced(client: redis.Redis) -> range:
    client.rename("s", "old")
    add(client, range(2001, 3501))
    return range(2001, 3501)


def refilled_from_below(client: redis.Redis) -> range:
    client.flushall()
    add(client, range(901, 2401))
    return range(1001, 2401)


def replaced_with_group(client: redis.Redis) -> range:
    client.delete("s")
    add(client, range(2001, 2501))
    client.xgroup_create("s", "g", "$")
    add(client, range(2501, 3501))
    return range(2001, 3501)


def restored(client: redis.Redis) -> range:
    restore(client)
    add(client, range(1001, 1101))
    return range(1001, 1101)


def restored_without_group(client: redis.Redis) -> range:
    restore(client)
    client.xgroup_destroy("s", "g")
    add(client, range(1001, 1101))
    return range(1001, 1101)


def group_at(place: str, number: int | None, trimmed: int = 0) -> Disturb:
    """The group is made again at a place, with the number that is given."""

    def disturb(client: redis.Redis) -> range:
        add(client, range(1001, 1201))
        client.xgroup_destroy("s", "g")
        client.xgroup_create("s", "g", place, entries_read=number)
        add(client, range(1201, 1301))
        if trimmed:
            trim(client, trimmed)
        return range(1001, 1301)

    return disturb


def group_moved(place: str, number: int | None) -> Disturb:
    """The group is moved to a place, with the number that is given."""

    def disturb(client: redis.Redis) -> range:
        add(client, range(1001, 1201))
        client.xgroup_setid("s", "g", place, entries_read=number)
        add(client, range(1201, 1301))
        return range(1001, 1301)

    return disturb


def in_both(text: str) -> dict[str, str]:
    """What is said in either mode."""
    return {"offsets": text, "group": text}


MADE_AGAIN = (
    "stream 's' was deleted and created again: it was read up to 1000-0, entry 1000, of which none "
    "is left"
)
LOST_END = (
    "stream 's' lost its end, or was deleted and created again: it was read up to 1000-0, entry "
    "1000, and"
)
DESTROYED = (
    "stream 's': group 'g' was destroyed, or the stream was deleted and created again; the query "
    "stood at 1000-0, entry 1000. Go on from there with XGROUP CREATE s g 1000-0 ENTRIESREAD 1000"
)


def moved(stands: str, way: str, what: str) -> dict[str, str]:
    """What is said of a group that is elsewhere."""
    where = f"stands at {stands}, {way} 1000-0, where this query left it: {what}"
    return {"group": f"stream 's': group 'g' {where}"}


BACK = (
    "would be delivered again. Go on from there with XGROUP SETID s g 1000-0 ENTRIESREAD 1000, or "
    "with onDataLoss=continue"
)
BACK_900 = BACK.replace("READ 1000", "READ 900")
ON = (
    "were delivered to nobody. Read them after XGROUP SETID s g 1000-0 ENTRIESREAD 1000, or go on "
    "without them with onDataLoss=continue"
)

CASES: Final = (
    Case(
        "a stream made again with more entries and higher IDs, the first 500 trimmed",
        in_both(f"{MADE_AGAIN}; up to 500 entries after 1000-0 and before 1501-0 removed"),
        replaced_and_trimmed,
        lost=500,
    ),
    Case(
        "a stream renamed, and another one in its place", in_both(MADE_AGAIN), renamed_and_replaced
    ),
    Case(
        "FLUSHALL, and a stream that begins with IDs that were read",
        {
            "offsets": f"{LOST_END} 900 entries more than were added since lie above; up to "
            "100 entries at or below are passed over",
            "group": DESTROYED,
        },
        refilled_from_below,
    ),
    Case(
        "a stream made again with 500 entries, and the group behind them",
        {"group": MADE_AGAIN},
        replaced_with_group,
        lost=500,
    ),
    Case(
        "stream and group restored from a copy, made when 100 of 1,000 entries were read",
        moved("100-0", "before", f"900 entries between {BACK}"),
        restored,
        copied_at=100,
    ),
    Case(
        "the same, from a copy with 900 of the 1,000 entries",
        {
            "offsets": f"{LOST_END} 100 entries more than were added since lie above; up to 900 "
            "entries at or below are passed over",
            **moved("100-0", "before", f"800 entries between {BACK_900}"),
        },
        restored,
        copied_at=100,
        copied=900,
    ),
    Case(
        "the same, and the copy is without the group",
        {"group": DESTROYED},
        restored_without_group,
        copied_at=100,
    ),
    Case(
        "the group made again at $, behind 200 entries that were not delivered",
        moved("1200-0", "beyond", f"200 entries between {ON}"),
        group_at("$", None),
        lost=200,
    ),
    Case(
        "the same, with ENTRIESREAD",
        moved("1200-0", "beyond", f"200 entries between {ON}"),
        group_at("$", 1200),
        lost=200,
    ),
    Case(
        "the group made again at $, and everything up to there trimmed",
        moved("1200-0", "beyond", f"250 entries between {ON}"),
        group_at("$", None, trimmed=1251),
        lost=250,
    ),
    Case(
        "the group made again at 0",
        moved("0-0", "before", f"1000 entries between {BACK}"),
        group_at("0", None),
    ),
    Case(
        "XGROUP SETID behind 200 entries that were not delivered",
        moved("1200-0", "beyond", f"200 entries between {ON}"),
        group_moved("1200-0", None),
        lost=200,
    ),
    Case(
        "the same SETID with ENTRIESREAD",
        moved("1200-0", "beyond", f"200 entries between {ON}"),
        group_moved("1200-0", 1200),
        lost=200,
    ),
    Case(
        "XGROUP SETID to before 400 entries that were read",
        moved("600-0", "before", f"400 entries between {BACK}"),
        group_moved("600-0", 600),
    ),
)
