"""PENSTOCK NACK and PENSTOCK HISTORY: why deliveries failed."""

from __future__ import annotations

from typing import Final

from protocol.errors import CommandError
from protocol.replies import Bulk, Map, Reply
from server.commands.declare import command
from server.commands.groups.nack import NackOptions, give_back
from server.config.policies import LATEST_MS
from server.core.outcomes import Steps
from server.core.table import Arguments, KeySpec
from server.delivery import errors as policy_errors
from server.delivery.group_ref import existing_group
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.histories import EndedDelivery

LONGEST_REASON: Final = 256
"""How many bytes a reason has at most."""


def _take(options: NackOptions, args: Arguments, at: int) -> bool:
    """Reads REASON or DELAY and what follows it at place ``at``; false if there is another word."""
    word, value = args[at].upper(), args[at + 1]
    if word == b"REASON":
        options.reason = value
        if len(value) > LONGEST_REASON:
            raise CommandError(policy_errors.REASON_TOO_LONG)
    elif word == b"DELAY":
        delay = integer(value, policy_errors.DELAY_OUT_OF_RANGE)
        if not 0 <= delay <= LATEST_MS:
            raise CommandError(policy_errors.DELAY_OUT_OF_RANGE)
        options.delay = delay
    return word in (b"REASON", b"DELAY")


@command(
    "PENSTOCK NACK",
    flags="write fast",
    summary="Gives pending entries back, as XNACK does, with the reason and a delay.",
    complexity="O(log N) for each ID, with N pending entries.",
    syntax="key group <SILENT | FAIL | FATAL> [REASON text] [DELAY milliseconds]"
    " IDS numids id [id ...] [RETRYCOUNT count] [FORCE]",
    keys=[KeySpec("RW update", index=2)],
)
def nack(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """How many entries were given back."""
    options = NackOptions(args[1:], "PENSTOCK NACK", _take)
    if options.delay is not None and options.mode == b"FATAL":
        raise CommandError(policy_errors.DELAY_OF_FATAL)
    ref = existing_group(session.db, args[2], args[3])
    if options.delay is not None and server.policies.ruled(ref) is None:
        raise CommandError(policy_errors.DELAY_WITHOUT_POLICIES)
    return give_back(server, session, ref, options)


@command(
    "PENSTOCK HISTORY",
    flags="readonly",
    summary="Tells how the deliveries of a pending entry ended, and why.",
    syntax="key group id",
    keys=[KeySpec("RO access", index=2)],
)
def history(server: Services, session: Session, args: Arguments) -> Reply:
    """A map for each delivery that ended, the oldest first."""
    entry_id = ids.parse(args[4])
    ref = existing_group(session.db, args[2], args[3])
    return [_shown(line) for line in ref.group.pending.extras.histories.lines(entry_id)]


def _shown(line: EndedDelivery) -> Reply:
    return Map(
        [
            (Bulk(b"time"), line.time),
            (Bulk(b"consumer"), Bulk(line.consumer)),
            (Bulk(b"ended"), Bulk(line.how)),
            (Bulk(b"reason"), Bulk(line.reason)),
        ]
    )
