"""The page in a real browser: every screen, on a phone and a desktop, light and dark.

A Chromium that is installed is driven without a window (Debian: the package ``chromium``). With
PENSTOCK_SCREENSHOTS=FOLDER a picture of each is written to the folder, and the pictures of the
docs as well: ``PENSTOCK_SCREENSHOTS=docs/images pytest -k pictures`` updates those.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from penstock.cli import run_tool
from server.web.page import entry_actions, routes, stream_screen
from tests.server.web.page.filling import (
    Filled,
    fill,
    fill_with_hostile_names,
    fill_with_large_things,
    fill_with_nothing,
)
from tests.support.wire import wait_until

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FOLDER = os.environ.get("PENSTOCK_SCREENSHOTS", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
]

SCREENS = {
    "overview": "/",
    "failing": "/?which=trouble",
    "stream": "/stream?db=0&key=orders",
    "search": "/stream?db=0&key=orders&field=item&value=coco",
    "group": "/group?db=0&key=orders&group=kitchen",
    "consumer": "/consumer?db=0&key=orders&group=kitchen&name=ann",
    "policies of a stream": "/stream?db=0&key=payments",
    "policies of a group": "/group?db=0&key=payments&group=ledger",
    "letters": "/letters",
    "letter": "/letters?db=0&key=orders:dead",
    "find": "/find?match=e",
    "hash": "/key?db=0&key=settings",
    "string": "/key?db=0&key=greeting",
    "server": "/server",
    "latency": "/server?tab=latency",
    "files": "/server?tab=files",
    "slow": "/server?tab=slow",
    "you": "/server?tab=you",
    "missing": "/stream?db=0&key=nothing",
}
DESKTOP = {"width": 1440, "height": 900}
NARROWER = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


class Looking:
    """A window of the browser, which notes whatever it complains of."""

    def __init__(
        self, browser: Browser, filled: Filled, size: dict[str, int], scheme: str, zone: str = "UTC"
    ) -> None:
        context: Any = {"viewport": size, "color_scheme": scheme, "device_scale_factor": 1}
        context["timezone_id"] = zone
        self._context = browser.new_context(**context)
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self._base = f"http://127.0.0.1:{filled.http}"
        self._suffix = f"-{size['width']}-{scheme}"
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not re.search("status of 40[34]", text):
            self.complaints.append(text)

    def go(self, path: str) -> None:
        """Opens a screen."""
        self.page.goto(self._base + path)

    def check(self, name: str = "", gone: bool = False) -> None:
        """Nothing is wider than the window, nothing came from elsewhere, nobody complained, unless
        the server is gone. What has a name is kept as a picture if pictures are wanted."""
        if FOLDER and name:
            self.page.wait_for_timeout(100)
            self.page.screenshot(path=f"{FOLDER}/{name}{self._suffix}.png", full_page=True)
        wide: Any = self.page.evaluate(
            "[...document.querySelectorAll('body *')].filter(each =>"
            " !each.closest('pre, .hide, .cut, .cards thead')"
            " && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML)"
        )
        assert wide == []
        scrolled: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert scrolled <= 0
        assert gone or self.complaints == []
        assert all(url.startswith(self._base) for url in self.asked)

    def links(self, selector: str) -> list[str]:
        """Where the links on the screen lead that fit a selector."""
        found: Any = self.page.evaluate(
            f"[...document.querySelectorAll({selector!r})].map(each => each.getAttribute('href'))"
        )
        return [path for path in found if path]

    def log_in(self, user: str, password: str) -> None:
        """Logs in by the form."""
        self.go("/login")
        self.page.fill("input[name=user]", user)
        self.page.fill("input[name=password]", password)
        self.page.click(".login button")

    def close(self) -> None:
        self._context.close()


def until(page: Page, condition: str) -> None:
    """Waits until an expression is true; the page's policy lets the page itself evaluate none."""
    wait_until(lambda: page.evaluate(condition))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # As root, as in a container, Chromium has no sandbox of its own.
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    with Filled(web_actions=True, appendonly=True) as found:
        fill(found.client)
        found.client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        found.client.execute_command("ACL", "SETUSER", "blind", "on", ">secret", "~*", "+ping")
        for _ in range(3):
            found.look()
        yield found


