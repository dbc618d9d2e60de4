"""The series of streams, groups and consumers: what they are called, and how they are read.

The tables are in the order of the values that :func:`stream_values`, :func:`group_values` and
:func:`consumer_values` return.
"""

from __future__ import annotations

from typing import Final

from server.delivery.dead_letters import FATAL, TOO_OFTEN
from server.delivery.group_ref import GroupRef, RuledGroup
from server.delivery.health import HealthFacts, age_of
from server.delivery.stats import kept_back
from server.state.session import Link
from server.web.metrics.text import HISTOGRAM, Family, Value, families
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.pending import HIGHEST, Consumer
from storage.engine.pending_summary import PendingSummary
from storage.engine.stream import Stream, signed

STREAMS: Final = families("""
gauge redis_stream_length: Entries in the stream.
gauge redis_stream_groups: Consumer groups of the stream.
gauge redis_stream_first_entry_id: Milliseconds of the ID of the first entry.
gauge redis_stream_last_entry_id: Milliseconds of the ID of the last entry.
gauge redis_stream_last_generated_id: Milliseconds of the highest ID ever used.
gauge redis_stream_max_deleted_entry_id: Milliseconds of the highest ID ever deleted.
gauge redis_stream_radix_tree_keys: Blocks in which the entries are kept.
gauge redis_stream_radix_tree_nodes: Size of the tree that would file the blocks in Redis; not told
    of long streams.
counter redis_stream_entries_added_total: Entries that were ever added.
""")

GROUPS: Final = families("""
gauge redis_stream_group_consumers: Consumers of the group.
gauge redis_stream_group_messages_pending: Entries delivered, not acknowledged.
gauge redis_stream_group_last_delivered_id: Milliseconds of the ID of the entry that was delivered
    last.
gauge redis_stream_group_entries_read: Entries read, as XINFO GROUPS tells it if it can.
gauge redis_stream_group_lag: Entries not delivered, as XINFO GROUPS tells it if it can.
gauge penstock_stream_group_lag_entries: Entries of the stream that were not delivered to the group
    yet, counted.
gauge penstock_stream_group_lag_seconds: Age of the first entry that was not delivered yet, by its
    ID; 0 if there is none.
gauge penstock_stream_group_oldest_pending_age_seconds: How long the entry that has waited longest
    has been with its consumer; 0 if none waits.
counter penstock_stream_group_redeliveries_total: Entries delivered again, by claiming them or from
    a consumer's own history.
counter penstock_stream_group_acked_total: Entries acknowledged.
counter penstock_stream_group_claims_total: Entries that were claimed.
counter penstock_stream_group_released_total: Entries given back with XNACK.
counter penstock_stream_group_bad_delays_total: Entries that were delivered at once because their
    field for delay-field holds no time.
counter penstock_stream_group_dead_letters_total{reason="max-deliveries"}: Entries of the group that
    became dead letters, by their reason.
counter penstock_stream_group_dead_letters_total{reason="fatal"}: The same.
gauge penstock_stream_group_dead_letters_lately: Those of the last ten minutes.
gauge penstock_stream_group_unowned_entries: Pending entries without an owner: given back, or kept
    back by a policy.
gauge penstock_stream_group_kept_back{reason="turn"}: Those of them that a policy keeps back: for
    their turn, for their time, or for their time after they were given back; and while rate-limit
    lets none through, the entries that were not delivered yet.
gauge penstock_stream_group_kept_back{reason="time"}: The same.
gauge penstock_stream_group_kept_back{reason="backoff"}: The same.
gauge penstock_stream_group_kept_back{reason="rate"}: The same.
gauge penstock_stream_group_policies: Whether the group has policies.
gauge penstock_stream_group_parked_readers: Clients that wait for entries of the group.
gauge penstock_stream_group_oldest_consumer_idle_seconds: How long the consumer has not asked that
    has been idle longest; 0 without consumers.
gauge penstock_stream_group_troubles: How many rules say that the group is in trouble: an entry is
    pending for long, or was delivered often; nobody is there to read; entries wait for long.
""")

