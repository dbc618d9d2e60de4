"""Commands that take long and happen in one moment: the one at their end.

What takes time is done in steps, between which others are served. A value is not copied for that:
the work watches its keys, as WATCH does, and begins anew if one of them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeVar

from protocol import errors
from protocol.encoder import encode
from protocol.errors import CommandError
from protocol.replies import Failure
from server.clients.watch import WatchedKeys
from server.core.outcomes import Outcome, Steps, Work
from server.services import Services
from server.state.session import Session
from storage.errors import WrongType

T = TypeVar("T")

_INTERRUPTED: Final = (
    "ERR nothing was changed: while the command was under way, clients were paused, or the server"
    " has stopped taking writes"
)


def in_steps(
    server: Services,
    session: Session,
    work: Generator[None, None, T],
    then: Callable[[T | None], Outcome],
    *,
    keys: Sequence[bytes] = (),
    writes: bool = False,
) -> Steps:
    """The reply of ``then``, which is called with the result of the work when that is done: with
    ``None``, as soon as one of the keys has changed."""
    may_go_on = server.due_work.going_on() if writes else lambda: True
    undisturbed = _undisturbed(server.watching, session, keys, work)
    next(undisturbed)

    def end(found: T | None) -> Outcome:
        if not may_go_on():
            raise CommandError(_INTERRUPTED)
        return then(found)

    return Steps(_answered(undisturbed, end, session.resp3))


def _undisturbed(
    watched: WatchedKeys, session: Session, keys: Sequence[bytes], work: Generator[None, None, T]
) -> Generator[None, None, T | None]:
    watching = watched.begin(session.db, keys)
    try:
        yield  # From here on: the work may have to wait for its first turn.
        while not watched.has_changed(watching):
            try:
                next(work)
            except StopIteration as stop:
                found: T = stop.value
                return found
            yield
    finally:
        watched.end(watching)
    return None


def _answered(
    work: Generator[None, None, T | None], end: Callable[[T | None], Outcome], resp3: bool
) -> Work:
    try:
        outcome = end((yield from work))
    except CommandError as error:
        outcome = Failure(error.text)
    except WrongType:
        outcome = Failure(errors.WRONG_TYPE)
    if isinstance(outcome, Steps):
        return (yield from outcome.work)
    return [encode(outcome, resp3)]  # type: ignore[arg-type]