LOOKS = [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")]
in_every_look = pytest.mark.parametrize(
    ("size", "scheme"), LOOKS, ids=["desktop", "desktop-dark", "phone", "phone-dark"]
)


@in_every_look
@pytest.mark.parametrize("user", ["", "ops", "blind"], ids=["looking", "acting", "denied"])
def test_every_screen_fits_and_nobody_complains(
    browser: Browser, filled: Filled, size: dict[str, int], scheme: str, user: str
) -> None:
    looking = Looking(browser, filled, size, scheme)
    looking.go("/login")
    looking.check("login")
    if user:
        looking.log_in(user, "secret")
    for name, path in SCREENS.items():
        looking.go(path)
        looking.check(f"{user or 'nobody'}-{name}")
    looking.close()


def screens_from(looking: Looking) -> Iterator[str]:
    """The address of each stream and group on the overview, and of the first entry and the first
    consumer on each of these."""
    looking.go("/")
    for path in looking.links("th a"):
        yield path
        looking.go(path)
        yield from looking.links("a.id")[:1]
        yield from looking.links("a[href^='/consumer']")[:1]


@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone-dark"]
)
@pytest.mark.parametrize(
    "kind", [fill_with_hostile_names, fill_with_large_things, fill_with_nothing]
)
def test_whatever_is_in_the_server_runs_nothing_and_fits(
    browser: Browser, kind: Callable[[Any], None], size: dict[str, int], scheme: str
) -> None:
    with Filled() as found:
        kind(found.client)
        found.look()
        looking = Looking(browser, found, size, scheme)
        looking.page.on("dialog", lambda dialog: looking.complaints.append(dialog.message))
        paths = ("/", "/letters", "/letters?db=0&key=letters", "/server", *screens_from(looking))
        for at, path in enumerate(paths):
            looking.go(path)
            looking.check(f"{kind.__name__}-{at:02}")
        looking.close()


def test_numbers_change_without_a_reload_and_what_was_chosen_stays(
    browser: Browser, filled: Filled
) -> None:
    looking = Looking(browser, filled, DESKTOP, "light")
    looking.log_in("ops", "secret")
    looking.go("/group?db=0&key=payments&group=ledger")
    page = looking.page
    page.evaluate("window.stays = document.querySelector('.figure .value')")
    lag = "document.querySelectorAll('.figure')[1].querySelector('.value').textContent"
    before = int(page.evaluate(lag))
    page.check(".pick >> nth=0")
    with page.expect_response("**/group?*"):
        filled.client.xadd("payments", {"amount": "1"})
        filled.look()
    until(page, f"{lag} == '{before + 1}'")
    assert page.evaluate("window.stays.isConnected") is True
    assert page.is_checked(".pick >> nth=0")
    assert page.is_visible(".chosen")
    looking.check()
    looking.close()


def test_a_screen_that_is_paused_stays_as_it_is(browser: Browser, filled: Filled) -> None:
    looking = Looking(browser, filled, DESKTOP, "light")
    looking.go("/stream?db=0&key=orders")
    page = looking.page
    until(page, "document.querySelector('#link-says').textContent == 'Live'")
    page.keyboard.press("p")
    until(page, "document.querySelector('#link-says').textContent == 'Paused'")
    first = page.inner_text("#entries .id >> nth=0")
    filled.client.xadd("orders", {"order": "1"})
    filled.look()
    page.wait_for_timeout(200)
    assert page.inner_text("#entries .id >> nth=0") == first
    page.keyboard.press("p")
    until(page, f"document.querySelector('#entries .id').textContent != '{first}'")
    looking.check()
    looking.close()


def test_a_chart_tells_the_value_under_the_pointer_and_where_the_arrow_keys_go(
    browser: Browser, filled: Filled
) -> None:
    filled.look()
    filled.look()
    looking = Looking(browser, filled, DESKTOP, "light")
    looking.go("/group?db=0&key=orders&group=kitchen")
    page = looking.page
    lag, told = page.locator(".chart").nth(1), page.locator(".chart .at").nth(1)
    assert told.inner_text() == ""
    box = lag.locator("svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 10)
    last = told.inner_text()
    value = filled.sampler.traces[0, b"orders", b"kitchen"].column("lag")[-1]
    assert last.startswith(f"{value:,} at ")
    page.mouse.move(0, 0)
    assert told.inner_text() == ""
    lag.focus()
    page.keyboard.press("ArrowLeft")
    assert told.inner_text() == last
    page.keyboard.press("ArrowLeft")
    assert told.inner_text() != last
    looking.check()
    looking.close()


def test_keys_lead_through_a_screen_and_typed_ones_are_text(
    browser: Browser, filled: Filled
) -> None:
    looking = Looking(browser, filled, DESKTOP, "light")
    looking.go("/group?db=0&key=orders&group=kitchen")
    page = looking.page
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    page.wait_for_selector("#keys", state="hidden")
    until(page, "document.activeElement.closest('dialog') === null")
    for _ in range(4):
        page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.locator(".pick:checked").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".pick:checked").count() == 0
    page.keyboard.press("t")
    assert page.inner_text("#zone") == "Times are in UTC"
    page.keyboard.press("/")
    page.keyboard.type("?jx")
    assert page.input_value(".jump input") == "?jx"
    page.fill(".jump input", "cleo")
    page.keyboard.press("Enter")
    page.click("#hits a")
    page.wait_for_selector("h1:text('cleo')")
    page.click("h1")
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.wait_for_url("**/")
    page.wait_for_selector("text=in trouble")
    looking.close()


