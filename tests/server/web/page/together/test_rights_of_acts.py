"""Each act: off with the reason for a login without the right, refused by hand, from elsewhere, and
when what it is about is not as it was shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from server.web.page.actions import KINDS
from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled

GROUP: Final = "/group?db=0&key=orders&group=kitchen"
CONSUMER: Final = "/consumer?db=0&key=orders&group=kitchen&name=ann"
STREAM: Final = "/stream?db=0&key=orders"
LETTERS: Final = "/letters?db=0&key=orders:dead"

Fields = list[tuple[str, str]]


class Act(NamedTuple):
    """An act: the screen with its button, what is said to it, the commands that it needs, and what
    somebody else does meanwhile, with which it may not run any more."""

    screen: str
    label: str
    said: Fields
    needs: tuple[str, ...]
    meanwhile: tuple[Any, ...]
    before: tuple[Any, ...] = ()
    status: int = 409


ACKED: Final = ("XACK", "orders", "kitchen", "1-0")
GONE: Final = ("XDEL", "orders:dead", "2-0")
POLICY: Final = ("PENSTOCK POLICY", "SET", "orders", "GROUP", "kitchen")
ONE: Final[Fields] = [("id", "1-0")]
LETTER: Final[Fields] = [("id", "2-0")]
TYPED: Final[Fields] = [("filled", "1"), ("name0", "n"), ("value0", "9")]

ACTS: Final = {
    "ack": Act(GROUP, "Ack…", ONE, ("XACK",), ACKED),
    "claim": Act(GROUP, "Claim…", [*ONE, ("to", "bob")], ("XCLAIM",), ACKED),
    "back": Act(GROUP, "Give back…", ONE, ("XNACK",), ACKED),
    "bury": Act(
        GROUP, "Make dead letters…", ONE, ("XNACK",), ACKED, (*POLICY, "dead-letter", "orders:dead")
    ),
    "pause": Act(GROUP, "Pause…", [], ("PENSTOCK POLICY",), (*POLICY, "paused", "no")),
    "resume": Act(
        *(GROUP, "Resume…", [], ("PENSTOCK POLICY",)),
        *((*POLICY, "paused", "no"), (*POLICY, "paused", "yes")),
    ),
    "policy": Act(
        *(GROUP, "Change…", [("filled", "1"), ("set ack-wait", "30s")], ("PENSTOCK POLICY",)),
        (*POLICY, "ack-wait", "60s"),
    ),
    "position": Act(
        *(GROUP, "Move position…", [("by", "3")], ("XGROUP SETID",)),
        ("XGROUP SETID", "orders", "kitchen", "9-0"),
    ),
    "remove": Act(CONSUMER, "Remove…", [], ("XGROUP DELCONSUMER",), ACKED),
    "add": Act(STREAM, "Add an entry…", TYPED, ("XADD",), ("DEL", "orders"), status=404),
    "trim": Act(STREAM, "Trim…", [("to", "4")], ("XTRIM",), ("DEL", "orders"), status=404),
    "drop": Act(LETTERS, "Delete…", LETTER, ("XDEL",), GONE),
    "edit": Act(LETTERS, "Edit", [*LETTER, ("edit", "2-0"), *TYPED], ("XDEL",), GONE),
    "redrive": Act(LETTERS, "Redrive…", LETTER, ("PENSTOCK REDRIVE", "XADD"), GONE),
}


@pytest.fixture(scope="module")
def served() -> Iterator[Filled]:
    with Filled(web_actions=True) as found:
        found.client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        yield found


@pytest.fixture(params=ACTS)
def act(served: Filled, request: pytest.FixtureRequest) -> Act:
    """An act, and a server where there is something to do for it."""
    client, found = served.client, ACTS[request.param]
    client.flushall()
    for at in range(1, 11):
        client.xadd("orders", {"n": at}, id=f"{at}-0")
    client.xgroup_create("orders", "kitchen", "0")
    client.xreadgroup("kitchen", "ann", {"orders": ">"}, count=8)
    for at in range(1, 4):
        letter = {"dead-letter-stream": "orders", "dead-letter-reason": "no cups", "n": at}
        client.xadd("orders:dead", letter, id=f"{at}-0")
    if found.before:
        client.execute_command(*found.before)
    return found


def logged_in(served: Filled, user: str) -> Asking:
    asking = Asking(served.http)
    assert asking.log_in(user, "secret").status == 303
    return asking


def form_of(kind: str, act: Act, asking: Asking) -> Fields:
    """What the form of the act sends, with what is said to it."""
    shown = "drop" if kind == "edit" else kind
    return [*asking.get(act.screen).fields(shown, -1 if shown == "drop" else 0), *act.said]


def kind_of(act: Act) -> str:
    return next(kind for kind, each in ACTS.items() if each is act)


def state(client: Any) -> list[Any]:
    """Everything that acts change."""
    if not client.exists("orders"):
        return []
    (group,) = client.xinfo_groups("orders")
    return [
        *(client.xrange("orders"), client.xrange("orders:dead"), group),
        [
            (each["message_id"], each["consumer"], each["times_delivered"])
            for each in client.xpending_range("orders", "kitchen", "-", "+", 20)
        ],
        [each["name"] for each in client.xinfo_consumers("orders", "kitchen")],
        client.execute_command("PENSTOCK POLICY", "GET", "orders", "GROUP", "kitchen"),
    ]


def test_there_is_no_act_that_is_not_tried() -> None:
    assert set(ACTS) == set(KINDS)


def test_a_login_without_the_right_sees_it_off_and_is_refused_by_hand(
    served: Filled, act: Act
) -> None:
    rules = [f"-{each.lower().replace(' ', '|')}" for each in act.needs]
    words = ("reset", "on", ">secret", "~*", "+@all", *rules)
    served.client.execute_command("ACL", "SETUSER", "looker", *words)
    looker = logged_in(served, "looker")
    html = looker.get(act.screen).html
    why = f"Your user may not run {act.needs[0]}."
    button = rf'<button type="button" class="[^"]*" aria-disabled="true" title="{why}">'
    assert re.search(rf"{button}(?:<svg.*?</svg>)?\s*{act.label}", html, re.S)
    token = re.search(r'name="csrf" value="(.*?)"', html)
    assert token is not None
    ops = form_of(kind_of(act), act, logged_in(served, "ops"))
    before = state(served.client)
    by_hand = [(name, token[1] if name == "csrf" else value) for name, value in ops]
    refused = looker.post("/act", by_hand)
    assert refused.status == 403
    assert "Your user may not run" in refused.text
    assert state(served.client) == before


@pytest.mark.parametrize(
    "headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "https://elsewhere.example"}]
)
def test_it_is_refused_from_another_origin(
    served: Filled, act: Act, headers: dict[str, str]
) -> None:
    ops = logged_in(served, "ops")
    asked = ops.post("/act", form_of(kind_of(act), act, ops))
    before = state(served.client)
    assert ops.post("/act", asked.fields(), **headers).status == 403
    assert state(served.client) == before


def test_it_does_not_run_once_what_it_is_about_has_changed(served: Filled, act: Act) -> None:
    ops = logged_in(served, "ops")
    asked = ops.post("/act", form_of(kind_of(act), act, ops))
    assert asked.status == 200
    served.client.execute_command(*act.meanwhile)
    before = state(served.client)
    assert ops.post("/act", asked.fields()).status == act.status
    assert state(served.client) == before


def test_it_runs_as_it_was_shown(served: Filled, act: Act) -> None:
    ops = logged_in(served, "ops")
    before = state(served.client)
    asked = ops.post("/act", form_of(kind_of(act), act, ops))
    assert state(served.client) == before
    done = ops.post("/act", asked.fields())
    assert (done.status, "Done." in done.text) == (200, True)
    assert state(served.client) != before
