"""Random commands for a long run, drawn beforehand from the strategies of the property tests."""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.property import (
    hash_commands,
    hyperloglog_commands,
    key_commands,
    list_commands,
    set_commands,
    sorted_set_commands,
    stream_commands,
)
from tests.property.stream_commands import Words
from tests.replication.contents import NEWER

_STREAMS: Final = (*stream_commands.EVERYTHING, stream_commands.KEYSPACE)
_KEYS: Final = (
    *key_commands.EVERYTHING,
    hash_commands.UNTIMED,
    list_commands.LISTS,
    set_commands.SETS,
    *sorted_set_commands.EVERYTHING,
    hyperloglog_commands.HYPERLOGLOGS,
)
"""Redis 7.0 knows no times of fields."""
_AT_ONCE: Final = 50
_SELDOM: Final = frozenset({"FLUSHDB", "FLUSHALL", "SWAPDB"})
"""Commands after which little is left to compare."""
_ONE_OF: Final = 12
"""Of so many of these, one is kept."""


def newer(command: Words) -> Words:
    """The same command on keys that commands of Penstock alone may change."""
    return [NEWER + word if word in ("k", "q") else word for word in command]


EVERY_COMMAND: Final = st.one_of(
    *_STREAMS, *_KEYS, *(strategy.map(newer) for strategy in (*_STREAMS, stream_commands.NEWER))
).filter(lambda command: "0x1p-3" not in command)
"""Commands on keys of all types, without a number that Valkey 9.1 does not read; what only Penstock
knows is on keys of its own."""


def draw_commands(number: int, count: int) -> list[Words]:
    """So many random commands, the same ones for the same number."""
    drawn: list[Words] = []

    @seed(number)
    @settings(
        max_examples=max(1, count // _AT_ONCE),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(EVERY_COMMAND, min_size=_AT_ONCE, max_size=_AT_ONCE))
    def take(commands: list[Words]) -> None:
        drawn.extend(commands)

    take()
    return [
        command
        for at, command in enumerate(drawn)
        if command[0] not in _SELDOM or at % _ONE_OF == 0
    ]
