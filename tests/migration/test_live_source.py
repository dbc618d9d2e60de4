"""A source that is written to, read and trimmed while it is copied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client.connection import ServerConnection
from penstock.client.urls import parse
from penstock.migration.copy import Copied, copy_stream, set_expiry
from penstock.migration.plan import Endpoints, StreamGone, make_plan
from penstock.migration.report import Depth, StreamFindings
from penstock.migration.verify import verify_stream
from tests.migration.running import copy
from tests.migration.streams import Client, inside
from tests.support.servers import PenstockThread

KEY = b"k"

START = """
    XADD k 1-0 n 1
    XADD k 2-0 n 2
    XADD k 3-0 n 3
    XADD k 4-0 n 4
    XGROUP CREATE k g 0 ENTRIESREAD 0
    XREADGROUP GROUP g ann COUNT 3 STREAMS k >
"""


@pytest.fixture
def endpoints(source: Client, target: Client) -> Iterator[Endpoints]:
    source.script(START)
    near, far = (parse(f"redis://127.0.0.1:{client.port}") for client in (source, target))
    with ServerConnection("source", near, 0) as one, ServerConnection("target", far, 0) as other:
        yield Endpoints(one, other)


def copied_while(endpoints: Endpoints, source: Client, meanwhile: str) -> Copied:
    """Copies the stream; the commands run on the source before the first entry is copied."""
    plan = make_plan(endpoints, KEY, replace=False)
    source.script(meanwhile)
    return copy_stream(endpoints, plan, lambda entries: None)


def verified(endpoints: Endpoints, copied: Copied) -> StreamFindings:
    return verify_stream(endpoints, copied, Depth.FULL, lambda entries: None)


def test_entries_added_meanwhile_are_left_to_the_next_run(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(endpoints, source, "XADD k 5-0 n 5\nXADD k 6-0 n 6")
    found = verified(endpoints, copied)
    assert (found.differences, found.notes) == ([], ["the source has 2 newer entries"])
    fields = inside(target, "k")
    assert (fields[b"last-generated-id"], fields[b"entries-added"]) == (b"4-0", 4)
    assert [entry[0] for entry in fields[b"entries"]] == [b"1-0", b"2-0", b"3-0", b"4-0"]
    assert copy(source.port, target.port).results == {"k": "equal"}
    assert inside(target, "k") == inside(source, "k")


def test_a_group_that_read_on_stands_where_the_copied_entries_end(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(
        endpoints,
        source,
        """
        XADD k 5-0 n 5
        XREADGROUP GROUP g ann STREAMS k >
        XACK k g 1-0
        """,
    )
    assert verified(endpoints, copied).differences == []
    group = inside(target, "k")[b"groups"][0]
    assert (group[b"last-delivered-id"], group[b"entries-read"]) == (b"4-0", 4)
    assert [row[0] for row in group[b"pending"]] == [b"2-0", b"3-0", b"4-0"]
    assert copy(source.port, target.port).results == {"k": "equal"}
    assert inside(target, "k") == inside(source, "k")


def test_a_group_of_unknown_progress_stays_one(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    source.send("XGROUP SETID k g 3-0")
    copied_while(endpoints, source, "XADD k 5-0 n 5\nXGROUP SETID k g 5-0")
    group = inside(target, "k")[b"groups"][0]
    assert (group[b"last-delivered-id"], group[b"entries-read"]) == (b"4-0", None)


def test_what_consumers_do_after_the_copy_is_no_difference(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(endpoints, source, "")
    before = inside(target, "k")
    source.script(
        """
        XACK k g 1-0 2-0
        XREADGROUP GROUP g bob STREAMS k >
        XGROUP CREATE k h 0
        """
    )
    found = verified(endpoints, copied)
    assert (found.differences, found.notes) == (
        [],
        ["group 'g' has changed on the source since", "the source has 1 newer group"],
    )
    assert inside(target, "k") == before


def test_a_group_destroyed_after_the_copy_is_no_difference(
    endpoints: Endpoints, source: Client
) -> None:
    copied = copied_while(endpoints, source, "")
    source.send("XGROUP DESTROY k g")
    found = verified(endpoints, copied)
    assert found.differences == []
    assert found.notes == ["group 'g' has changed on the source since"]


def test_trimming_and_deleting_during_the_copy_and_after_it(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(endpoints, source, "XADD k 5-0 n 5\nXTRIM k MINID 2-0\nXDEL k 3-0")
    source.send("XDEL k 2-0 4-0")
    found = verified(endpoints, copied)
    assert found.differences == []
    assert found.notes == ["the source has 1 newer entry", "the source has removed 2 entries since"]
    assert [entry[0] for entry in inside(target, "k")[b"entries"]] == [b"2-0", b"4-0"]


def test_everything_up_to_the_start_may_be_trimmed_away(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(endpoints, source, "XADD k 5-0 n 5\nXTRIM k MINID 5-0")
    assert verified(endpoints, copied).differences == []
    fields = inside(target, "k")
    assert (fields[b"length"], fields[b"max-deleted-entry-id"]) == (0, b"0-0")
    assert copy(source.port, target.port).results == {"k": "equal"}
    assert inside(target, "k") == inside(source, "k")


def test_an_entry_deleted_after_it_was_copied_is_deleted_by_the_next_run(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied_while(endpoints, source, "")
    source.script("XDEL k 1-0 3-0\nXACK k g 1-0\nXADD k 5-0 n 5")
    assert copy(source.port, target.port).results == {"k": "equal"}
    assert inside(target, "k") == inside(source, "k")


def test_delivery_times_ahead_of_the_targets_clock_are_set_by_a_later_run(
    endpoints: Endpoints, source: Client, target_thread: PenstockThread
) -> None:
    clock = target_thread.server.state.clock
    target_thread.server.state.timekeeper.read = lambda: clock() - 60_000
    found = verified(endpoints, copied_while(endpoints, source, ""))
    times = "3 pending entries delivered earlier there; if its clock is behind, run again"
    assert found.differences == [f"group 'g': {times}"]
    target_thread.server.state.timekeeper.read = clock
    assert copy(source.port, target_thread.port).results == {"k": "equal"}


@pytest.mark.parametrize("meanwhile", ["DEL k", "DEL k\nXADD k 1-1 f v"])
def test_a_stream_that_disappears_is_told(
    endpoints: Endpoints, source: Client, meanwhile: str
) -> None:
    plan = make_plan(endpoints, KEY, replace=False)
    copied = copy_stream(endpoints, plan, lambda entries: None)
    source.script(meanwhile)
    with pytest.raises(StreamGone, match="removed from the source, or recreated there"):
        verified(endpoints, copied)


def test_a_source_that_expires_does_not_let_its_copy_live_for_ever(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    source.send("PEXPIREAT k 9000000000000")
    plan = make_plan(endpoints, KEY, replace=False)
    copy_stream(endpoints, plan, lambda entries: None)
    source.send("DEL k")
    with pytest.raises(StreamGone, match="removed from the source, or recreated there"):
        set_expiry(endpoints, KEY, plan.source)
    assert target.send("PEXPIRETIME k") == 9_000_000_000_000


def test_a_key_that_is_gone_before_its_turn_is_told(endpoints: Endpoints, source: Client) -> None:
    source.send("DEL k")
    with pytest.raises(StreamGone, match="gone from the source"):
        make_plan(endpoints, KEY, replace=False)


def test_a_copy_that_is_removed_from_the_target_is_told(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(endpoints, source, "")
    target.send("DEL k")
    with pytest.raises(StreamGone, match="gone from the target"):
        verified(endpoints, copied)


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        (
            "XADD k 9-0 n 9",
            [
                "last-generated-id is 9-0 instead of 4-0",
                "entries-added is 5 instead of 4",
                "1 entry too many",
            ],
        ),
        ("XDEL k 2-0", ["max-deleted-entry-id is 2-0 instead of 0-0", "1 entry missing"]),
        ("XACK k g 1-0 2-0", ["group 'g': 2 pending entries missing"]),
        ("XCLAIM k g ann 0 1-0 RETRYCOUNT 9", ["group 'g': 1 pending entry different"]),
        (
            "XCLAIM k g ann 0 1-0 TIME 7 RETRYCOUNT 1",
            [
                "group 'g': 1 pending entry delivered earlier there;"
                " if its clock is behind, run again"
            ],
        ),
        (
            "XCLAIM k g bob 0 4-0 FORCE",
            ["group 'g': 1 consumer too many", "group 'g': 1 pending entry too many"],
        ),
        (
            "XGROUP SETID k g 1-0",
            [
                "group 'g': last-delivered-id is 1-0 instead of 3-0",
                "group 'g': entries-read is unknown instead of 3",
            ],
        ),
        ("XGROUP DESTROY k g", ["group 'g' missing"]),
        ("XGROUP CREATE k h 0", ["group 'h' too many"]),
        (
            "XGROUP DELCONSUMER k g ann",
            ["group 'g': 1 consumer missing", "group 'g': 3 pending entries missing"],
        ),
        (
            "PEXPIREAT k 99999999999999",
            ["time of expiry is 99999999999999 (Unix ms) instead of never"],
        ),
        ("XCFGSET k IDMP-MAXSIZE 7", ["idmp-maxsize is 7 instead of 100"]),
    ],
)
def test_the_verification_finds_what_is_changed_on_the_target(
    endpoints: Endpoints, source: Client, target: Client, change: str, differences: list[str]
) -> None:
    copied = copied_while(endpoints, source, "")
    target.send(change)
    found = verified(endpoints, copied)
    assert (found.differences, found.notes) == (differences, [])


def test_entries_with_another_content_are_found(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(endpoints, source, "")
    target.script("DEL k\nXADD k 1-0 n 1\nXADD k 2-0 n other\nXADD k 3-0 n 3\nXADD k 4-0 n 4")
    found = verified(endpoints, copied)
    assert found.differences == ["1 entry different", "group 'g' missing"]


def test_a_quick_verification_of_a_source_that_goes_on_looks_at_counters(
    endpoints: Endpoints, source: Client
) -> None:
    copied = copied_while(endpoints, source, "XADD k 5-0 n 5\nXDEL k 1-0")
    found = verify_stream(endpoints, copied, Depth.QUICK, lambda entries: None)
    assert (found.differences, found.notes) == ([], ["the source has 1 newer entry"])
    source.send("XDEL k 4-0")
    found = verify_stream(endpoints, copied, Depth.QUICK, lambda entries: None)
    assert found.differences == []


def test_a_quick_verification_looks_at_counts_and_boundaries(
    endpoints: Endpoints, source: Client, target: Client
) -> None:
    copied = copied_while(endpoints, source, "")
    quick = verify_stream(endpoints, copied, Depth.QUICK, lambda entries: None)
    assert (quick.differences, quick.notes) == ([], [])
    target.script("XDEL k 1-0 4-0\nXACK k g 1-0")
    found = verify_stream(endpoints, copied, Depth.QUICK, lambda entries: None)
    assert found.differences == [
        "max-deleted-entry-id is 4-0 instead of 0-0",
        "length is 2 instead of 4",
        "another first entry",
        "another last entry",
        "group 'g': pending is 2 instead of 3",
    ]