CONSUMERS: Final = families("""
gauge redis_stream_group_consumer_messages_pending: Entries delivered to the consumer, not
    acknowledged.
gauge redis_stream_group_consumer_idle_seconds: How long the consumer has not asked.
counter penstock_stream_group_consumer_acked_total: Entries that the consumer had and that were
    acknowledged.
counter penstock_stream_group_consumer_redeliveries_total: Entries delivered to the consumer that
    had been delivered before.
gauge penstock_stream_group_consumer_gone_seconds: How long ago the client went that was the
    consumer last; 0 while it is connected. Only where there was one since the server began.
""")

DELIVERIES: Final = Family(
    "penstock_stream_group_deliveries",
    HISTOGRAM,
    "Pending entries by the number of times that they were delivered, 0 for those that never were;"
    " only while there are any.",
)

DELIVERY_BOUNDS: Final = (0, 1, 2, 3, 5, 10, 25, 100)
"""Up to which delivery count each bucket counts."""

MOST_BLOCKS: Final = 2000
"""The size of the tree is not told of streams with more blocks: counting takes too long."""


def stream_values(stream: Stream) -> list[Value]:
    """The values of :data:`STREAMS`."""
    log = stream.log
    small = log.block_count <= MOST_BLOCKS
    return [
        log.length,
        len(stream.groups),
        ids.split(log.first)[0] if log.length else None,
        ids.split(log.last)[0] if log.length else None,
        ids.split(stream.last_id)[0],
        ids.split(stream.max_deleted_id)[0],
        log.block_count,
        stream.tree_nodes if small else None,
        signed(stream.entries_added),
    ]


def group_values(
    ref: GroupRef,
    summary: PendingSummary,
    seen: int | None,
    asked: int | None,
    ruled: RuledGroup | None,
    parked: int,
    now: int,
) -> list[Value]:
    """Return the values of :data:`GROUPS`; ``seen`` is when the consumer was last seen that was not
    seen for the longest time, ``asked`` when one asked last unless the client of one is connected,
    and ``ruled`` is the group with its policies, if it has any."""
    stream, group, counts = ref.stream, ref.group, ref.group.counts
    oldest = None if summary.earliest == HIGHEST else summary.earliest
    first = _first_undelivered(stream, group)
    facts = HealthFacts(
        None if oldest is None else now - oldest,
        summary.most,
        counts.letters_lately.total(now),
        len(group.pending) - group.pending.unowned,
        stream.undelivered(group),
        None if first is None else age_of(first, now),
        len(group.consumers),
        None if asked is None else now - asked,
        paused=ruled is not None and ruled.agenda.rules.paused,
    )
    return [
        len(group.consumers),
        len(group.pending),
        ids.split(group.last_id)[0],
        None if group.entries_read is None else signed(group.entries_read),
        stream.lag(group),
        facts.lag,
        seconds_since(first, now),
        seconds_since(oldest, now),
        group.redelivered,
        group.acked,
        group.claimed,
        group.released,
        counts.bad_delays,
        counts.letters.get(TOO_OFTEN, 0),
        counts.letters.get(FATAL, 0),
        facts.died,
        group.pending.unowned,
        *kept_back(ref, ruled, now),
        int(ruled is not None),
        parked,
        seconds_since(seen, now),
        len(facts.troubles()),
    ]


def _first_undelivered(stream: Stream, group: Group) -> int | None:
    """The milliseconds of the first entry that was not delivered yet."""
    found = stream.log.ids_of(group.last_id + 1, ids.MAX, 1)
    return ids.split(found[0])[0] if found else None


def consumer_values(consumer: Consumer, now: int) -> list[Value]:
    """The values of :data:`CONSUMERS`."""
    link = consumer.link
    gone = None
    if isinstance(link, Link):
        gone = seconds_since(link.closed_ms, now) if link.closed_ms else 0
    return [
        consumer.owned,
        seconds_since(consumer.seen, now),
        consumer.acked,
        consumer.redelivered,
        gone,
    ]


def seconds_since(ms: int | None, now: int) -> float:
    """Seconds from then to now; 0 for the future, and for a time that there is not."""
    return 0.0 if ms is None else max(0, now - ms) / 1000
