"""XNACK: pending entries are given back, or become dead letters."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.groups import errors as group_errors
from server.commands.groups.many import MANY, PORTION, parse_ids, portions
from server.core.outcomes import Steps, reply_of
from server.core.table import Arguments, KeySpec
from server.delivery import errors as policy_errors
from server.delivery.dead_letters import FATAL, move_to_dead_letters
from server.delivery.group_ref import GroupRef, RuledGroup, existing_group
from server.runtime.arguments import integer, parse_integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.pending import HIGHEST, PendingEntry

_MODES: Final = frozenset({b"SILENT", b"FAIL", b"FATAL"})


TakeMore = Callable[["NackOptions", Arguments, int], bool]


class NackOptions:
    """The arguments of XNACK from its mode on. ``delay`` (milliseconds) and ``reason`` are those of
    a ``command`` that has more: ``take_more`` reads a word of its own with what follows it, and
    tells whether it is one. (A class below it in another folder would not live through mypyc.)"""

    __slots__ = (
        "command",
        "count",
        "delay",
        "force",
        "ids",
        "mode",
        "reason",
        "take_more",
        "texts",
    )

    def __init__(
        self, args: Arguments, command: str = "XNACK", take_more: TakeMore | None = None
    ) -> None:
        self.command = command
        self.take_more = take_more
        self.mode = args[3].upper()
        self.count: int | None = None
        self.delay: int | None = None
        self.reason = b""
        self.force = False
        self.texts: list[bytes] = []
        self.ids: list[int] = []
        """The IDs to free; none yet where there are very many."""
        if self.mode not in _MODES:
            raise CommandError(group_errors.NACK_MODE)
        at = 4
        while at < len(args):
            at = self._take(args, at)
        if not self.texts:
            raise CommandError(group_errors.NACK_NO_IDS)

    def _take(self, args: Arguments, at: int) -> int:
        word = args[at].upper()
        more = len(args) - 1 - at
        if word == b"FORCE":
            self.force = True
            return at + 1
        if word == b"RETRYCOUNT" and more:
            self.count = integer(args[at + 1])
            if self.count < 0:
                raise CommandError(group_errors.NACK_RETRYCOUNT_NEGATIVE)
            return at + 2
        if word == b"IDS" and more and not self.texts:
            return self._take_ids(args, at + 1)
        if more and self.take_more is not None and self.take_more(self, args, at):
            return at + 2
        raise CommandError(group_errors.unrecognized_option(self.command, args[at]))

    def _take_ids(self, args: Arguments, at: int) -> int:
        count = parse_integer(args[at])
        if count is None or count <= 0:
            raise CommandError(group_errors.NACK_NUMIDS_NOT_POSITIVE)
        texts = args[at + 1 : at + 1 + count]
        if len(texts) < count:
            raise CommandError(group_errors.NACK_NUMIDS_MISMATCH)
        self.texts = texts
        if count <= MANY:
            self.ids = ids.parse_all(texts)
        return at + 1 + count

    def count_after(self, before: PendingEntry | None) -> int:
        """The delivery count that a freed entry has."""
        if self.count is not None:
            return self.count
        if self.mode == b"FATAL":
            return HIGHEST
        count = 0 if before is None else before.deliveries
        return max(0, count - 1) if self.mode == b"SILENT" else count


@command(
    "XNACK",
    flags="write fast",
    since="8.8.0",
    summary="Gives pending entries back: they stay pending, without an owner.",
    complexity="O(log N) for each ID, with N pending entries.",
    syntax="key group <SILENT | FAIL | FATAL> IDS numids id [id ...] [RETRYCOUNT count] [FORCE]",
    keys=[KeySpec("RW update")],
)
def xnack(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """How many entries were given back."""
    options = NackOptions(args)
    ref = existing_group(session.db, args[1], args[2])
    return give_back(server, session, ref, options)


def give_back(
    server: Services, session: Session, ref: GroupRef, options: NackOptions
) -> Reply | Steps:
    """Give pending entries back to a group; replies how many were freed, or have gone to the dead
    letters."""
    work = _give_back(server, ref, options, _buries(server.policies.ruled(ref), options))
    return reply_of(work, session.resp3, long=len(options.texts) > MANY)


def _buries(ruled: RuledGroup | None, options: NackOptions) -> bool:
    """Whether the entries go to the dead letters (XNACK FATAL)."""
    fatal = options.mode == b"FATAL"
    return ruled is not None and fatal and len(ruled.agenda.rules.dead_letter) > 0


def _give_back(
    server: Services, ref: GroupRef, options: NackOptions, buries: bool
) -> Generator[None, None, Reply]:
    """Gives entries back, or moves them to the dead letters, a portion at a time; returns how many.
    Ends early where that may not go on after a step, or where they would go elsewhere now."""
    wanted = options.ids or (yield from parse_ids(options.texts))
    seen: set[int] = set()
    done = 0
    for now, some in portions(server, ref, wanted, PORTION if buries else MANY):
        ruled = server.policies.ruled(now)
        if _buries(ruled, options) != buries:
            break
        if ruled is not None and buries:
            new = [each for each in dict.fromkeys(some) if each not in seen]
            seen.update(new)
            done += _bury(ruled, new, options)
        else:
            done += _free(ruled or now, some, options)
        yield
    return done


def _free(ref: GroupRef, wanted: list[int], options: NackOptions) -> int:
    """Gives entries back; returns how many these are."""
    ruled = ref if isinstance(ref, RuledGroup) else None
    pending, log = ref.group.pending, ref.stream.log
    freed: list[int] = []
    counts: list[int] = []
    times: list[int] = []
    ended: list[PendingEntry] = []
    for entry_id in wanted:
        before = pending.get(entry_id)
        if before is None and not (options.force and log.get(entry_id) is not None):
            continue
        count = options.count_after(before)
        delay = options.delay or 0
        if ruled is not None:
            ended.append(before or PendingEntry(entry_id, None, 0, 0))
            if options.delay is None:
                delay = ruled.agenda.rules.delay_of_released(count, entry_id)
        times.append(ref.now + delay if delay else 0)
        pending.set(entry_id, None, times[-1], count)
        freed.append(entry_id)
        counts.append(count)
    if freed:
        ref.group.released += len(freed)
        ref.emit_released(freed, counts, times if any(times) else ())
        if ruled is not None:
            ruled.note_ended(ended, options.mode.lower(), options.reason)
    return len(freed)


def _bury(ruled: RuledGroup, wanted: list[int], options: NackOptions) -> int:
    """Moves entries to the dead letters; returns how many these are. Raises :class:`CommandError`
    if one of them cannot be written."""
    entries: list[PendingEntry] = []
    for entry_id in wanted:
        entry = ruled.group.pending.get(entry_id)
        if entry is None and options.force and ruled.stream.log.get(entry_id) is not None:
            entry = PendingEntry(entry_id, None, 0, 0)
        if entry is not None:
            entries.append(entry)
    kept = move_to_dead_letters(ruled, entries, FATAL, FATAL, options.reason)
    if kept:
        target = ruled.agenda.rules.dead_letter
        raise CommandError(policy_errors.cannot_take_letters(target, ruled.circle()))
    return len(entries)
