"""XPENDING, XCLAIM and XAUTOCLAIM: pending entries, and how they change hands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from protocol import errors
from protocol.encoder import array, array_of, bulk, encode, integer_line
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, NULL_ARRAY, Bulk, Encoded, Reply
from server.commands.declare import command
from server.commands.groups import errors as group_errors
from server.commands.groups.many import MANY, portions
from server.commands.streams.entries import Part, held_entries, in_portions, joined
from server.core.outcomes import Steps, Work
from server.core.table import Arguments, KeySpec
from server.delivery.group_ref import GroupRef, existing_group
from server.delivery.reading import EntryRefusals
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.groups import Claim, Claims, Group, claim_ids, claim_scanning
from storage.engine.pending import HIGHEST, Consumer, Segment, Span
from storage.engine.pending_segment import FEW
from storage.engine.stream import Stream
from storage.errors import InvalidID

# --- XPENDING --------------------------------------------------------------------------------


_IDLE: Final = b"IDLE"


def _min_idle(args: Arguments) -> tuple[int, int]:
    """How long entries must have been idle, and where the range stands behind that; raises
    :class:`CommandError`."""
    if not 6 <= len(args) <= 9:
        raise CommandError(errors.SYNTAX)
    if len(args[3]) != len(_IDLE) or args[3].upper() != _IDLE:
        return 0, 3
    min_idle = integer(args[4])
    if len(args) < 8:
        raise CommandError(errors.SYNTAX)
    return min_idle, 5


@command(
    "XPENDING",
    flags="readonly",
    since="5.0.0",
    summary="Shows the pending entries of a consumer group.",
    complexity="O(N) for N entries returned; O(1) for the summary.",
    syntax="key group [[IDLE min-idle-time] start end count [consumer]]",
    keys=[KeySpec("RO access")],
    tips=["nondeterministic_output"],
    history=[("6.2.0", "IDLE, and bounds that exclude their ID.")],
)
def xpending(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """How many entries are pending, the lowest and the highest ID, and how many each consumer has.
    With a range, for each entry its ID, its consumer, the milliseconds since it was delivered, and
    how often it was."""
    if len(args) == 3:
        return _summary(existing_group(session.db, args[1], args[2]).group)
    min_idle, at = _min_idle(args)
    most = integer(args[at + 2])
    start, end = ids.parse_start(args[at]), ids.parse_end(args[at + 1])
    ref = existing_group(session.db, args[1], args[2])
    if most <= 0:
        return EMPTY_ARRAY
    group, now, pending = ref.group, ref.now, ref.group.pending
    latest = now - min_idle if min_idle > 0 else HIGHEST
    if len(args) == at + 3:
        spans = pending.spans(start, end, most, latest)
    elif (owner := group.consumers.get(args[at + 3])) is not None:
        spans = pending.spans_owned(owner, start, end, latest, most)
    else:
        return EMPTY_ARRAY
    return _listing(spans, most, now)


def _summary(group: Group) -> Reply:
    pending = group.pending
    if not pending:
        return [0, None, None, NULL_ARRAY]
    owners: list[Reply] = [
        [Bulk(name), str(group.consumers[name].owned)]
        for name in sorted(group.consumers)
        if group.consumers[name].owned
    ]
    return [len(pending), Bulk(ids.text(pending.first)), Bulk(ids.text(pending.last)), owners]


def _listing(spans: list[Span], most: int, now: int) -> Encoded | Steps:
    """The lines of up to ``most`` entries, in steps where they are many."""
    count = most if most <= _ROWS else sum([len(places) for _, places in spans])
    if count <= _ROWS:
        lines = lines_of(spans, now)
        return array_of(len(lines) // _PIECES, lines)
    return joined([(b"", count, held_lines(spans, now))])


# --- the lines of XPENDING -------------------------------------------------------------------

_ROWS: Final = 1000
"""How many pending entries are written in one step."""
_PIECES: Final = 3
"""Of how many pieces a line is put together."""
_HALF: Final = 64
"""How many bits a half of an ID has."""
_THOUSAND: Final = 1000
_MILLISECONDS: Final = [b"%03d-" % number for number in range(_THOUSAND)]
_NUMBERS: Final = [b"%d\r\n" % number for number in range(_THOUSAND)]
"""A sequence number with the end of its line, of those that are usual."""


def lines_of(spans: list[Span], now: int) -> list[bytes]:
    """The lines of these entries, :data:`_PIECES` each, read where they are kept."""
    lines = _Lines(now)
    for segment, places in spans:
        if places:
            lines.add_of(segment, places)
    return lines.out


def held_lines(spans: list[Span], now: int) -> Iterator[list[bytes]]:
    """Write the same of entries as they are now, a segment after the other."""
    return _lines_of_each([(segment.held(), places) for segment, places in spans], now)


def _lines_of_each(held: list[Span], now: int) -> Iterator[list[bytes]]:
    for span in held:  # A generator expression would write all of them at once where compiled.
        yield lines_of([span], now)


class _Lines:
    """Lines of entries. Most of a line is that of the one before: entries that were delivered
    together differ in their IDs alone, and those in their last digits."""

    __slots__ = (
        "_count",
        "_digits",
        "_end",
        "_head",
        "_ms",
        "_now",
        "_owner",
        "_second",
        "_start",
        "_time",
        "out",
    )

    def __init__(self, now: int) -> None:
        self.out: list[bytes] = []
        self._now = now
        self._ms = self._digits = self._second = -1
        self._head = self._start = self._end = b""
        self._owner: Consumer | None = None
        self._time = self._count = -1

    def add_of(self, segment: Segment, places: Sequence[int]) -> None:
        """Adds the lines of the entries at these places."""
        if len(places) <= FEW:
            for place in places:
                ms, number = ids.split(segment.ids.at(place))
                owner = segment.people[segment.owners[place]]
                time, count = segment.stamps[2 * place], segment.stamps[2 * place + 1]
                self.add(ms, number, owner, time, count)
            return
        low, high = places[0], places[-1] + 1
        codes, base, shift = segment.ids.codes(low, high)
        mask = (1 << shift) - 1 if shift < _HALF else 0
        owners, people = bytes(segment.owners[low:high]), segment.people
        times, counts = segment.times_at(low, high), segment.counts_at(low, high)
        ms, number, last, together = -1, 0, 0, False
        for place in places:
            at = place - low
            code = codes[at]
            following = code - last + number if together else ids.NATIVE
            if shift < _HALF:
                ms, number = code >> shift, code & mask
            elif following < ids.NATIVE:
                # In the millisecond of the one before: the difference takes less than the halves.
                number = following
            else:
                before = ms
                ms, number = ids.split(code)
                together = ms == before
            last = code
            self.add(base + ms, number, people[owners[at]], times[at], counts[at])

    def add(self, ms: int, number: int, owner: Consumer | None, time: int, count: int) -> None:
        """Adds the line of an entry; ``ms`` and ``number`` are the halves of its ID."""
        text = _NUMBERS[number] if number < _THOUSAND else b"%d\r\n" % number
        digits = len(text)
        if ms != self._ms or digits != self._digits:
            self._begin(ms, digits)
        if time != self._time or count != self._count or owner is not self._owner:
            self._owner, self._time, self._count = owner, time, count
            self._end = _end_of_line(owner, time, count, self._now)
        self.out.append(self._start)
        self.out.append(text)
        self.out.append(self._end)

    def _begin(self, ms: int, digits: int) -> None:
        """Notes how a line begins before a number of so many digits, its line break included."""
        second = ms // _THOUSAND
        if not second:
            text = b"%d-" % ms
            self._start = b"*4\r\n$%d\r\n%b" % (len(text) + digits - len(b"\r\n"), text)
        else:
            if second != self._second or digits != self._digits:
                text = b"%d" % second
                size = len(text) + len(b"000-") + digits - len(b"\r\n")
                self._head = b"*4\r\n$%d\r\n%b" % (size, text)
            self._start = self._head + _MILLISECONDS[ms % _THOUSAND]
        self._ms, self._second, self._digits = ms, second, digits


def _end_of_line(owner: Consumer | None, time: int, count: int, now: int) -> bytes:
    """Returns what follows the ID; an entry that XNACK freed has no owner, and was idle for -1."""
    if owner is None:
        return b"$0\r\n\r\n:-1\r\n:%d\r\n" % count
    return b"%b:%d\r\n%b" % (bulk(owner.name), max(0, now - time), integer_line(count))


# --- XCLAIM and XAUTOCLAIM -------------------------------------------------------------------


class _ClaimOptions:
    """The arguments of XCLAIM from the first ID on."""

    __slots__ = ("count", "force", "ids", "justid", "last_id", "time")

    def __init__(self, args: Arguments, now: int) -> None:
        self.ids: list[int] = []
        self.time = now
        self.count: int | None = None
        self.force = self.justid = False
        self.last_id = ids.MIN
        at = 5
        while at < len(args) and (entry_id := _id_or_none(args[at])) is not None:
            self.ids.append(entry_id)
            at += 1
        while at < len(args):
            at = self._take(args, at, now)
        self.time = now if not 0 <= self.time <= now else self.time

    def _take(self, args: Arguments, at: int, now: int) -> int:
        word = args[at].upper()
        if word == b"FORCE":
            self.force = True
        elif word == b"JUSTID":
            self.justid = True
        elif word in _VALUE_OPTIONS and at + 1 < len(args):
            self._take_value(word, args[at + 1], now)
            return at + 2
        else:
            raise CommandError(group_errors.unrecognized_option("XCLAIM", args[at]))
        return at + 1

    def _take_value(self, word: bytes, value: bytes, now: int) -> None:
        if word == b"LASTID":
            self.last_id = ids.parse(value)
            return
        number = integer(value, group_errors.invalid_claim_option(word.decode()))
        if word == b"IDLE":
            self.time = now - number
        elif word == b"TIME":
            self.time = number
        else:
            self.count = number if number >= 0 else None


_VALUE_OPTIONS: Final = frozenset({b"IDLE", b"TIME", b"RETRYCOUNT", b"LASTID"})
_INVALID_MIN_IDLE: Final = group_errors.invalid_min_idle("XCLAIM")
_INVALID_MIN_IDLE_AUTO: Final = group_errors.invalid_min_idle("XAUTOCLAIM")


def _id_or_none(text: bytes) -> int | None:
    try:
        return ids.parse(text)
    except InvalidID:
        return None


def _claimed(stream: Stream, claims: Claims, justid: bool) -> Part:
    """The entries claimed, or their IDs alone."""
    if justid:
        return _texts(claims.ids)
    if len(claims.payloads) == len(claims.ids):
        return b"", len(claims.payloads), in_portions(claims.payloads)
    return b"", *held_entries(stream, claims.ids, ids.text)


def _refusals(server: Services, ref: GroupRef, counting: bool) -> EntryRefusals | None:
    """Returns what may not be claimed in a group with policies, ``None`` for one without."""
    ruled = server.policies.ruled(ref)
    return None if ruled is None else EntryRefusals(ruled, counting)


def _tell(ref: GroupRef, claim: Claim, claims: Claims, refusals: EntryRefusals | None) -> None:
    """Tells what was claimed, or that the consumer was seen; what was delivered too often to be
    claimed becomes dead letters."""
    ref.emit_claims(claim, claims)
    if refusals is not None:
        refusals.settle()
    if not claims.ids:
        ref.emit_seen(claim.consumer)


def _texts(entry_ids: list[int]) -> Part:
    """An array of IDs."""
    return b"", len(entry_ids), map(_bulks, in_portions(entry_ids))


def _bulks(entry_ids: list[int]) -> list[bytes]:
    return [bulk(ids.text(entry_id)) for entry_id in entry_ids]


@command(
    "XCLAIM",
    flags="write fast",
    since="5.0.0",
    summary="Makes a consumer the owner of pending entries of others.",
    complexity="O(log N) for each ID, with N pending entries.",
    syntax="key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds]"
    " [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
    keys=[KeySpec("RW update")],
    tips=["nondeterministic_output"],
)
def xclaim(server: Services, session: Session, args: Arguments) -> Encoded | Steps:
    """The entries claimed; with JUSTID their IDs."""
    ref = existing_group(session.db, args[1], args[2])
    min_idle = max(0, integer(args[4], _INVALID_MIN_IDLE))
    options = _ClaimOptions(args, ref.now)
    if options.last_id > ref.group.last_id:
        ref.group.last_id = options.last_id
        ref.emit_position()
    consumer = ref.consumer(args[3], session.link)
    if len(options.ids) > MANY and server.policies.ruled(ref) is not None:
        return Steps(_claim_in_steps(server, session, ref, consumer.name, min_idle, options))
    claims = _claim(server, ref, consumer, min_idle, options, options.ids)
    if len(options.ids) == 1 and not options.justid:
        return array(claims.payloads)
    return joined([_claimed(ref.stream, claims, options.justid)])


def _claim(
    server: Services,
    ref: GroupRef,
    consumer: Consumer,
    min_idle: int,
    options: _ClaimOptions,
    wanted: list[int],
) -> Claims:
    """Claims those of the entries that may be claimed, and tells of it."""
    refusals = _refusals(server, ref, not options.justid)
    claim = Claim(
        consumer,
        min_idle,
        options.time,
        ref.now,
        options.count,
        not options.justid,
        options.force and (refusals is None or refusals.allows_force),
        None if refusals is None else refusals.refuses,
    )
    claims = claim_ids(ref.group, ref.stream.log, wanted, claim)
    _tell(ref, claim, claims, refusals)
    return claims


def _claim_in_steps(
    server: Services,
    session: Session,
    ref: GroupRef,
    name: bytes,
    min_idle: int,
    options: _ClaimOptions,
) -> Work:
    """XCLAIM of many entries in a group with policies, where each of them may become a dead letter.
    Ends early where that may not go on after a step."""
    number, found = 0, []
    for now, wanted in portions(server, ref, options.ids):
        consumer = now.consumer(name, session.link)
        claims = _claim(server, now, consumer, min_idle, options, wanted)
        part = _claimed(now.stream, claims, options.justid)
        number += part[1]
        found.append(part[2])
        yield
    reply = joined([(b"", number, chain.from_iterable(found))])
    if isinstance(reply, Steps):
        return (yield from reply.work)
    return [encode(reply, session.resp3)]


_MOST_CLAIMED: Final = 2**63 // 16 - 1


def _autoclaim_options(args: Arguments) -> tuple[int, bool]:
    """COUNT and JUSTID of XAUTOCLAIM."""
    count, justid = 100, False
    at = 6
    while at < len(args):
        word = args[at].upper()
        if word == b"JUSTID":
            justid = True
            at += 1
        elif word == b"COUNT" and at + 1 < len(args):
            count = integer(args[at + 1], group_errors.COUNT_NOT_POSITIVE)
            if not 1 <= count <= _MOST_CLAIMED:
                raise CommandError(group_errors.COUNT_NOT_POSITIVE)
            at += 2
        else:
            raise CommandError(errors.SYNTAX)
    return count, justid


@command(
    "XAUTOCLAIM",
    flags="write fast",
    since="6.2.0",
    summary="Makes a consumer the owner of pending entries that have been idle for long.",
    complexity="O(1) if COUNT is small.",
    syntax="key group consumer min-idle-time start [COUNT count] [JUSTID]",
    keys=[KeySpec("RW delete")],
    tips=["nondeterministic_output"],
    history=[("7.0.0", "A third element: the IDs dropped because the stream lacks them.")],
)
def xautoclaim(server: Services, session: Session, args: Arguments) -> Encoded | Steps:
    """The ID to go on from (0-0: there is nothing more), the entries claimed (with JUSTID their
    IDs), and the IDs dropped because the stream lacks them."""
    min_idle = max(0, integer(args[4], _INVALID_MIN_IDLE_AUTO))
    start = ids.parse_start(args[5])
    count, justid = _autoclaim_options(args)
    ref = existing_group(session.db, args[1], args[2])
    now = ref.now
    consumer = ref.consumer(args[3], session.link)
    refusals = _refusals(server, ref, not justid)
    refuses = None if refusals is None else refusals.refuses
    claim = Claim(consumer, min_idle, now, now, counting=not justid, refuses=refuses)
    following, claims = claim_scanning(ref.group, ref.stream.log, start, count, claim)
    _tell(ref, claim, claims, refusals)
    head = b"*3\r\n" + bulk(ids.text(following))
    return joined([_claimed(ref.stream, claims, justid), _texts(claims.dropped)], head)
