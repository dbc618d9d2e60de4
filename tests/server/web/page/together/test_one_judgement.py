"""The page, the metrics and the tools judge groups by the same rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import redis

from penstock.client.connection import ServerConnection
from penstock.client.urls import parse
from penstock.operate.groups import gather
from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled

OLD = "1700000000000"


def fill(filled: Filled) -> None:
    """Nine groups, of which seven are in trouble, of a stream with old entries and one with new."""
    client = filled.client
    for stream, entry_id in (("old", f"{OLD}-*"), ("new", "*")):
        for number in range(3):
            client.xadd(stream, {"n": number}, id=entry_id)
    for name in ("stuck", "failing", "gone", "behind", "paused", "dead"):
        client.xgroup_create("old", name, "0")
    # XINFO GROUPS cannot tell the lag of a group that began in the middle.
    client.xgroup_create("old", "unattended", f"{OLD}-1")
    for name in ("fine", "busy"):
        client.xgroup_create("new", name, "0")
    policy = ("PENSTOCK", "POLICY", "SET", "old", "GROUP")
    client.execute_command(*policy, "paused", "paused", "yes")
    client.execute_command(*policy, "dead", "dead-letter", "letters")
    for name in ("stuck", "failing", "dead"):
        client.xreadgroup(name, "ann", {"old": ">"})
    client.xreadgroup("busy", "ann", {"new": ">"})
    client.xreadgroup("fine", "ann", {"new": ">"})
    client.xack("new", "fine", *[entry_id for entry_id, _ in client.xrange("new")])
    client.xreadgroup("behind", "ann", {"old": ">"}, count=1)
    client.xack("old", "behind", f"{OLD}-0")
    client.execute_command("XCLAIM", "old", "stuck", "ann", 0, f"{OLD}-0", "IDLE", 400_000)
    client.execute_command("XCLAIM", "old", "failing", "ann", 0, f"{OLD}-0", "RETRYCOUNT", 7)
    client.execute_command("XNACK", "old", "dead", "FATAL", "IDS", 1, f"{OLD}-1")
    with redis.Redis(host=filled.penstock.host, port=filled.penstock.port) as other:
        other.xreadgroup("gone", "bob", {"old": ">"})


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    with Filled(enable_debug_command="yes") as found:
        fill(found)
        found.client.execute_command("DEBUG", "CLOCK", "ADVANCE", 90_000)
        found.look()
        yield found


EXPECTED = {
    "stuck": ["stuck"],
    "failing": ["failing"],
    "dead": ["failing"],
    "unattended": ["unattended", "behind"],
    "gone": ["unattended"],
    "behind": ["behind"],
    "paused": [],
    "fine": [],
    "busy": [],
}


def test_the_tools_judge_as_the_rules_say(filled: Filled) -> None:
    with ServerConnection("server", parse(filled.penstock.url), 0) as server:
        found = gather(server)
    judged = {group.group.decode(): group.facts().troubles() for group in found}
    assert judged == EXPECTED


def test_the_page_judges_as_the_tools_do_and_puts_groups_in_the_same_order(filled: Filled) -> None:
    with ServerConnection("server", parse(filled.penstock.url), 0) as server:
        listed = [group.group.decode() for group in gather(server) if group.troubles]
    html = Asking(filled.http).get("/").html
    shown = [name for name in re.findall(r"group=([a-z]+)[^>]*>", html) if name in EXPECTED]
    assert [name for name in dict.fromkeys(shown) if EXPECTED[name]] == listed
    for name, troubles in EXPECTED.items():
        answer = Asking(filled.http).get(f"/group?db=0&key={stream_of(name)}&group={name}")
        word = troubles[0] if troubles else "paused" if name == "paused" else "fine"
        assert f">{word.capitalize()}<" in re.sub(r"<svg.*?</svg>", ">", answer.html), name


def test_the_metrics_count_the_same_troubles(filled: Filled) -> None:
    text = Asking(filled.http).get("/metrics").html
    found = re.findall(r'penstock_stream_group_troubles\{.*group="(\w+)".*\} (\d)', text)
    assert {name: int(count) for name, count in found} == {
        name: len(troubles) for name, troubles in EXPECTED.items()
    }


def stream_of(group: str) -> str:
    return "new" if group in ("fine", "busy") else "old"
