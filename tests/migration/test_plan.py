"""What is on the target is left alone unless it is part of the same stream."""

from __future__ import annotations

import pytest

from tests.migration.running import copy
from tests.migration.streams import Client, everything, inside

START = """
    XADD k 1-0 n 1
    XADD k 2-0 n 2
    XADD k 3-0 n 3
    XGROUP CREATE k g 2-0
"""


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        ("SET k text", "the target's key is a string"),
        (
            "XADD k 9-0 n 9",
            "the target's last-generated-id is 9-0, above the source's 3-0",
        ),
        ("XADD k 2-1 n 2", "the target's last entry, 2-1, is not on the source"),
        ("XADD k 1-0 n other", "the entry 1-0 differs"),
        ("XADD k 1-0 n other\nXADD k 2-0 n 2", "the entry 1-0 differs"),
        ("XADD k 2-0 n 2", "the target's stream begins at 2-0, the source's at 1-0"),
        (
            "XADD k 1-0 n 1\nXADD k 2-0 n 2\nXDEL k 2-0",
            "the target lacks the entry 2-0",
        ),
        ("XADD k MAXLEN 0 1-0 n 1", "the target lacks the entry 1-0"),
        (
            "XADD k 1-0 n 1\nXGROUP CREATE k other 0",
            "the target has a group 'other' that the source lacks",
        ),
        (
            "XADD k 1-0 n 1\nXGROUP CREATE k g 2-1",
            "the target's group 'g' has read up to 2-1, the source's up to 2-0",
        ),
    ],
)
def test_what_is_no_part_of_the_stream_is_refused_or_replaced(
    source: Client, target: Client, there: str, reason: str
) -> None:
    source.script(START)
    source.send("XADD other 1-1 f v")
    target.script(there)
    before = everything(target)
    result = f"refused: {reason}; --replace puts the source's in its place"
    for options in ([], ["--dry-run"]):
        ended = copy(source.port, target.port, *options)
        assert (ended.status, ended.results["k"]) == (1, result)
    assert everything(target)[b"k"] == before[b"k"]
    assert inside(target, "other") == inside(source, "other")
    ended = copy(source.port, target.port, "--replace")
    assert (ended.status, ended.results["k"]) == (0, "equal")
    assert everything(target) == everything(source)


@pytest.mark.parametrize(
    "there",
    [
        "XADD k 1-0 n 1",
        "XADD k 1-0 n 1\nXADD k 2-0 n 2",
        "XGROUP CREATE k g 0 MKSTREAM",
        "XGROUP CREATE k g 0 MKSTREAM\nXGROUP CREATECONSUMER k g early",
        "XADD k 0-5 n 0\nXADD k 1-0 n 1",
    ],
)
def test_the_beginning_of_the_stream_is_continued(
    source: Client, target: Client, there: str
) -> None:
    source.script(START)
    target.script(there)
    assert copy(source.port, target.port).results == {"k": "equal"}
    assert everything(target) == everything(source)


@pytest.mark.parametrize(
    ("middle", "result"),
    [
        (
            "XADD k 1-5 n 1\nXADD k 2-0 n 2",
            "refused: the entry 1-5 is too many on the target; --replace puts the source's"
            " in its place",
        ),
        (
            "XADD k 2-1 n 2\nXADD k 2-2 n 2",
            "refused: the entry 2-0 is missing on the target; --replace puts the source's"
            " in its place",
        ),
        ("XADD k 2-0 n other", "differs: 1 entry different"),
    ],
)
def test_other_entries_in_the_middle_are_found_before_the_end(
    source: Client, target: Client, middle: str, result: str
) -> None:
    source.script(START)
    target.script(f"XADD k 1-0 n 1\n{middle}")
    source.send("XADD k 5-0 n 5")
    target.script("XADD k 3-0 n 3")
    ended = copy(source.port, target.port)
    assert (ended.status, ended.results) == (1, {"k": result})


def test_a_dry_run_says_what_would_be_done_and_does_nothing(source: Client, target: Client) -> None:
    source.script(START)
    source.script("XADD begun 1-1 f v\nXADD begun 1-2 f v\nXADD foreign 1-1 f v\nSET s v")
    target.script("XADD begun 1-1 f v\nXADD foreign 9-9 f v")
    before = everything(target)
    ended = copy(source.port, target.port, "--dry-run", "--replace", "--strings")
    assert (ended.status, ended.results) == (
        0,
        {
            "k": "planned: would be copied",
            "begun": "planned: would be brought up to date",
            "foreign": "planned: would replace what the target has",
        },
    )
    assert "1 string: 1 to be copied, 0 there already" in ended.out
    assert everything(target) == before
