"""Commands with very many IDs: they are done in steps, between which others are answered."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from server.delivery.group_ref import GroupRef
from server.services import Services
from storage.engine import ids
from storage.errors import InvalidID

MANY: Final = 1000
"""A command with more IDs than these is done in steps."""

PORTION: Final = 100
"""How many a step has to do with where each of them may take long."""


def parse_ids(texts: list[bytes]) -> Generator[None, None, list[int]]:
    """Parse IDs in steps; raises :class:`CommandError` for a text that is none."""
    found: list[int] = []
    for at in range(0, len(texts), MANY):
        try:
            found += ids.parse_all(texts[at : at + MANY])
        except InvalidID:
            raise CommandError(errors.INVALID_STREAM_ID) from None
        yield
    return found


def portions(
    server: Services, ref: GroupRef, wanted: list[int], size: int = PORTION
) -> Iterator[tuple[GroupRef, list[int]]]:
    """Go through many entries of a group, each portion with the group as it is then. Ends early
    where the group is gone, or where nothing may be changed any more."""
    may_go_on = server.due_work.going_on()
    for at in range(0, len(wanted), size):
        now = ref.as_it_is_now()
        if now is None or not may_go_on():
            return
        yield now, wanted[at : at + size]
