"""PENSTOCK STATS: what is counted of groups and consumers, and what happened lately."""

from __future__ import annotations

from collections.abc import Mapping

from protocol import errors
from protocol.encoder import bulk, encode
from protocol.errors import CommandError
from protocol.replies import Bulk, Map, Reply
from server.commands.declare import command
from server.core.outcomes import Steps, write_each
from server.core.table import Arguments, KeySpec
from server.delivery import errors as policy_errors
from server.delivery.dead_letters import FATAL, TOO_OFTEN
from server.delivery.group_ref import GroupRef, RuledGroup, group_of_key
from server.delivery.happenings import Happening
from server.delivery.stats import connection_of, is_attended, kept_back
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.pending import Consumer


def _named(values: Mapping[str, Reply]) -> Map:
    return Map([(Bulk(name.encode()), value) for name, value in values.items()])


def _server(server: Services, session: Session) -> Reply:
    policies = server.policies
    lately: list[Reply] = [
        _happening(each)
        for each in reversed(list(policies.happenings))
        if not session.account.limited or session.account.may_read(each.key)
    ]
    counts = {name.replace("_", "-"): count for name, count in policies.tally.counts().items()}
    return _named({**counts, "lately": lately})


def _happening(happening: Happening) -> Reply:
    return _named(
        {
            "time": happening.time,
            "what": Bulk(happening.kind.encode()),
            "db": happening.db,
            "key": Bulk(happening.key),
            "group": Bulk(happening.group),
            "user": Bulk(happening.user),
            "number": happening.number,
        }
    )


def _group(ref: GroupRef, ruled: RuledGroup | None, now: int) -> dict[str, Reply]:
    group, counts = ref.group, ref.group.counts
    kept = kept_back(ref, ruled, now)
    letters = {TOO_OFTEN.decode(): TOO_OFTEN, FATAL.decode(): FATAL}
    return {
        "delivered": group.delivered,
        "redelivered": group.redelivered,
        "acked": group.acked,
        "claimed": group.claimed,
        "released": group.released,
        "pending": len(group.pending) - group.pending.unowned,
        "given-back": len(group.pending.extras.released),
        "kept-back": _named(kept._asdict()),
        "attended": int(is_attended(group.consumers.values())),
        "paused": int(ruled is not None and ruled.agenda.rules.paused),
        "bad-delays": counts.bad_delays,
        "bad-delay": _bad_delay(counts.bad_delay),
        "dead-letters": _named(
            {name: counts.letters.get(reason, 0) for name, reason in letters.items()}
            | {"lately": counts.letters_lately.total(now)}
        ),
    }


def _bad_delay(found: tuple[int, bytes] | None) -> Reply:
    if found is None:
        return None
    return _named({"id": Bulk(ids.text(found[0])), "value": Bulk(found[1])})


def _consumer(consumer: Consumer) -> Reply:
    connection = connection_of(consumer)
    return _named(
        {
            "pending": consumer.owned,
            "acked": consumer.acked,
            "redelivered": consumer.redelivered,
            "seen": consumer.seen,
            "address": None if connection is None else Bulk(connection.address.encode()),
            "since": None if connection is None else connection.since,
            "gone": connection.gone if connection is not None and connection.gone else None,
        }
    )


def _keys(args: Arguments) -> list[bytes]:
    return list(args[2:3])


@command(
    "PENSTOCK STATS",
    flags="readonly",
    summary="Shows what is counted of a group and its consumers, or what happened lately.",
    complexity="O(N) for N groups of the stream, or consumers of the group.",
    syntax="[key [group]]",
    keys=[KeySpec("RO access", index=2, find=_keys)],
)
def stats(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """A map of the counts of the server, of a stream's groups, or of one group. Many groups and
    consumers are told of one after the other, each as it is then."""
    if len(args) > len(("PENSTOCK", "STATS", "key", "group")):
        raise CommandError(policy_errors.STATS_SYNTAX)
    if len(args) == len(("PENSTOCK", "STATS")):
        return _server(server, session)
    db, key, now, resp3 = session.db, args[2], session.db.keyspace.now_ms, session.resp3
    stream = db.stream(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if len(args) == len(("PENSTOCK", "STATS", "key")):
        refs = [GroupRef(db, key, stream, group) for group in stream.groups.values()]
        told = (
            bulk(ref.group.name)
            + encode(_named(_group(ref, server.policies.followed(ref), now)), resp3)
            for ref in refs
        )
        return write_each(_map_head(len(refs), resp3), told, len(refs))
    ref = group_of_key(db, key, args[3])
    return _of_group(ref, _group(ref, server.policies.ruled(ref), now), resp3)


def _of_group(ref: GroupRef, fields: dict[str, Reply], resp3: bool) -> Reply | Steps:
    """The fields of a group, and then those of each consumer."""
    consumers = ref.group.consumers.copy()
    head = [_map_head(len(fields) + 1, resp3)]
    head += [bulk(name.encode()) + encode(value, resp3) for name, value in fields.items()]
    head += [bulk(b"consumers"), _map_head(len(consumers), resp3)]
    told = (bulk(name) + encode(_consumer(consumers[name]), resp3) for name in sorted(consumers))
    return write_each(b"".join(head), told, len(consumers))


def _map_head(pairs: int, resp3: bool) -> bytes:
    return b"%%%d\r\n" % pairs if resp3 else b"*%d\r\n" % (2 * pairs)
