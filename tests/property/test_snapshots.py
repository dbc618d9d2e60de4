"""DEBUG SNAPSHOT RESTORE brings back what was taken, and the append-only file says so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.property.stream_commands import Words
from tests.property.test_aof_round_trip import (
    COMMANDS,
    FLUSH,
    SETTINGS,
    STEPS,
    assert_equal,
    play,
    without_old_records,
)
from tests.support.direct import Direct
from tests.support.pictures import picture
from tests.support.recording import Recording

TAKE: Words = ["DEBUG", "SNAPSHOT", "TAKE", "a"]
RESTORE: Words = ["DEBUG", "SNAPSHOT", "RESTORE", "a"]

WITH_SNAPSHOTS = st.one_of(STEPS, STEPS, STEPS, STEPS, st.sampled_from([TAKE, RESTORE]))


def recording() -> Recording:
    return Recording(Direct(enable_debug_command="yes"))


@SETTINGS
@given(
    st.lists(STEPS, min_size=20, max_size=50),
    st.lists(st.one_of(COMMANDS, COMMANDS, st.just(FLUSH)), max_size=30),
)
def test_what_is_restored_is_what_was_taken(before: list[Words], after: list[Words]) -> None:
    made = recording()
    play(made, before)
    # Keys that are due go when they are looked for, and those of a snapshot are not put back.
    made.direct.cron()
    made.close_unit()
    assert made.send(*TAKE) == b"+OK\r\n"
    taken = without_old_records(picture(made.keyspace))
    for _ in range(2):
        play(made, after)
        assert made.send(*RESTORE) == b"+OK\r\n"
        assert without_old_records(picture(made.keyspace)) == taken
        made.keyspace.check()


@SETTINGS
@given(st.lists(WITH_SNAPSHOTS, min_size=30, max_size=80))
def test_the_commands_written_of_a_restore_give_the_state_back(steps: list[Words]) -> None:
    made = recording()
    play(made, [*steps, TAKE, *steps, RESTORE])
    assert_equal(made, made.contents())
