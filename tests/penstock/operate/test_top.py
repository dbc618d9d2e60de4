"""``penstock top``: groups as they are now, and what keys do."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.connection import ServerConnection
from penstock.client.urls import parse
from penstock.operate import top
from penstock.operate.groups import GroupReport
from penstock.operate.top import Watch
from penstock.operate.top_pages import BACK, DOWN, END, ENTER, ERASE, HOME, PAGE_DOWN, UP
from tests.penstock.operate.conftest import Client, Run


def read(client: Client, **options: Any) -> None:
    client.xreadgroup("kitchen", "alice", {"orders": ">"}, **options)


@pytest.fixture
def watch(url: str) -> Iterator[Watch]:
    with ServerConnection("server", parse(url), 0) as server:
        yield Watch(server, "*", lambda: 0.0)


def seen(watch: Watch, width: int = 80, height: int = 24) -> list[str]:
    found = [str(line) for line in watch.lines(width, height).renderables]
    assert len(found) <= height
    assert all(len(line) <= width for line in found)
    return [line.rstrip() for line in found]


def names(watch: Watch, **size: int) -> list[str]:
    """The groups that are listed."""
    return [line.split(" / ")[1].split()[0] for line in seen(watch, **size)[2:-1]]


def test_where_there_is_no_terminal_it_prints_as_often_as_it_is_told(
    run: Run, client: Client
) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    status, out, _ = run("top", "--times", "2", "--every", "0.001")
    assert status == 0
    assert out.count("1 group, none of them in trouble.") == 2
    assert "added/s" in out
    status, _, error = run("top", "--every", "0")
    assert (status, error.splitlines()[-1]) == (
        2,
        "penstock top: error: --every is a number of seconds above 0",
    )


def test_it_counts_what_was_added_and_delivered_a_second(url: str, client: Client) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True, entries_read=0)
    now = [0.0]
    with ServerConnection("server", parse(url), 0) as server:
        watch = Watch(server, "*", lambda: now[0])
        watch.look()
        for _ in range(10):
            client.xadd("orders", {"item": "tea"})
        read(client, count=4)
        now[0] = 2.0
        watch.look()
        _, head, row, _ = seen(watch)
    assert head.split()[-2:] == ["in/s", "read/s"]
    assert row.split()[-2:] == ["5", "2"]


def test_nine_groups_with_long_names_fit_on_a_line_each_in_80_by_24(
    watch: Watch, client: Client
) -> None:
    for number in range(9):
        stream = f"telemetry-aggregator-of-the-northern-region-{number}"
        client.xgroup_create(stream, f"kitchen-{number}", mkstream=True)
    watch.look()
    found = seen(watch)
    assert len(found) == 2 + 9 + 1
    assert all("\N{HORIZONTAL ELLIPSIS}" in line for line in found[2:-1])
    assert found[2].split()[0] == "fine"
    wide = seen(watch, 140, 50)
    assert "telemetry-aggregator-of-the-northern-region-0 / kitchen-0" in wide[2]


def test_the_list_is_moved_through_and_shows_what_fits(watch: Watch, client: Client) -> None:
    for number in range(9):
        client.xgroup_create("orders", f"group-{number}", mkstream=True)
    watch.look()
    assert names(watch, height=6) == ["group-0", "group-1", "group-2"]
    for key in (DOWN, "j", DOWN):
        watch.press(key)
    assert names(watch, height=6) == ["group-1", "group-2", "group-3"]
    watch.press(END)
    assert names(watch, height=6) == ["group-6", "group-7", "group-8"]
    for key in (UP, "k", UP):
        watch.press(key)
    assert names(watch, height=6) == ["group-5", "group-6", "group-7"]
    watch.press(HOME)
    assert names(watch, height=6) == ["group-0", "group-1", "group-2"]
    watch.press(PAGE_DOWN)
    assert names(watch, height=6) == ["group-1", "group-2", "group-3"]
    assert names(watch, height=24) == [f"group-{number}" for number in range(9)]


def test_s_sorts_by_something_else_and_a_filter_leaves_some(watch: Watch, client: Client) -> None:
    for stream, count in (("a", 1), ("b", 3), ("c", 2)):
        client.xgroup_create(stream, f"of-{stream}", mkstream=True)
        for _ in range(count):
            client.xadd(stream, {"n": 1})
    watch.look()
    assert names(watch) == ["of-b", "of-c", "of-a"]
    orders = []
    for _ in range(5):
        watch.press("s")
        orders.append((re.findall(r"by (\w+):", seen(watch)[-1])[0], names(watch)))
    assert [name for name, _ in orders] == ["oldest", "lag", "pending", "name", "trouble"]
    assert dict(orders)["lag"] == ["of-b", "of-c", "of-a"]
    assert dict(orders)["name"] == ["of-a", "of-b", "of-c"]
    for key in ("/", "q", ERASE, "o", "f", "-", "c"):
        assert watch.press(key)
    assert names(watch) == ["of-c"]
    assert seen(watch)[-1].startswith("/of-c")
    watch.press(ENTER)
    assert seen(watch)[-1].startswith("1 of 3 groups with 'of-c', by trouble: ")
    watch.press(BACK)
    assert len(names(watch)) == 3


def test_a_group_and_an_entry_of_it_are_opened_and_left(watch: Watch, client: Client) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    first = client.xadd("orders", {"item": "tea", "note": "two\nlines"})
    second = client.xadd("orders", {"item": "cake"})
    read(client)
    for _ in range(5):
        client.xclaim("orders", "kitchen", "alice", 0, [first])
    watch.look()
    watch.press(ENTER)
    page = seen(watch)
    assert page[:2] == [
        "orders / kitchen: failing",
        "  failing: an entry was delivered 6 times",
    ]
    assert "  alice: 2 pending, asked" in page[3]
    assert [line.split()[0] for line in page[5:7]] == [first, second]
    assert "with alice" in page[5]
    assert page[5].endswith("delivered 6 times")
    watch.press(ENTER)
    assert seen(watch)[:3] == [first, "  item  tea", "  note  two\\nlines"]
    watch.press(BACK)
    watch.press(DOWN)
    client.xdel("orders", second)
    watch.press(ENTER)
    assert seen(watch)[:2] == [second, "The entry has been deleted from the stream."]
    watch.press(BACK)
    watch.press(BACK)
    assert names(watch) == ["kitchen"]
    assert not watch.press("q")


def test_an_open_group_is_looked_at_anew(watch: Watch, client: Client) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    first, second = (client.xadd("orders", {"n": number}) for number in range(2))
    read(client)
    watch.look()
    watch.press(ENTER)
    watch.press(DOWN)
    client.xack("orders", "kitchen", second)
    watch.look()
    assert "1 pending, the first by ID:" in seen(watch)
    watch.press(ENTER)
    assert seen(watch)[0] == first
    watch.press(BACK)
    client.xack("orders", "kitchen", first)
    watch.look()
    assert watch.press(ENTER)
    assert "0 pending, the first by ID:" in seen(watch)


def test_nothing_to_open_is_no_error(watch: Watch, client: Client) -> None:
    watch.look()
    assert watch.press(ENTER)
    client.xgroup_create("orders", "kitchen", mkstream=True)
    watch.look()
    for _ in range(3):
        assert watch.press(ENTER)
    assert seen(watch)[0] == "orders / kitchen: fine"


def test_the_group_that_was_chosen_stays_so(watch: Watch, client: Client) -> None:
    for name in ("a", "b"):
        client.xgroup_create(name, f"of-{name}", mkstream=True)
    watch.look()
    watch.press(DOWN)
    for _ in range(3):
        client.xadd("b", {"n": 1})
    watch.look()
    assert names(watch) == ["of-b", "of-a"]
    watch.press(ENTER)
    assert seen(watch)[0].startswith("b / of-b")


@pytest.mark.parametrize("url", ["penstock_url"], indirect=True)
def test_in_a_terminal_keys_work_without_enter_and_it_is_left_as_it_was(
    url: str, client: Client
) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "penstock", "top", "--url", url, "--every", "60"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        written = until(ours, "q quits")
        os.write(ours, b"\n")
        written += until(ours, "0 consumers")
        os.write(ours, b"q")
        written += until(ours, "\x1b[?1049l")
        assert process.wait() == 0
    os.close(ours)
    assert "\x1b[?1049h" in written


def test_a_terminal_that_has_gone_ends_it_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: object) -> int:
        raise EOFError

    monkeypatch.setattr(top, "_watch", gone)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert top.main([]) == 0
    assert capsys.readouterr() == ("", "")


def until(terminal: int, text: str) -> str:
    """What is written to a terminal up to a text."""
    found, end = "", time.monotonic() + 60
    while text not in found:
        assert time.monotonic() < end, found
        found += os.read(terminal, 4096).decode()
    return found


@pytest.mark.parametrize(("before", "now", "text"), [(None, 5, ""), (5, None, ""), (9, 5, "0")])
def test_a_rate_that_is_not_known_is_empty(before: int | None, now: int | None, text: str) -> None:
    def group(read: int | None) -> GroupReport:
        return GroupReport(b"orders", b"kitchen", 0, 0, 0, None, 0, None, None, 0, False, 0, read)

    key = (b"orders", b"kitchen")
    assert top.rates({key: group(before)}, [group(now)], 1)[key] == ("0", text)
