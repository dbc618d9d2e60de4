"""Types of values: each has its rows, and a copy that is a value of its own."""

from __future__ import annotations

from typing import get_args

import pytest

from storage.aof import snapshot
from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.rdb import write
from storage.types.collection import Collection
from storage.types.kinds import KINDS, STREAM, STRING, Value, kind_of


def test_each_class_of_values_has_a_row_in_each_table() -> None:
    classes = {*get_args(Value), *Collection.__subclasses__()} - {Collection}
    assert set(KINDS) == set(snapshot._COMMANDS) == set(write._FORMS) == classes


@pytest.mark.parametrize("value", [b"ab", bytearray(b"ab")])
def test_a_string_is_one_of_two_classes(value: bytes | bytearray) -> None:
    kind = kind_of(value)
    assert kind is STRING
    assert (kind.name, kind.memory(value), kind.encoding(value)) == ("string", 2, "embstr")
    copied = kind.copy(value)
    if isinstance(value, bytearray):
        value[0] = 0
    assert copied == b"ab"


def test_a_stream_is_copied_with_what_is_in_it() -> None:
    stream = Stream(StreamLimits())
    stream.add(1, [b"f", b"v"])
    kind = kind_of(stream)
    assert kind is STREAM
    assert (kind.name, kind.encoding(stream)) == ("stream", "stream")
    assert kind.memory(stream) > 0
    copied = kind.copy(stream)
    stream.add(2, [b"f", b"v"])
    assert (copied.log.length, stream.log.length) == (1, 2)