def test_a_key_is_found_on_a_phone(browser: Browser, filled: Filled) -> None:
    looking = Looking(browser, filled, PHONE, "dark")
    looking.go("/")
    page = looking.page
    page.fill(".jump input", "greet")
    page.keyboard.press("Enter")
    page.click("#hits >> text=greeting")
    page.wait_for_selector("text=Good morning")
    looking.check()
    looking.close()


def test_the_row_that_keys_have_led_to_stays_that_row_when_the_screen_changes(
    browser: Browser,
) -> None:
    with Filled() as found:
        fill(found.client)
        found.look()
        looking = Looking(browser, found, DESKTOP, "light")
        looking.go("/group?db=0&key=orders&group=kitchen")
        page = looking.page
        until(page, "document.querySelector('#link-says').textContent == 'Live'")
        for _ in range(5):
            page.keyboard.press("j")
        here = "document.querySelector('[data-here] .pick')?.value"
        first, second = (entry.decode() for entry, _ in found.client.xrange("orders", count=2))
        assert page.evaluate(here) == second
        found.client.xack("orders", "kitchen", first)
        with page.expect_response("**/group?*"):
            found.look()
        until(page, "document.querySelector('.panel.choose header .muted').textContent == '54'")
        assert page.evaluate(here) == second
        page.keyboard.press("x")
        assert page.is_checked(f".pick[value='{second}']")
        looking.close()


def test_a_search_goes_on_by_itself(
    browser: Browser, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_screen, "SEARCHED", 50)
    looking = Looking(browser, filled, PHONE, "light")
    looking.go("/stream?db=0&key=orders")
    page = looking.page
    page.click(".tabs >> text=Search")
    until(page, "document.activeElement.name == 'value'")
    page.fill("#search input[name=value]", "10001")
    page.click("#search button")
    page.wait_for_selector("text=1 found")
    assert page.locator("#entries tr").count() == 1
    page.wait_for_selector("#progress:not([data-next])")
    looking.check()
    looking.close()


@in_every_look
def test_the_page_says_at_once_that_the_server_is_gone_and_takes_its_acts_away(
    browser: Browser, size: dict[str, int], scheme: str
) -> None:
    with Filled(web_actions=True) as found:
        fill(found.client)
        found.look()
        found.client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        looking = Looking(browser, found, size, scheme)
        looking.log_in("ops", "secret")
        looking.go("/group?db=0&key=orders&group=kitchen")
        until(looking.page, "document.querySelector('#link-says').textContent == 'Live'")
    page = looking.page
    page.wait_for_selector("main.stale")
    assert page.inner_text("#link-says").startswith("No connection since ")
    assert page.title() == "No connection · Penstock"
    assert page.locator("main form[method=post] button:not([aria-disabled=true])").count() == 0
    looking.check("gone", gone=True)
    looking.close()


def test_a_server_that_is_silent_for_three_seconds_is_no_connection(
    browser: Browser, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "BEAT_S", 1000.0)
    looking = Looking(browser, filled, DESKTOP, "light")
    page = looking.page
    page.clock.install()
    page.clock.pause_at(time.time() + 1)
    looking.go("/group?db=0&key=orders&group=kitchen")
    says = "document.querySelector('#link-says').textContent"
    until(page, f"{says} == 'Live'")
    page.clock.run_for(2900)
    assert page.locator("main.stale").count() == 0
    heard = "document.querySelector('#clock').textContent"
    before = page.evaluate(heard)
    filled.look()
    until(page, f"{heard} != '{before}'")
    page.clock.run_for(2900)
    assert page.locator("main.stale").count() == 0
    page.clock.run_for(200)
    page.wait_for_selector("main.stale")
    assert page.inner_text("#link-says").startswith("No connection since ")
    assert page.title() == "No connection · Penstock"
    page.clock.run_for(1000)
    until(page, f"{says} == 'Live'")
    assert page.locator("main.stale").count() == 0
    assert "kitchen · Penstock" in page.title()
    looking.close()


