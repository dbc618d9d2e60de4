"""Hold the error texts for where a policy of a stream or a group cannot be set or used."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown
from server.config.policy_lines import circle_text

POLICY_SYNTAX: Final = (
    "ERR syntax error: expected SET key [GROUP group] name value [name value ...],"
    " GET key [GROUP group], or DEL key [GROUP group] name [name ...]"
)
REDRIVE_SYNTAX: Final = "ERR syntax error: expected REDRIVE key [COUNT count] [id ...]"
STATS_SYNTAX: Final = "ERR syntax error: expected STATS [key [group]]"
COUNT_NOT_POSITIVE: Final = "ERR COUNT must be a positive integer"
REASON_TOO_LONG: Final = "ERR REASON must be a text of 256 bytes at most"
DELAY_OUT_OF_RANGE: Final = "ERR DELAY must be from 0 to 9007199254740992 milliseconds"
DELAY_OF_FATAL: Final = "ERR DELAY means nothing with FATAL: the entry is not delivered again"
DELAY_WITHOUT_POLICIES: Final = (
    "ERR DELAY means nothing in a group without policies: entries that were given back wait there"
    " for a claim"
)


def not_a_dead_letter(entry_id: str, key: bytes) -> str:
    """An entry that REDRIVE was to move back, and that no policy has put there."""
    return f"ERR the stream '{shown(key)}' has no dead letter with the ID {entry_id}"


def no_dead_letters(key: bytes) -> str:
    """A stream from which REDRIVE was to move dead letters."""
    return f"ERR the stream '{shown(key)}' has no dead letters"


def no_origin(entry_id: str, key: bytes, group: bytes) -> str:
    """A dead letter whose group is not there any more."""
    return (
        f"NOGROUP the dead letter {entry_id} cannot go back: there is no consumer group"
        f" '{shown(group)}' of the stream '{shown(key)}'"
    )


def cannot_take_letters(key: bytes, way: list[bytes]) -> str:
    """The stream for dead letters cannot take one, perhaps as it would come back that ``way``."""
    reason = circle_text(way) if way else "it is no stream, or it is full"
    return f"ERR the dead letters cannot be added to '{shown(key)}': {reason}"
