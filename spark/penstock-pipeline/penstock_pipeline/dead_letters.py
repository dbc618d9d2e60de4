"""Dead letters: the original entry, preceded by fields with its origin and the reason.

The data source writes such letters too, for entries that were delivered too often. The reason is
the last of these fields in both, so the fields after it are those of the entry.

``redrive`` sends letters back to their original streams. Adding an entry and removing its letter is
one transaction, so each letter is sent once. In a cluster the two keys may be on different servers:
there the entry is added first, with a mark that lets a command that was killed in between go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from redis.exceptions import WatchError
from rich.console import Console
from rich.text import Text

from penstock_pipeline.decode.sql import REASON, text
from penstock_pipeline.errors import PipelineError
from penstock_pipeline.servers import StreamClient
from penstock_pipeline.terminal import shown
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.streams import key_of
from pyspark_redis_streams.write.idempotence import once

PREFIX: Final = b"dead-letter-"
STREAM: Final = b"dead-letter-stream"
ID: Final = b"dead-letter-id"
PIPELINE: Final = b"dead-letter-pipeline"
LAST: Final = b"dead-letter-reason"


class Letter(NamedTuple):
    """A parsed dead letter; ``fields`` are names and values in turn."""

    stream: bytes
    id: bytes
    reason: bytes
    fields: list[bytes]


def letter_fields(pipeline: str) -> str:
    """The SQL of a letter's fields, from the columns of an entry and :data:`REASON`."""
    pairs = {
        STREAM: "stream",
        ID: "id",
        PIPELINE: text(pipeline),
        LAST: REASON,
    }
    heads = ", ".join(
        f"named_struct('name', X'{key.hex()}', 'value', CAST({value} AS BINARY))"
        for key, value in pairs.items()
    )
    return f"concat(array({heads}), fields) AS fields"


def unpack(fields: Sequence[bytes]) -> Letter | None:
    """The letter in an entry; None if the entry is not a dead letter."""
    heads: dict[bytes, bytes] = {}
    for index in range(0, len(fields), 2):
        key, value = fields[index], fields[index + 1]
        if not key.startswith(PREFIX):
            return None
        heads[key] = value
        if key == LAST:
            rest = list(fields[index + 2 :])
            if STREAM not in heads or not rest:
                return None
            return Letter(heads[STREAM], heads.get(ID, b""), value, rest)
    return None


PAGE: Final = 500
PORTION: Final = 100
"""Letters of one transaction."""

TRIES: Final = 100
"""How often a transaction is tried while other letters arrive at the same time."""


class LetterChoice(NamedTuple):
    """Which letters are sent, and where to. None means all letters, and each one's own stream."""

    stream: str | None = None
    reason: str | None = None
    to: str | None = None
    limit: int | None = None

    def takes(self, letter: Letter) -> bool:
        """Whether the letter is selected."""
        if self.stream is not None and letter.stream != key_of(self.stream):
            return False
        return self.reason is None or key_of(self.reason) in letter.reason

    def target(self, letter: Letter) -> bytes:
        """Where the letter goes."""
        return letter.stream if self.to is None else key_of(self.to)


Found = tuple[bytes, Letter]
"""The ID of a letter, and the letter."""


def redrive(
    client: StreamClient, key: bytes, choice: LetterChoice, dry_run: bool, console: Console
) -> int:
    """Sends letters back, the oldest first, and returns how many; raises PipelineError."""
    counts: dict[bytes, int] = {}
    sent = 0
    chosen = _chosen(client, key, choice)
    while portion := list(islice(chosen, PORTION)):
        if not dry_run:
            portion = _send(client, key, choice, portion)
        for _, letter in portion:
            target = choice.target(letter)
            counts[target] = counts.get(target, 0) + 1
        sent += len(portion)
    verb = "would be sent" if dry_run else "sent"
    for target, count in sorted(counts.items()):
        console.print(Text(f"{shown(target)}: {count:,} {verb}"))
    console.print(Text(f"{shown(key)}: {sent:,} {verb}, {client.info(key).length:,} there"))
    return sent


def _chosen(client: StreamClient, key: bytes, choice: LetterChoice) -> Iterator[Found]:
    """The letters to send, of those that are there at the start."""
    to = format_id(client.info(key).last)
    after = b"-"
    left = choice.limit
    while page := client.call("XRANGE", key, after, to, "COUNT", PAGE):
        for id, fields in page:
            letter = unpack(fields)
            if letter is None or not choice.takes(letter):
                continue
            if left == 0:
                return
            left = None if left is None else left - 1
            yield id, letter
        after = b"(" + page[-1][0]


def _send(
    client: StreamClient, key: bytes, choice: LetterChoice, portion: list[Found]
) -> list[Found]:
    """Sends letters; returns those that no other process had sent meanwhile."""
    if client.is_cluster:
        return _send_apart(client, key, choice, portion)
    for _ in range(TRIES):
        try:
            return _send_together(client, key, choice, portion)
        except WatchError:
            continue
    raise PipelineError(f"'{shown(key)}' is being written all the time; try again later")


def _send_together(
    client: StreamClient, key: bytes, choice: LetterChoice, portion: list[Found]
) -> list[Found]:
    _need_streams(client, {choice.target(letter) for _, letter in portion})
    with client.transaction() as pipeline:
        pipeline.watch(key)
        ask = pipeline.execute_command
        there = [each for each in portion if ask("XRANGE", key, each[0], each[0])]
        pipeline.multi()
        for id, letter in there:
            ask("XADD", choice.target(letter), "*", *letter.fields)
            ask("XDEL", key, id)
        pipeline.execute()
    return there


def _need_streams(client: StreamClient, targets: set[bytes]) -> None:
    """Raises PipelineError for a key of another kind.

    A command that fails in a transaction does not stop the others.
    """
    for target in sorted(targets):
        kind = client.call("TYPE", target)
        if kind not in (b"stream", b"none"):
            raise PipelineError(f"'{shown(target)}' is no stream but a {shown(kind)}")


def _send_apart(
    client: StreamClient, key: bytes, choice: LetterChoice, portion: list[Found]
) -> list[Found]:
    there = [each for each in portion if client.call("XRANGE", key, each[0], each[0])]
    for id, letter in there:
        added = ("XADD", choice.target(letter), "*", *letter.fields)
        client.call(*once(added, f"redrive {shown(key)}", id))
        client.call("XDEL", key, id)
    return there
