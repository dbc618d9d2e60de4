"""The text of a new pipeline file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock.pipeline.samples.infer import Proposal, Proposed
from pyspark_redis_streams.urls import parse_urls

VARIABLE: Final = "REDIS_URL"
"""What the environment has a URL with a password in, which belongs into no file."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Wanted:
    """What a new pipeline is to read and write; ``output`` as on the command line."""

    url: str
    stream: str
    output: str

    @property
    def name(self) -> str:
        """A name for the pipeline, from that of the stream."""
        return re.sub(r"[^\w.-]+", "-", self.stream, flags=re.ASCII).strip("-.") or "pipeline"

    @property
    def has_secret(self) -> bool:
        """Whether the URL holds a user or a password."""
        return any(url.username or url.password for url in parse_urls(self.url))


def file_text(wanted: Wanted, proposed: Proposed) -> str:
    """The file, with a comment for each column that is not in every sample."""
    return "\n".join(_lines(wanted, proposed)) + "\n"


def _lines(wanted: Wanted, proposed: Proposed) -> Iterator[str]:
    count = "1 entry" if proposed.samples == 1 else f"{proposed.samples} entries"
    yield f"# Proposed by 'penstock pipeline new' from {count}. Check the types of the columns."
    yield f"name = {quoted(wanted.name)}"
    yield ""
    yield "[source]"
    yield f"url = {quoted(f'${{{VARIABLE}}}' if wanted.has_secret else _plain(wanted.url))}"
    yield f"subscribe = [{quoted(_plain(wanted.stream))}]"
    yield 'starting_offsets = "earliest"'
    yield ""
    if proposed.json is not None or proposed.nulls:
        yield "[parse]"
    if proposed.json is not None:
        yield f"json = {quoted(_plain(proposed.json))}"
    if proposed.nulls:
        yield f"nulls = [{', '.join(map(quoted, proposed.nulls))}]"
    if proposed.json is not None or proposed.nulls:
        yield ""
    yield "[parse.columns]"
    for column in proposed.columns:
        yield _column(column, proposed.samples)
    yield ""
    yield "[dead_letters]"
    yield f"stream = {quoted(_plain(f'{wanted.stream}-dead'))}"
    yield ""
    yield "[[sink]]"
    yield from _sink(wanted.output)
    yield ""
    yield "[checkpoint]"
    yield f"path = {quoted(f'{wanted.name}-checkpoint')}"


def _column(column: Proposal, samples: int) -> str:
    value = quoted(column.type)
    if column.name != column.origin:
        value = f"{{ type = {value}, from = {quoted(_plain(column.origin))} }}"
    notes = [f"in {column.count} of {samples}"] if column.count < samples else []
    notes += [column.note] if column.note else []
    comment = f"  # {'; '.join(notes)}" if notes else ""
    key = column.name if _BARE.fullmatch(column.name) else quoted(column.name)
    return f"{key} = {value}{comment}"


def _sink(output: str) -> Iterator[str]:
    kind, _, place = output.partition(":")
    if output == "console":
        yield 'type = "console"'
    elif kind == "stream" and place:
        yield 'type = "stream"'
        yield f"stream = {quoted(_plain(place))}"
    else:
        yield f"path = {quoted(_plain(output))}"


def _plain(text: str) -> str:
    """The text with ``$`` as a file has to write it."""
    return text.replace("$", "$$")


def quoted(text: str) -> str:
    """A text of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
