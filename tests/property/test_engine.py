"""The engine alone: invariants hold, refusals change nothing, effects say everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from storage.engine.effects import Changed, Effect
from storage.keyspace.databases import Keyspace
from tests.property import (
    hash_commands,
    hyperloglog_commands,
    list_commands,
    set_commands,
    sorted_set_commands,
)
from tests.property import stream_commands as commands
from tests.support.direct import Direct
from tests.support.examples import scaled
from tests.support.pictures import picture
from tests.support.replay import replay


class Engine(RuleBasedStateMachine):
    """Sends random commands, lets time pass, and watches what becomes of the keyspace."""

    def __init__(self) -> None:
        super().__init__()
        self.direct = Direct()
        self.keyspace = self.direct.server.state.keyspace
        self.client = self.direct.client()
        self.effects: list[Effect] = []
        self.direct.server.services.reactions.record = self._record

    def _record(self, effects: Sequence[Effect], session: object) -> None:
        self.effects += effects

    @rule(
        command=st.one_of(
            *commands.EVERYTHING[:-1],
            commands.NEWER,
            commands.KEYSPACE,
            hash_commands.HASHES,
            hyperloglog_commands.HYPERLOGLOGS,
            list_commands.LISTS,
            set_commands.SETS,
            sorted_set_commands.ALL,
        )
    )
    def send(self, command: commands.Words) -> None:
        before = picture(self.keyspace)
        recorded = len(self.effects)
        reply = self.client.send(*command)
        assert reply is not None
        if reply.startswith(b"-") and not self._expired(recorded):
            assert picture(self.keyspace) == before, command
            assert all(map(_tells_encoding, self.effects[recorded:]))
        self.keyspace.check()

    def _expired(self, recorded: int) -> bool:
        """Whether keys went because their time was over, which a refused command may notice."""
        return any(getattr(effect, "event", "") == "expired" for effect in self.effects[recorded:])

    @rule(milliseconds=st.sampled_from([1, 500, 60_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.direct.advance(milliseconds)
        self.direct.cron()

    @invariant()
    def the_effects_alone_give_an_equal_state(self) -> None:
        twin = Keyspace()
        replay(twin, self.effects)
        assert _as_told(picture(twin)) == _as_told(picture(self.keyspace))
        twin.check()


def _tells_encoding(effect: Effect) -> bool:
    """Whether an effect only says that a string is no longer embedded or a number: what is refused
    after it was looked into, as a damaged HyperLogLog is, leaves it so."""
    words = effect.words if isinstance(effect, Changed) else ()
    return len(words) == 3 and (words[0], words[2]) == (b"APPEND", b"")


def _as_told(state: dict[int, Any]) -> dict[int, Any]:
    """Leaves out what effects say nothing of: idempotent IDs are forgotten when somebody looks, and
    a hash is listpackex from the first command on that may set a time, even if it sets none."""
    for database in state.values():
        for value, _ in database.values():
            if isinstance(value, dict):
                value.pop("records")
            elif isinstance(value, list) and value[-1] == "listpackex":
                value[-1] = "listpack"
    return state


TestEngine = Engine.TestCase
TestEngine.settings = settings(
    max_examples=scaled(40),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
