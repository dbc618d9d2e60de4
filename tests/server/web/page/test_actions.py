"""What can be changed from the page: by whom, after which questions, and what becomes of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from server.services import Services
from server.state.session import Session
from server.web.page import entry_actions, running
from server.web.page.page_request import Refused
from server.web.page.running import PageAction
from tests.server.web.page.asking import Answer, Asking
from tests.server.web.page.filling import Filled
from tests.support.direct import Direct
from tests.support.held_output import hold_output

GROUP = "/group?db=0&key=orders&group=kitchen"
LETTERS = "/letters?db=0&key=orders:dead"


@pytest.fixture(scope="module")
def served() -> Iterator[Filled]:
    with Filled(web_actions=True, appendonly=True, appendfsync="always") as filled:
        filled.client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        filled.client.execute_command(
            "ACL", "SETUSER", "reader", "on", ">secret", "%R~*", "+@read", "+@write"
        )
        filled.client.execute_command("ACL", "SETUSER", "watcher", "on", ">secret", "~*", "+@read")
        yield filled


@pytest.fixture
def filled(served: Filled) -> Filled:
    client = served.client
    client.flushall()
    for at in range(1, 11):
        client.xadd("orders", {"n": at}, id=f"{at}-0")
    client.xgroup_create("orders", "kitchen", "0")
    client.xreadgroup("kitchen", "ann", {"orders": ">"}, count=8)
    for at in range(1, 4):
        client.xadd("orders:dead", letter(at), id=f"{at}-0")
    return served


def letter(at: int, origin: str = "orders") -> dict[str, str]:
    return {
        "dead-letter-stream": origin,
        "dead-letter-id": f"{at}-0",
        "dead-letter-reason": "no cups",
        "n": str(at),
        "cups": "three",
    }


def user(filled: Filled, name: str = "ops") -> Asking:
    asking = Asking(filled.http)
    assert asking.log_in(name, "secret").status == 303
    return asking


def position(client: Any) -> str:
    (group,) = client.xinfo_groups("orders")
    last: bytes = group["last-delivered-id"]
    return last.decode()


def confirmed(asking: Asking, answer: Answer) -> Answer:
    """What comes of it when the commands that were shown are confirmed."""
    return asking.post("/act", answer.fields())


def redrive(page: Answer, *ids: str) -> list[tuple[str, str]]:
    """What the form of a list of letters sends when these are chosen."""
    fields = [pair for pair in page.fields("drop", -1) if pair[0] != "kind"]
    return [*fields, ("kind", "redrive"), *(("id", each) for each in ids)]


def letters(client: Any, key: str = "orders:dead") -> list[str]:
    return [entry.decode() for entry, _ in client.xrange(key)]


def changed(fields: list[tuple[str, str]], **values: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in fields if name not in values] + list(values.items())


# --- the position of a group -----------------------------------------------------------------


def test_a_group_goes_back_after_the_command_was_shown(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", [*asking.get(GROUP).fields("position"), ("by", "3")])
    assert asked.status == 200
    assert "XGROUP SETID orders kitchen 5-0" in asked.text
    assert "The last 3 entries before the position will be delivered again." in asked.text
    assert position(filled.client) == "8-0"
    done = confirmed(asking, asked)
    assert (done.status, "Done." in done.text) == (200, True)
    assert position(filled.client) == "5-0"


@pytest.mark.parametrize(("by", "after", "passed"), [("8", "0-0", "8"), ("100", "0-0", "8")])
def test_a_group_goes_back_to_the_beginning_at_most(
    filled: Filled, by: str, after: str, passed: str
) -> None:
    asking = user(filled)
    asked = asking.post("/act", [*asking.get(GROUP).fields("position"), ("by", by)])
    assert f"The last {passed} entries" in asked.text
    confirmed(asking, asked)
    assert position(filled.client) == after


def test_a_group_that_has_read_nothing_stays_where_it_is(filled: Filled) -> None:
    filled.client.xgroup_setid("orders", "kitchen", "0")
    asking = user(filled)
    asked = asking.post("/act", [*asking.get(GROUP).fields("position"), ("by", "2")])
    assert "XGROUP SETID orders kitchen 0-0" in asked.text


@pytest.mark.parametrize(
    ("to", "command"),
    [
        ("4-0", "XGROUP SETID orders kitchen 3-18446744073709551615"),
        ("0", "XGROUP SETID orders kitchen 0-0"),
        ("2026-01-31 12:00", "XGROUP SETID orders kitchen 1769860799999-18446744073709551615"),
        ("2026-01-31", "XGROUP SETID orders kitchen 1769817599999-18446744073709551615"),
    ],
)
def test_a_group_is_set_to_a_time(filled: Filled, to: str, command: str) -> None:
    asking = user(filled)
    asked = asking.post("/act", [*asking.get(GROUP).fields("position"), ("to", to)])
    assert command in asked.text
    confirmed(asking, asked)
    assert position(filled.client) == command.split()[-1]


@pytest.mark.parametrize(("by", "left"), [("1", "7-0"), ("10000", "0-0")])
def test_a_group_goes_back_by_one_entry_or_by_ten_thousand(
    filled: Filled, by: str, left: str
) -> None:
    asking = user(filled)
    asked = asking.post("/act", [*asking.get(GROUP).fields("position"), ("by", by)])
    confirmed(asking, asked)
    assert position(filled.client) == left


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"by": "0"}, "A group can go back by 1 to 10,000 entries."),
        ({"by": "10001"}, "A group can go back by 1 to 10,000 entries."),
        ({"by": "-1"}, "A group can go back by 1 to 10,000 entries."),
        ({"to": "yesterday"}, "'yesterday' is neither an ID nor a time"),
        ({"to": "99999-99-99"}, "is neither an ID nor a time"),
        ({"kind": "flushall"}, "There is no such action."),
        ({"db": "99"}, "There is no such database."),
        ({"key": "nothing"}, "There is no stream nothing in database 0."),
        ({"group": "nobody"}, "The stream orders has no group nobody."),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    filled: Filled, given: dict[str, str], text: str
) -> None:
    asking = user(filled)
    fields = changed(asking.get(GROUP).fields("position"), **given)
    assert text in asking.post("/act", fields).text
    assert position(filled.client) == "8-0"


def test_a_group_that_has_moved_on_since_it_was_seen_is_left_alone(filled: Filled) -> None:
    asking = user(filled)
    seen = asking.get(GROUP).fields("position")
    asked = asking.post("/act", [*seen, ("by", "3")])
    filled.client.xreadgroup("kitchen", "ann", {"orders": ">"}, count=1)
    refused = confirmed(asking, asked)
    assert refused.status == 409
    assert "The group has moved on to 9-0 since you saw it: nothing was done." in refused.text
    assert position(filled.client) == "9-0"


def test_other_commands_than_were_shown_do_not_run(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", [*asking.get(GROUP).fields("position"), ("by", "3")])
    refused = asking.post("/act", changed(asked.fields(), by="4"))
    assert refused.status == 409
    assert "Something has changed since the command was shown: nothing was done." in refused.text
    filled.client.xdel("orders", "5-0")
    assert confirmed(asking, asked).status == 409
    assert position(filled.client) == "8-0"


# --- who may ---------------------------------------------------------------------------------


def test_without_web_actions_nothing_can_be_changed(filled: Filled) -> None:
    asking = user(filled)
    fields = [*asking.get(GROUP).fields("position"), ("by", "3")]
    filled.client.config_set("web-actions", "no")
    for path in (GROUP, LETTERS):
        assert 'name="kind"' not in asking.get(path).html
        assert "The page is read-only: the setting web-actions is no." in asking.get(path).html
    refused = asking.post("/act", fields)
    assert refused.status == 403
    assert "This page is read-only: the setting web-actions is no." in refused.text
    filled.client.config_set("web-actions", "yes")


def test_a_page_is_read_only_by_default() -> None:
    assert Direct().client().send("CONFIG", "GET", "web-actions") == (
        b"*2\r\n$11\r\nweb-actions\r\n$2\r\nno\r\n"
    )


def test_the_default_user_changes_nothing_without_logging_in(filled: Filled) -> None:
    fields = [*user(filled).get(GROUP).fields("position"), ("by", "3")]
    asking = Asking(filled.http)
    assert 'name="kind"' not in asking.get(GROUP).html
    assert 'title="Log in to change something."' in asking.get(GROUP).html
    assert asking.post("/act", fields).status == 403


@pytest.mark.parametrize("token", [None, "", "x", "\N{SNOWMAN}"])
def test_a_form_without_the_token_of_the_login_is_refused(
    filled: Filled, token: str | None
) -> None:
    asking = user(filled)
    fields = [pair for pair in asking.get(GROUP).fields("position") if pair[0] != "csrf"]
    given = [] if token is None else [("csrf", token)]
    refused = asking.post("/act", [*fields, ("by", "3"), *given])
    assert refused.status == 403
    assert "This form does not come from a page that you were shown." in refused.text


def test_the_token_of_another_login_is_refused(filled: Filled) -> None:
    fields = [*user(filled).get(GROUP).fields("position"), ("by", "3")]
    assert user(filled).post("/act", fields).status == 403


def test_a_form_of_another_site_is_refused(filled: Filled) -> None:
    asking = user(filled)
    fields = [*asking.get(GROUP).fields("position"), ("by", "3")]
    assert asking.post("/act", fields, Sec_Fetch_Site="same-site").status == 403
    assert asking.post("/act", fields, Origin="http://127.0.0.1:1").status == 403
    assert asking.get("/act").status == 404


@pytest.mark.parametrize(
    ("name", "text"),
    [("reader", "XGROUP SETID on this key."), ("watcher", "XGROUP SETID.")],
)
def test_a_user_needs_the_right_to_the_very_command(filled: Filled, name: str, text: str) -> None:
    fields = [pair for pair in user(filled).get(GROUP).fields("position") if pair[0] != "csrf"]
    asking = user(filled, name)
    shown = asking.get(GROUP)
    assert f'title="Your user may not run {text}"' in shown.html
    token = shown.html.split('name="csrf" value="')[1].split('"')[0]
    refused = asking.post("/act", [*fields, ("by", "3"), ("csrf", token)])
    assert refused.status == 403
    assert f"Your user may not run {text}" in refused.text


# --- dead letters ----------------------------------------------------------------------------


def test_one_letter_is_sent_back_to_its_stream(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", redrive(asking.get(LETTERS), "2-0"))
    assert "MULTI XADD orders * n 2 cups three XDEL orders:dead 2-0 EXEC" in asked.text
    assert filled.client.xlen("orders:dead") == 3
    assert "Done." in confirmed(asking, asked).text
    assert [entry for entry, _ in filled.client.xrange("orders:dead")] == [b"1-0", b"3-0"]
    ((_, fields),) = filled.client.xrevrange("orders", count=1)
    assert fields == {b"n": b"2", b"cups": b"three"}


def test_all_letters_are_those_that_were_seen(filled: Filled) -> None:
    asking = user(filled)
    page = asking.get(LETTERS)
    assert "Redrive all 3" in page.text
    filled.client.xadd("orders:dead", letter(4), id="4-0")
    confirmed(asking, asking.post("/act", redrive(page, "1-0", "2-0", "3-0")))
    assert [entry for entry, _ in filled.client.xrange("orders:dead")] == [b"4-0"]
    assert filled.client.xlen("orders") == 13


def test_a_letter_that_is_gone_stops_all(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", redrive(asking.get(LETTERS), "1-0", "2-0", "3-0"))
    filled.client.xdel("orders:dead", "2-0")
    refused = confirmed(asking, asked)
    assert (refused.status, "2-0 is not there any more." in refused.text) == (409, True)
    assert filled.client.xlen("orders") == 10


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], "From 1 to 1,000 entries can be named."),
        ([f"{at}-0" for at in range(1001)], "From 1 to 1,000 entries can be named."),
        (["x"], "What was named is no ID."),
        (["9-9"], "9-9 is not there any more."),
    ],
)
def test_letters_are_named_by_their_ids(filled: Filled, ids: list[str], text: str) -> None:
    asking = user(filled)
    assert text in asking.post("/act", redrive(asking.get(LETTERS), *ids)).text


def test_a_letter_stays_where_its_stream_takes_nothing(filled: Filled) -> None:
    filled.client.set("string", "x")
    filled.client.xadd("full", {"n": 1}, id=f"{2**64 - 1}-{2**64 - 1}")
    filled.client.xadd("dead", letter(1, "string"), id="1-0")
    filled.client.xadd("dead", letter(1, "full"), id="2-0")
    asking = user(filled)
    page = asking.get("/letters?db=0&key=dead")
    assert "string is not a stream." in asking.post("/act", redrive(page, "1-0")).text
    assert "full takes no more entries." in asking.post("/act", redrive(page, "2-0")).text
    assert filled.client.xlen("dead") == 2


class TestLettersOfPolicies:
    """The entry 1-0 was given up by ann, and 9-0 was never delivered."""

    PAGE = "/letters?db=0&key=gone"

    def give_up(self, filled: Filled, *ids: str) -> None:
        client = filled.client
        client.execute_command(
            "PENSTOCK POLICY", "SET", "orders", "GROUP", "kitchen", "dead-letter", "gone"
        )
        client.execute_command("XNACK", "orders", "kitchen", "FATAL", "IDS", len(ids), *ids)

    def test_it_goes_back_to_its_group(self, filled: Filled) -> None:
        self.give_up(filled, "1-0", "2-0")
        ((first, _), _) = filled.client.xrange("gone")
        asking = user(filled)
        asked = asking.post("/act", redrive(asking.get(self.PAGE), first.decode()))
        assert f"PENSTOCK REDRIVE gone {first.decode()}" in asked.text
        assert "1 dead letter will go back to the group: as pending entries" in asked.text
        assert "XADD" not in asked.text
        assert "Done." in confirmed(asking, asked).text
        assert filled.client.xlen("orders") == 10
        assert filled.client.xlen("gone") == 1
        row = filled.client.xpending_range("orders", "kitchen", "-", "+", 1)[0]
        assert (row["message_id"], row["consumer"], row["times_delivered"]) == (b"1-0", b"", 0)

    def test_others_beside_it_are_added_again(self, filled: Filled) -> None:
        self.give_up(filled, "1-0", "2-0")
        filled.client.xadd("gone", letter(7))
        asking = user(filled)
        page = asking.get(self.PAGE)
        asked = asking.post("/act", redrive(page, *letters(filled.client, "gone")))
        assert "2 dead letters will go back to the group" in asked.text
        assert "1 dead letter will be added to the stream of origin" in asked.text
        assert "Done." in confirmed(asking, asked).text
        assert filled.client.xlen("gone") == 0
        assert filled.client.xlen("orders") == 11
        assert filled.client.xpending("orders", "kitchen")["pending"] == 8

    def test_it_stays_where_its_group_is_gone(self, filled: Filled) -> None:
        self.give_up(filled, "1-0")
        filled.client.xgroup_destroy("orders", "kitchen")
        asking = user(filled)
        refused = asking.post(
            "/act", redrive(asking.get(self.PAGE), *letters(filled.client, "gone"))
        )
        assert refused.status == 409
        assert "The stream orders has no group kitchen any more." in refused.text
        assert filled.client.xlen("gone") == 1

    def test_the_right_to_its_stream_is_needed(self, filled: Filled) -> None:
        self.give_up(filled, "1-0")
        rules = ("on", ">secret", "resetkeys", "~gone", "%R~*", "+@all")
        filled.client.execute_command("ACL", "SETUSER", "sweeper", *rules)
        asking = user(filled, "sweeper")
        refused = asking.post(
            "/act", redrive(asking.get(self.PAGE), *letters(filled.client, "gone"))
        )
        assert refused.status == 403
        assert "Your user may not run XADD on this key." in refused.text
        assert filled.client.xlen("gone") == 1


def test_the_right_to_add_to_the_stream_of_origin_is_needed(filled: Filled) -> None:
    filled.client.execute_command(
        "ACL", "SETUSER", "sweeper", "on", ">secret", "resetkeys", "~orders:dead", "%R~*", "+@all"
    )
    asking = user(filled, "sweeper")
    refused = asking.post("/act", redrive(asking.get(LETTERS), "1-0"))
    assert "Your user may not run XADD on this key." in refused.text


# --- more of what can be done to letters -----------------------------------------------------


def test_all_letters_of_a_filter_go_back_and_no_others(filled: Filled) -> None:
    client = filled.client
    other = {**letter(4), "dead-letter-reason": "no tea"}
    client.xadd("orders:dead", other, id="4-0")
    asking = user(filled)
    page = asking.get(LETTERS + "&reason=no+tea")
    assert len(page.table("Died")) == 1
    asked = asking.post("/act", page.fields("redrive"))
    assert "Redrive 1 dead letter" in asked.text
    client.xadd("orders:dead", {**other, "n": "5"}, id="5-0")
    assert confirmed(asking, asked).status == 409
    assert client.xlen("orders:dead") == 5
    assert "Done." in confirmed(asking, asking.post("/act", page.fields("redrive"))).text
    assert letters(client) == ["1-0", "2-0", "3-0"]


def test_thousands_of_letters_go_back_in_batches(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_actions, "BATCH", 2)
    asking = user(filled)
    asked = asking.post("/act", asking.get(LETTERS).fields("redrive"))
    assert asked.text.count("MULTI XADD") == 2
    assert "Done. 3 dead letters went back." in confirmed(asking, asked).text
    assert (letters(filled.client), filled.client.xlen("orders")) == ([], 13)


def test_a_script_is_told_how_far_an_act_on_thousands_is(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_actions, "BATCH", 1)
    asking = user(filled)
    asked = asking.post("/act", asking.get(LETTERS).fields("redrive"))
    answer = asking.post("/act", asked.fields(), X_Part="1")
    assert answer.html.startswith("1/3\n2/3\n3/3\n<!doctype html>")
    assert "Done. 3 dead letters went back." in answer.text


@pytest.mark.parametrize("part", [{}, {"X_Part": "1"}])
def test_what_was_done_before_an_act_on_thousands_failed_is_told(
    filled: Filled, monkeypatch: pytest.MonkeyPatch, part: dict[str, str]
) -> None:
    monkeypatch.setattr(entry_actions, "BATCH", 1)
    run_one, wanted = running._run_one, iter([True] * 8 + [False])

    def run_some(server: Services, session: Session, command: list[bytes]) -> int:
        if not next(wanted):
            raise Refused("XADD: OOM command not allowed", 409)
        return run_one(server, session, command)

    monkeypatch.setattr(running, "_run_one", run_some)
    asking = user(filled)
    asked = asking.post("/act", asking.get(LETTERS).fields("redrive"))
    answer = asking.post("/act", asked.fields(), **part)
    assert "OOM command not allowed Before that: 2 dead letters went back." in answer.text
    assert answer.status == (200 if part else 409)
    assert letters(filled.client) == ["3-0"]


def test_a_letter_is_deleted(filled: Filled) -> None:
    asking = user(filled)
    fields = [*asking.get(LETTERS).fields("drop", -1), ("id", "2-0"), ("id", "3-0")]
    asked = asking.post("/act", fields)
    assert "XDEL orders:dead 2-0 3-0" in asked.text
    assert "Done. 2 dead letters were deleted." in confirmed(asking, asked).text
    assert letters(filled.client) == ["1-0"]
    assert "2-0 is not there any more." in asking.post("/act", fields).text


def test_all_letters_of_a_filter_are_deleted_and_no_others(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", asking.get(f"{LETTERS}&text=2").fields("drop"))
    assert "Delete 1 dead letter" in asked.text
    assert "XDEL orders:dead 2-0" in asked.text
    assert "Done. 1 dead letter was deleted." in confirmed(asking, asked).text
    assert letters(filled.client) == ["1-0", "3-0"]


class TestEditing:
    """A letter is changed and sent again, and goes, in one transaction."""

    def asked(self, filled: Filled, asking: Asking, entry: str, **values: str) -> Answer:
        fields = [pair for pair in asking.get(LETTERS).fields("drop", -1) if pair[0] != "kind"]
        form = asking.post("/act", [*fields, ("edit", entry)])
        assert form.status == 200
        inputs = re.findall(r'<input name="(.*?)" value="(.*?)"', form.html)
        areas = re.findall(r'<textarea name="(.*?)".*?>\n(.*?)</textarea>', form.html, re.S)
        typed = {unescape(name): unescape(value) for name, value in inputs + areas}
        return asking.post("/act", [*form.fields(), *{**typed, **values}.items()])

    def test_what_was_changed_is_sent_and_the_letter_goes(self, filled: Filled) -> None:
        asking = user(filled)
        asked = self.asked(filled, asking, "2-0", value1="3", name0="number")
        assert "MULTI XADD orders * number 2 cups 3 XDEL orders:dead 2-0 EXEC" in asked.text
        assert letters(filled.client) == ["1-0", "2-0", "3-0"]
        assert "Done." in confirmed(asking, asked).text
        assert letters(filled.client) == ["1-0", "3-0"]
        ((_, fields),) = filled.client.xrevrange("orders", count=1)
        assert fields == {b"number": b"2", b"cups": b"3"}

    def test_a_field_without_a_name_is_left_out(self, filled: Filled) -> None:
        asking = user(filled)
        asked = self.asked(filled, asking, "2-0", name0="")
        assert "XADD orders * cups three XDEL" in asked.text
        assert "at least one field" in self.asked(filled, asking, "2-0", name0="", name1="").text

    def test_what_cannot_be_typed_stays_as_it_is(self, filled: Filled) -> None:
        binary, lines = b"\xff\x00\xfe", b"one\ntwo\n"
        kept = {**letter(9), "image": binary, "text": lines, "long": "x" * 20_000}
        filled.client.xadd("orders:dead", kept, id="9-0")
        asking = user(filled)
        asked = self.asked(filled, asking, "9-0", value1="4", value3="one\r\nthree\r\n")
        assert "Done." in confirmed(asking, asked).text
        ((_, fields),) = filled.client.xrevrange("orders", count=1)
        assert (fields[b"cups"], fields[b"image"]) == (b"4", binary)
        assert (fields[b"text"], len(fields[b"long"])) == (b"one\nthree\n", 20_000)

    def test_a_letter_that_has_gone_meanwhile_is_not_sent(self, filled: Filled) -> None:
        asking = user(filled)
        asked = self.asked(filled, asking, "2-0", value1="3")
        filled.client.xdel("orders:dead", "2-0")
        assert confirmed(asking, asked).status == 409
        assert filled.client.xlen("orders") == 10

    def test_both_rights_are_needed(self, filled: Filled) -> None:
        rules = ("on", ">secret", "resetkeys", "~orders:dead", "%R~*", "+@all")
        filled.client.execute_command("ACL", "SETUSER", "sweeper", *rules)
        asking = user(filled, "sweeper")
        refused = self.asked(filled, asking, "2-0", value1="3")
        assert refused.status == 403
        assert "Your user may not run XADD on this key." in refused.text


# --- pending entries and consumers -----------------------------------------------------------


def pending(client: Any) -> dict[str, tuple[str, int]]:
    return {
        row["message_id"].decode(): (row["consumer"].decode(), row["times_delivered"])
        for row in client.xpending_range("orders", "kitchen", "-", "+", 20)
    }


def test_chosen_entries_are_acknowledged(filled: Filled) -> None:
    asking = user(filled)
    fields = [*asking.get(GROUP).fields("ack"), ("id", "1-0"), ("id", "3-0")]
    asked = asking.post("/act", fields)
    assert "XACK orders kitchen 1-0 3-0" in asked.text
    assert len(pending(filled.client)) == 8
    assert "Done. 2 entries were acknowledged." in confirmed(asking, asked).text
    assert set(pending(filled.client)) == {f"{at}-0" for at in (2, 4, 5, 6, 7, 8)}
    assert "1-0 is not pending any more" in asking.post("/act", fields).text


def test_chosen_entries_are_claimed_for_another_consumer(filled: Filled) -> None:
    asking = user(filled)
    form = asking.post("/act", [*asking.get(GROUP).fields("claim"), ("id", "1-0")])
    assert "New consumer" in form.text
    asked = asking.post("/act", [*form.fields(), ("to", "bob")])
    assert "XCLAIM orders kitchen bob 0 1-0" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert pending(filled.client)["1-0"] == ("bob", 2)


def test_entries_that_somebody_else_has_meanwhile_are_left_alone(filled: Filled) -> None:
    asking = user(filled)
    for kind in ("back", "ack"):
        asked = asking.post("/act", [*asking.get(GROUP).fields(kind), ("id", "1-0")])
        filled.client.xclaim("orders", "kitchen", f"bob {kind}", 0, ["1-0"])
        assert confirmed(asking, asked).status == 409
        assert pending(filled.client)["1-0"][0] == f"bob {kind}"


def test_all_that_a_consumer_holds_is_given_back(filled: Filled) -> None:
    asking = user(filled)
    page = asking.get("/consumer?db=0&key=orders&group=kitchen&name=ann")
    asked = asking.post("/act", page.fields("back"))
    assert "XNACK orders kitchen SILENT IDS 8 1-0" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert set(pending(filled.client).values()) == {("", 0)}
    refused = asking.post("/act", page.fields("back"))
    assert "it holds no entries" in refused.text
    one = [*asking.get(GROUP).fields("back"), ("id", "1-0")]
    assert "RETRYCOUNT 0" in asking.post("/act", one).text


def test_a_consumer_that_is_removed_gives_its_entries_back_first(filled: Filled) -> None:
    asking = user(filled)
    page = asking.get("/consumer?db=0&key=orders&group=kitchen&name=ann")
    asked = asking.post("/act", page.fields("remove"))
    assert "MULTI XNACK orders kitchen SILENT" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert filled.client.xinfo_consumers("orders", "kitchen") == []
    assert len(pending(filled.client)) == 8
    assert "The consumer is not there any more." in asking.post("/act", page.fields("remove")).text
    without = [pair for pair in page.fields("remove") if pair[0] != "consumer"]
    assert "Choose a consumer" in asking.post("/act", [*without, ("id", "1-0")]).text


def test_entries_become_dead_letters_where_there_is_a_place_for_them(filled: Filled) -> None:
    asking = user(filled)
    fields = [*asking.get(GROUP).fields("ack")[:-1], ("kind", "bury"), ("id", "1-0")]
    assert "no policy dead-letter" in asking.post("/act", fields).text
    words = ("SET", "orders", "GROUP", "kitchen", "dead-letter", "orders:dead")
    filled.client.execute_command("PENSTOCK POLICY", *words)
    asked = asking.post("/act", fields)
    assert "XNACK orders kitchen FATAL IDS 1 1-0" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert filled.client.xlen("orders:dead") == 4


# --- policies, entries -----------------------------------------------------------------------


def policies(client: Any) -> list[bytes]:
    found = client.execute_command("PENSTOCK POLICY", "GET", "orders", "GROUP", "kitchen")
    return [each for pair in found.items() for each in pair] if isinstance(found, dict) else found


def test_a_group_is_paused_and_resumed(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", asking.get(GROUP).fields("pause"))
    assert "PENSTOCK POLICY SET orders GROUP kitchen paused yes" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert policies(filled.client) == [b"paused", b"yes"]
    page = asking.get(GROUP)
    assert "Paused Resume…" in page.text
    assert "Done." in confirmed(asking, asking.post("/act", page.fields("resume"))).text
    assert policies(filled.client) == [b"paused", b"no"]


def test_policies_are_set_and_taken_away(filled: Filled) -> None:
    asking = user(filled)
    form = asking.post("/act", asking.get(GROUP).fields("policy"))
    words = {"set ack-wait": "30s", "set dead-letter": "orders:dead", "set max-deliveries": "3"}
    asked = asking.post("/act", [*form.fields(), *words.items()])
    assert "SET orders GROUP kitchen ack-wait 30s max-deliveries 3 dead-letter" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert b"30000" in policies(filled.client)
    again = [*form.fields(), ("set dead-letter", "orders:dead"), ("set max-deliveries", "4")]
    asked = asking.post("/act", again)
    assert "DEL orders GROUP kitchen ack-wait" in asked.text
    assert "SET orders GROUP kitchen max-deliveries 4" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert b"ack-wait" not in policies(filled.client)
    wrong = asking.post("/act", [*form.fields(), ("set ack-wait", "soon")])
    assert "ack-wait: 'soon' is not" in wrong.text
    same = [*form.fields(), ("set dead-letter", "orders:dead"), ("set max-deliveries", "4")]
    assert "No policy was changed." in asking.post("/act", same).text


def test_policies_that_cannot_be_together_are_refused_by_the_command(filled: Filled) -> None:
    asking = user(filled)
    form = asking.post("/act", asking.get(GROUP).fields("policy"))
    asked = asking.post("/act", [*form.fields(), ("set max-deliveries", "3")])
    refused = confirmed(asking, asked)
    assert (refused.status, "dead-letter" in refused.text) == (409, True)
    assert policies(filled.client) == []


def test_an_entry_is_added(filled: Filled) -> None:
    asking = user(filled)
    form = asking.post("/act", asking.get("/stream?db=0&key=orders").fields("add"))
    typed = [("name0", "item"), ("value0", "tea\r\nhot"), ("name2", "cups"), ("value2", "2")]
    asked = asking.post("/act", [*form.fields(), *typed])
    assert "Done." in confirmed(asking, asked).text
    ((_, fields),) = filled.client.xrevrange("orders", count=1)
    assert fields == {b"item": b"tea\nhot", b"cups": b"2"}
    assert "at least one field" in asking.post("/act", form.fields()).text


def test_a_stream_is_trimmed(filled: Filled) -> None:
    asking = user(filled)
    form = asking.post("/act", asking.get("/stream?db=0&key=orders").fields("trim"))
    assert "It has 10 entries" in form.text
    asked = asking.post("/act", [*form.fields(), ("to", "4")])
    assert "6 entries are deleted for good" in asked.text
    assert "Done." in confirmed(asking, asked).text
    assert filled.client.xlen("orders") == 4
    assert "0 or more" in asking.post("/act", [*form.fields(), ("to", "x")]).text


# --- the way of a client ---------------------------------------------------------------------


def test_an_action_is_in_the_slow_log_and_in_the_file_like_a_command(filled: Filled) -> None:
    filled.client.config_set("slowlog-log-slower-than", 0)
    filled.client.slowlog_reset()
    asking = user(filled)
    confirmed(asking, asking.post("/act", [*asking.get(GROUP).fields("position"), ("by", "3")]))
    (entry,) = [
        each for each in filled.client.slowlog_get() if each["command"].startswith(b"XGROUP")
    ]
    assert entry["client_name"] == b"page"
    filled.client.config_set("slowlog-log-slower-than", 10_000)
    assert position(filled.client) == "5-0"


def test_what_the_server_refuses_is_told_and_undone(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", redrive(asking.get(LETTERS), "1-0"))
    filled.client.config_set("maxmemory", 1)
    try:
        refused = confirmed(asking, asked)
    finally:
        filled.client.config_set("maxmemory", 0)
    assert refused.status == 409
    assert "XADD: OOM command not allowed" in refused.text
    assert filled.client.xlen("orders:dead") == 3


def test_writes_that_are_held_back_are_held_back_here_too(filled: Filled) -> None:
    asking = user(filled)
    asked = asking.post("/act", redrive(asking.get(LETTERS), "1-0"))
    filled.client.execute_command("CLIENT", "PAUSE", "100000", "WRITE")
    refused = confirmed(asking, asked)
    filled.client.execute_command("CLIENT", "UNPAUSE")
    assert (refused.status, "CLIENT PAUSE" in refused.text) == (503, True)


SET = PageAction("", "", 0, [[[b"SET", b"k", b"v"]]], "/")


async def ran(services: Services, user: bytes, action: PageAction) -> list[int]:
    return [done async for done in running.run(services, user, "127.0.0.1:1", action)]


async def test_no_client_is_left_behind(direct: Direct) -> None:
    services = direct.server.services
    assert await ran(services, b"default", SET) == [0]
    assert direct.client().send("GET", "k") == b"$1\r\nv\r\n"
    with pytest.raises(Refused, match="The user is gone"):
        await ran(services, b"nobody", SET)
    wait = SET._replace(batches=[[[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]]])
    with pytest.raises(Refused, match="takes too long"):
        await ran(services, b"default", wait)
    assert not services.blocking.waiters
    assert len(direct.server.state.sessions) == 1


@pytest.mark.parametrize("safe", [True, False])
async def test_an_answer_waits_for_the_file(safe: bool) -> None:
    direct = Direct()
    services, commit = direct.server.services, hold_output(direct)
    acting = asyncio.create_task(ran(services, b"default", SET))
    await asyncio.sleep(0)
    assert not acting.done()
    if safe:
        commit.settle()
        await acting
    else:
        (session,) = services.state.sessions.values()
        session.link.close()
        commit.settle()
        with pytest.raises(Refused, match="may or may not be on the disk"):
            await acting
    assert not services.state.sessions
