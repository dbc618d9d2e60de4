"""What a handler returns: a reply, a :class:`Wait` for one, or :class:`Steps`.

A handler that may have much to do returns :class:`Steps` in place of its reply: work that gives way
from time to time. What takes a moment is done at once. For longer work the client is parked, like
one that waits for a key, and all such work takes turns with the event loop. Inside a transaction or
a script it is done at once, however long it takes.

What the reply tells of has to be one moment: a handler takes hold of that before it returns, and
leaves to the steps what takes time with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Final, Union

from protocol.encoder import bulk, bulks, encode
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, Encoded, Failure, Reply
from storage.steps import result

PIECE: Final = 256 * 1024
"""About how many bytes of a long reply are put together at a time."""

LONG: Final = 64 * 1024
"""A string of more bytes is gone through in steps."""

Pieces = list[bytes]
"""A reply, encoded, in pieces that follow each other."""

Work = Generator[None, None, Pieces]
"""Work that yields wherever it may be interrupted, and returns the reply. Between two steps
anything may happen to the keyspace."""


class Steps:
    """What a command returns that may take long."""

    __slots__ = ("work",)

    def __init__(self, work: Work) -> None:
        self.work = work


def finish(steps: Steps) -> bytes:
    """Does the work without giving way."""
    return b"".join(result(steps.work))


def reply_of(work: Generator[None, None, Reply], resp3: bool, *, long: bool) -> Reply | Steps:
    """The reply that the work returns: at once, if it is not ``long``. It is then never put behind
    the work of others. Long work may find out between steps that the command is refused."""
    return Steps(_encoded(work, resp3)) if long else result(work)


def _encoded(work: Generator[None, None, Reply], resp3: bool) -> Work:
    try:
        reply = yield from work
    except CommandError as error:
        reply = Failure(error.text)
    return [encode(reply, resp3)]


FEW_TEXTS: Final = 200
"""How many strings of a reply are written at once where there are no more."""

AT_ONCE: Final = 100
"""How many elements of a long reply are written at a time."""


def write_each(head: bytes, elements: Iterable[bytes], count: int) -> Reply | Steps:
    """The reply that begins with ``head`` and consists of so many elements, each of which is
    written when it is asked for: at once, if they are few."""
    work = _written(head, elements)
    return Steps(work) if count > AT_ONCE else Encoded(b"".join(result(work)))


def write_texts(head: bytes, texts: Sequence[bytes]) -> Reply | Steps:
    """The reply that begins with the line ``head``, given without its end, and consists of bulk
    strings: at once, if they are few."""
    if len(texts) <= FEW_TEXTS:
        return bulks(head, texts)
    return Steps(_written(head + b"\r\n", map(bulk, texts)))


def _written(head: bytes, elements: Iterable[bytes]) -> Work:
    pieces = [head]
    following = iter(elements)
    # Joined at once: to join all of very many at the end takes long.
    while piece := b"".join(islice(following, AT_ONCE)):
        pieces.append(piece)
        yield
    return pieces


def _nothing() -> None:
    """An attempt that leaves no trace."""


class Wait:
    """What a reading command returns instead of a reply when it must wait.

    ``places`` are the keys that it waits for, each once, with their database's index.
    ``retry`` runs the command again and returns a reply, or a ``Wait`` to go on with. ``deadline``
    is the time in Unix milliseconds at which the wait ends with ``on_timeout``, ``None`` for never.
    ``wake_at`` is a time at which the command is worth running again though nothing signalled its
    keys. ``kind`` is the class of the value that a signalled key has to hold for the command to
    run; ``None`` tells that it also ends, with an error, when its key goes or changes type.
    ``group`` names the consumer group of the one key whose new entries are all that the reader
    waits for; where another reader of the group has just found none, ``note_attempt`` is called
    in place of ``retry``. ``note_end`` is called when the wait ends in vain. ``reader_of``
    names the consumer group that a reader reads as, whatever else it waits for, and
    ``consumer`` who in it.
    """

    __slots__ = (
        "consumer",
        "deadline",
        "for_sync",
        "group",
        "kind",
        "note_attempt",
        "note_end",
        "on_timeout",
        "places",
        "reader_of",
        "retry",
        "wake_at",
    )

    def __init__(
        self,
        places: list[tuple[int, bytes]],
        deadline: int | None,
        retry: Callable[[], Outcome],
        *,
        kind: type | None,
        group: bytes | None = None,
        wake_at: int | None = None,
        on_timeout: Reply = NULL_ARRAY,
        note_attempt: Callable[[], None] = _nothing,
        note_end: Callable[[], None] = _nothing,
        reader_of: bytes | None = None,
        consumer: bytes = b"",
    ) -> None:
        self.places = places
        self.deadline = deadline
        self.retry = retry
        self.kind = kind
        self.group = group
        self.wake_at = wake_at
        self.on_timeout = on_timeout
        self.note_attempt = note_attempt
        self.note_end = note_end
        self.for_sync = False
        """Whether it waits for the append-only file or for replicas, and not for keys."""
        self.reader_of = reader_of
        self.consumer = consumer


def wait_for_sync(deadline: int | None, retry: Callable[[], Outcome], on_timeout: Reply) -> Wait:
    """Return a wait for the append-only file or for replicas, not for keys."""
    wait = Wait([], deadline, retry, kind=None, on_timeout=on_timeout)
    wait.for_sync = True
    return wait


def wait_forever() -> Wait:
    """Return a wait that ends when its client does, or when somebody takes it from there."""
    wait = Wait([], None, lambda: wait, kind=None)
    return wait


Outcome = Union[Reply, Wait, Steps]  # noqa: UP007 - a reply's type refers to itself by name
"""Whatever a handler may return."""