def test_colours_that_were_chosen_stay(browser: Browser, filled: Filled) -> None:
    looking = Looking(browser, filled, DESKTOP, "light")
    looking.go("/")
    page = looking.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click(".who summary")
    page.click(".who >> text=Dark")
    dark = page.evaluate(ground)
    assert dark != light
    looking.go("/server")
    assert page.evaluate(ground) == dark
    page.click(".who summary")
    assert page.get_attribute(".who button[value=dark]", "aria-pressed") == "true"
    page.click(".who >> text=System")
    assert page.evaluate(ground) == light
    looking.check()
    looking.close()


def test_fields_for_times_take_local_ones(browser: Browser, filled: Filled) -> None:
    first, _ = filled.client.xrange("orders:dead", count=1)[0]
    ms = int(first.split(b"-")[0])
    looking = Looking(browser, filled, DESKTOP, "light", "America/New_York")
    page = looking.page
    zone = ZoneInfo("America/New_York")
    for then, count in ((ms // 1000, 7), (ms // 1000 + 1, 0)):
        looking.go("/letters?db=0&key=orders:dead")
        local = datetime.fromtimestamp(then, zone).strftime("%Y-%m-%d %H:%M:%S")
        page.fill("input[data-time]", local)
        page.press("input[data-time]", "Enter")
        page.wait_for_url("**since=*Z")
        until(page, "!document.querySelector('input[data-time]').value.endsWith('Z')")
        assert page.locator(".letters .row").count() == count
        assert local.endswith(page.input_value("input[data-time]"))
    page.keyboard.press("Tab")
    page.click("h1")
    page.keyboard.press("t")
    utc = datetime.fromtimestamp(ms // 1000 + 1, UTC).strftime("%Y-%m-%d %H:%M:%S")
    assert utc.endswith(page.input_value("input[data-time]"))
    looking.check()
    looking.close()


WATCH_PROGRESS = """
window.told = [];
const sheet = document.querySelector('#sheet');
new MutationObserver(() => told.push(sheet.querySelector('progress + span')?.textContent))
  .observe(sheet, { subtree: true, childList: true });
"""


def test_an_act_on_thousands_tells_how_far_it_is(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_actions, "BATCH", 1)
    with Filled(web_actions=True) as found:
        fill(found.client)
        found.client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        looking = Looking(browser, found, DESKTOP, "light")
        looking.log_in("ops", "secret")
        looking.go("/letters?db=0&key=orders:dead")
        page = looking.page
        page.evaluate(WATCH_PROGRESS)
        page.click("text=Redrive all 7…")
        page.click("text=Run it")
        page.wait_for_selector("#sheet .notice.good")
        assert "Done. 7 dead letters went back." in page.inner_text("#sheet")
        assert "7 of 7" in page.evaluate("window.told")
        looking.check()
        looking.close()


@in_every_look
def test_a_position_is_moved_after_the_command_was_shown(
    browser: Browser, filled: Filled, size: dict[str, int], scheme: str
) -> None:
    looking = Looking(browser, filled, size, scheme)
    looking.log_in("ops", "secret")
    page = looking.page
    page.goto(page.url + "group?db=0&key=payments&group=ledger")
    place = "section:has(h2:text('Position')) dd .id"
    before = page.inner_text(place)
    page.click("text=Move position…")
    looking.check("act-fill")
    page.fill("#sheet input[name=by]", "2")
    page.click("text=Show the command…")
    page.wait_for_selector("#sheet .commands")
    assert page.inner_text(".commands").startswith("XGROUP SETID payments ledger ")
    looking.check("act-command")
    page.click("text=Run it")
    page.wait_for_selector("#sheet .notice.good")
    looking.check("act-done")
    page.click("#sheet >> text=Back")
    until(page, f"document.querySelector('dd .id').textContent < '{before}'")
    page.click(".who summary")
    page.click("text=Log out")
    page.click(".who summary")
    assert page.inner_text(".who .menu a >> nth=1") == "Log in"
    looking.check("menu")
    looking.close()


WRONG = "cups: not a number: 'three'"


def fail(client: Any, mode: str) -> None:
    """Reads an entry, and gives it back with the reason."""
    [(_, [(entry_id, _)])] = client.xreadgroup("kitchen", "ann", {"orders": ">"})
    words = ("orders", "kitchen", mode, "REASON", WRONG, "IDS", 1, entry_id)
    assert client.execute_command("PENSTOCK NACK", *words) == 1


def told(capsys: pytest.CaptureFixture[str], client: Any, *words: str) -> str:
    """What a tool of the command line prints about the server."""
    port = client.connection_pool.connection_kwargs["port"]
    run_tool(words[0], [*words[1:], "--url", f"redis://127.0.0.1:{port}"])
    return capsys.readouterr().out


def test_a_worker_fails_says_why_and_its_letter_is_edited_and_sent_again(
    browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    with Filled(web_actions=True) as found:
        client = found.client
        client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        client.xgroup_create("orders", "kitchen", "0", mkstream=True)
        policies = ("reasons", "yes", "dead-letter", "orders:dead")
        client.execute_command("PENSTOCK POLICY", "SET", "orders", "GROUP", "kitchen", *policies)
        client.xadd("orders", {"item": "tea", "cups": "three"})
        for _ in range(5):
            fail(client, "FAIL")
        assert "failing: an entry was delivered 5 times" in told(capsys, client, "top", "--times=1")
        fail(client, "FATAL")
        assert WRONG in told(capsys, client, "dead", "list", "orders:dead")
        found.look()
        looking = Looking(browser, found, DESKTOP, "light")
        looking.log_in("ops", "secret")
        page = looking.page
        assert page.inner_text(".top .count") == "1"
        looking.go("/letters?db=0&key=orders:dead")
        assert WRONG in page.inner_text("main")
        page.click("text=Edit")
        page.fill("#sheet textarea >> nth=1", "3")
        page.click("text=Show the command…")
        page.wait_for_selector("#sheet .commands")
        page.click("text=Run it")
        page.wait_for_selector("#sheet .notice.good")
        looking.check()
        [(_, [(entry_id, fields)])] = client.xreadgroup("kitchen", "ann", {"orders": ">"})
        assert fields == {b"item": b"tea", b"cups": b"3"}
        assert client.xack("orders", "kitchen", entry_id) == 1
        died = "failing: 1 entry became a dead letter in the last 10 min"
        assert died in told(capsys, client, "groups")
        assert "There are no dead letters." in told(capsys, client, "dead", "list")
        looking.close()


PICTURES = {
    "overview": (NARROWER, "light", "/", 780),
    "group": (NARROWER, "light", "/group?db=0&key=orders&group=kitchen", 900),
    "entry": (NARROWER, "light", "/stream?db=0&key=payments", 760),
    "letters": (NARROWER, "light", "/letters?db=0&key=orders%3Adead", 640),
    "phone": (PHONE, "dark", "/", 844),
}


@pytest.mark.skipif(not FOLDER, reason="PENSTOCK_SCREENSHOTS is not set")
@pytest.mark.parametrize("name", [*PICTURES, "action"])
def test_pictures_are_taken(browser: Browser, name: str) -> None:
    with Filled(web_actions=True, appendonly=True) as found:
        fill(found.client)
        found.client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        size, scheme, path, height = PICTURES.get(name, (NARROWER, "light", "/letters", 640))
        looking = Looking(browser, found, {**size, "height": height}, scheme)
        page = looking.page
        looking.log_in("ops", "secret")
        for at in range(40):
            _go_on(found.client, at)
            found.look()
        page.goto(page.url.rstrip("/") + path)
        if name == "action":
            page.goto(page.url + "?db=0&key=orders%3Adead")
            page.click("text=Edit >> nth=2")
            page.wait_for_selector("#sheet[open]")
        if name == "entry":
            order = '{"order": 10400, "lines": [{"sku": "A-1", "cups": 2}], "paid": true}'
            fields = {"json": order, "token": bytes(range(200, 248)), "source": "checkout"}
            found.client.xadd("payments", fields)
            page.goto(page.url)
            page.click("#entries .id >> nth=0")
        page.wait_for_timeout(500)
        page.screenshot(path=f"{FOLDER}/page-{name}.png")
        _shrink(f"{FOLDER}/page-{name}.png")
        looking.close()


def _go_on(client: Any, at: int) -> None:
    """What makes the lines of charts move: the kitchen cannot keep up, the others do."""
    for _ in range(60 + 7 * at % 23):
        client.xadd("orders", {"order": "10400", "item": "tea", "cups": "2"})
        client.xadd("payments", {"amount": "9.90", "currency": "EUR"})
    for group, name, stream, most in (
        ("kitchen", "bob", "orders", 40 + at % 5),
        ("invoices", "clerk", "orders", 90),
        ("ledger", "worker-1", "payments", 90),
    ):
        for _, entries in client.xreadgroup(group, name, {stream: ">"}, count=most):
            client.xack(stream, group, *[entry for entry, _ in entries][at % 2 :])


def _shrink(path: str) -> None:
    """256 colours are enough for a page, and a quarter of the bytes."""
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as found:
        small = found.convert("RGB").quantize(256, dither=image.Dither.NONE)
    small.save(path, optimize=True)
