"""A kind of sink is one class: whatever else deals with sinks asks the sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock_pipeline.errors import InvalidFile
from penstock_pipeline.file import load
from penstock_pipeline.plan import describe
from penstock_pipeline.sinks import kinds
from penstock_pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock_pipeline.toml_file import Table

FILE = """
[source]
subscribe = "orders"

[checkpoint]
path = "checkpoint"

[[sink]]
type = "queue"
topic = "fresh"
"""


class QueueSink(Sink):
    """A kind that the pipeline does not know."""

    kind = "queue"
    output_modes = ("update", "append")
    guarantees: ClassVar = {"offsets": "each row at most twice"}

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        topic = table.needed("topic", "the topic that gets the rows")
        table.end()
        return cls(common.name, common.origin, topic, common.output_mode)

    @property
    def destination(self) -> str:
        return f"topic {self.place}"

    def write(self, frame: Any, batch: Batch) -> None:
        written.append((frame, batch))


written: list[tuple[Any, Batch]] = []
"""What was written to any queue."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "p.toml"
    path.write_text(FILE)
    return path


def test_a_kind_that_is_registered_can_be_read_and_planned(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(kinds.KINDS, "queue", QueueSink)
    pipeline = load(file)
    assert pipeline.sinks == (QueueSink("entries", "entries", "fresh", "update"),)
    plan = describe(pipeline)
    assert "to                   topic fresh\n" in plan
    assert "guarantee            each row at most twice\n" in plan


def test_a_batch_that_may_differ_when_repeated_is_written_like_any_other() -> None:
    written.clear()
    batch = Batch("query", 7, ordered=True)
    QueueSink("q", "entries", "fresh", "append").write_unrepeatable("rows", batch)
    assert written == [("rows", batch)]


def test_a_kind_that_is_not_registered_is_refused_with_those_that_are(file: Path) -> None:
    with pytest.raises(InvalidFile, match=r":9: sink\[1\]\.type: is 'queue'; allowed: ") as info:
        load(file)
    assert "allowed: parquet, stream, jdbc" in str(info.value)


@pytest.mark.parametrize("kind", kinds.KINDS.values(), ids=list(kinds.KINDS))
def test_every_kind_says_what_it_promises_in_both_modes(kind: type[Sink]) -> None:
    assert set(kind.guarantees) == {"offsets", "group"}
    assert kinds.KINDS[kind.kind] is kind
    assert set(kind.output_modes) <= {"append", "update"}
