"""What a screen costs: steps of Python are counted, which no busy machine changes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, Final

import pytest

from server.web.page import entry_screen, group_screen, letters, overview, stream_screen
from server.web.page.overview import PAGE
from server.web.page.stream_screen import SEARCHED
from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled

STREAMS: Final = 10_000
SMALL: Final = 2_000
LARGE: Final = 20 * SMALL

MOST_LINES: Final = 100
"""How many lines each of many streams may cost."""

PACKAGES: Final = ("penstock", "server", "storage")
"""Where the lines are that are counted, unless they are compiled."""

SCREENS: Final = {
    "the overview": (overview, "/"),
    "the newest entries": (stream_screen, "/stream?db=0&key={key}"),
    "entries of a time": (stream_screen, "/stream?db=0&key={key}&at={middle}-0"),
    "a group": (group_screen, "/group?db=0&key={key}&group=g"),
    "what is pending by ID": (group_screen, "/group?db=0&key={key}&group=g&order=id"),
    "what was delivered most": (group_screen, "/group?db=0&key={key}&group=g&order=deliveries"),
    "a consumer": (group_screen, "/consumer?db=0&key={key}&group=g&name=ann"),
    "an entry": (entry_screen, "/entry?db=0&key={key}&id={middle}-0"),
    "dead letters": (letters, "/letters?db=0&key={key}"),
}
"""Which module draws them, and their addresses."""

pytestmark = pytest.mark.slow


@contextmanager
def counted(filled: Filled) -> Iterator[Counter[str]]:
    """Count the lines that the server runs meanwhile, by module."""
    lines: Counter[str] = Counter()

    def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            lines[frame.f_globals["__name__"]] += 1
        return line

    def frame(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        return line if package in PACKAGES else None

    before = filled.penstock.call(sys.gettrace)
    filled.penstock.call(sys.settrace, frame)
    try:
        yield lines
    finally:
        filled.penstock.call(sys.settrace, before)


def add(client: Any, key: str, count: int) -> None:
    """A stream of so many entries; a group has read half of them and acknowledged nothing."""
    pipeline = client.pipeline(transaction=False)
    for at in range(1, count + 1):
        pipeline.xadd(key, {"order": at}, id=f"{at}-0")
    pipeline.xgroup_create(key, "g", "0")
    pipeline.xgroup_create(key, "new", "$")
    pipeline.xreadgroup("g", "ann", {key: ">"}, count=count // 2)
    pipeline.execute()


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    with Filled() as found:
        add(found.client, "small", SMALL)
        add(found.client, "large", LARGE)
        found.look()
        yield found


def lines_of(filled: Filled, module: ModuleType, path: str) -> int:
    """Return how many lines the server runs for a screen, which the module draws."""
    with counted(filled) as lines:
        assert Asking(filled.http).get(path).status == 200
    assert lines[module.__name__] > 0, "what is counted is the screen"
    return lines.total()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_does_not_cost_more_for_a_longer_stream(filled: Filled, screen: str) -> None:
    module, path = SCREENS[screen]
    small, large = (
        lines_of(filled, module, path.format(key=key, middle=count // 2))
        for key, count in (("small", SMALL), ("large", LARGE))
    )
    assert large < 1.5 * small


def test_a_filter_that_fits_nothing_ends_at_its_limit(filled: Filled) -> None:
    path = "/stream?db=0&key={key}&field=nothing"
    small, large = (
        lines_of(filled, stream_screen, path.format(key=key)) for key in ("small", "large")
    )
    assert SMALL < SEARCHED < LARGE
    assert large < 1.5 * small * SEARCHED / SMALL


def test_a_look_does_not_cost_more_for_a_longer_stream(filled: Filled) -> None:
    with counted(filled) as both:
        filled.look()
    assert 0 < both.total() < 2 * SMALL


def test_many_streams_are_looked_at_and_shown_without_their_entries() -> None:
    with Filled() as filled:
        pipeline = filled.client.pipeline(transaction=False)
        for at in range(STREAMS):
            pipeline.xadd(f"s:{at}", {"f": "v"})
        pipeline.execute()
        with counted(filled) as look:
            filled.look()
        assert len(filled.sampler.rows) == STREAMS
        assert look.total() < MOST_LINES * STREAMS
        with counted(filled) as lines:
            answer = Asking(filled.http).get("/")
        assert len(answer.table("Entries")) == PAGE
        assert "10,000 streams" in answer.text
        assert lines.total() < MOST_LINES * STREAMS
        storage = sum(lines[module] for module in lines if module.startswith("storage."))
        assert storage < STREAMS // 10
