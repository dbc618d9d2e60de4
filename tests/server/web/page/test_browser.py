"""The page in a real browser: every screen, on a phone and a desktop, light and dark.

A Chromium that is installed is driven without a window (Debian: the package ``chromium``). With
PENSTOCK_SCREENSHOTS=1 the pictures of the docs are taken anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.web.page.filling import Filled, fill, fill_with_hostile_names

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
IMAGES = Path(__file__).parents[4] / "docs" / "images"
RETAKE = bool(os.environ.get("PENSTOCK_SCREENSHOTS"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
]

SCREENS = {
    "overview": "/",
    "failing": "/?failing=1",
    "stream": "/stream?db=0&key=orders",
    "filter": "/stream?db=0&key=orders&field=item&value=coco",
    "group": "/group?db=0&key=orders&group=kitchen",
    "policies of a stream": "/stream?db=0&key=payments",
    "policies of a group": "/group?db=0&key=payments&group=ledger",
    "letters": "/letters",
    "letter": "/letters?db=0&key=orders:dead",
    "server": "/server",
    "missing": "/stream?db=0&key=nothing",
}
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


class Looking:
    """A window of the browser, which notes whatever it complains of."""

    def __init__(self, browser: Browser, filled: Filled, size: dict[str, int], scheme: str) -> None:
        context: Any = {"viewport": size, "color_scheme": scheme, "device_scale_factor": 1}
        self._context = browser.new_context(**context)
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self._base = f"http://127.0.0.1:{filled.http}"
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "status of 404" not in text:
            self.complaints.append(text)

    def go(self, path: str) -> None:
        """Opens a screen."""
        self.page.goto(self._base + path)

    def check(self) -> None:
        """Nothing is wider than the window, nothing came from elsewhere, nobody complained."""
        wide: Any = self.page.evaluate(
            "[...document.querySelectorAll('body *')].filter(each =>"
            " each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML)"
        )
        assert wide == []
        scrolled: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert scrolled <= 0
        assert self.complaints == []
        assert all(url.startswith(self._base) for url in self.asked)

    def log_in(self, user: str, password: str) -> None:
        """Logs in by the form."""
        self.go("/login")
        self.page.fill("input[name=user]", user)
        self.page.fill("input[name=password]", password)
        self.page.click(".login button")

    def close(self) -> None:
        self._context.close()


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
        for _ in range(3):
            found.look()
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("user", ["", "ops"], ids=["looking", "acting"])
def test_every_screen_fits_and_nobody_complains(
    browser: Browser, filled: Filled, size: dict[str, int], scheme: str, user: str
) -> None:
    looking = Looking(browser, filled, size, scheme)
    looking.go("/login")
    looking.check()
    if user:
        looking.log_in(user, "secret")
    for path in SCREENS.values():
        looking.go(path)
        looking.check()
    looking.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_hostile_names_run_nothing_and_fit(browser: Browser, size: dict[str, int]) -> None:
    with Filled() as found:
        fill_with_hostile_names(found.client)
        found.look()
        looking = Looking(browser, found, size, "light")
        looking.page.on("dialog", lambda dialog: looking.complaints.append(dialog.message))
        looking.go("/")
        links: Any = looking.page.evaluate(
            "[...document.querySelectorAll('td a')].map(each => each.getAttribute('href'))"
        )
        for path in ("/", "/letters?db=0&key=letters", "/server", *links):
            looking.go(path)
            looking.check()
        looking.close()


def test_numbers_change_without_a_reload(browser: Browser, filled: Filled) -> None:
    looking = Looking(browser, filled, DESKTOP, "light")
    looking.go("/group?db=0&key=payments&group=ledger")
    page = looking.page
    page.evaluate("window.stays = true")
    page.wait_for_selector("#chart canvas")
    assert page.inner_text("#live dd") == "2"
    with page.expect_response("**/trace?*"):
        filled.client.xadd("payments", {"amount": "1"})
        filled.look()
    page.wait_for_function("document.querySelector('#live dd').textContent == '3'")
    assert page.evaluate("window.stays") is True
    looking.check()
    looking.close()


def test_a_filter_is_sent_by_its_form(browser: Browser, filled: Filled) -> None:
    looking = Looking(browser, filled, PHONE, "light")
    looking.go("/stream?db=0&key=orders")
    looking.page.fill("input[name=field]", "order")
    looking.page.fill("input[name=value]", "10399")
    looking.page.click("text=Show")
    shown = looking.page.locator("section:has(h2:text-is('Entries')) tbody tr")
    assert shown.count() == 1
    looking.check()
    looking.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_position_is_moved_in_two_steps(
    browser: Browser, filled: Filled, size: dict[str, int]
) -> None:
    looking = Looking(browser, filled, size, "light")
    looking.log_in("ops", "secret")
    page = looking.page
    page.goto(page.url + "group?db=0&key=payments&group=ledger")
    before = page.inner_text("section:has(h2:text('Position')) dd code")
    page.fill("input[name=by]", "2")
    page.click("text=Go back …")
    assert page.inner_text(".commands").startswith("XGROUP SETID payments ledger ")
    looking.check()
    page.click("text=Run it")
    assert page.inner_text(".notice.good") == "Done."
    looking.check()
    page.click("text=Back")
    assert page.inner_text("section:has(h2:text('Position')) dd code") < before
    page.click("text=Log out")
    assert page.inner_text(".who a") == "Log in"
    looking.check()
    looking.close()


PICTURES = {
    "overview": (DESKTOP, "light", "/?match=", 436),
    "group": (DESKTOP, "light", "/group?db=0&key=orders&group=kitchen", 1180),
    "phone": (PHONE, "dark", "/", 844),
}


@pytest.mark.skipif(not RETAKE, reason="PENSTOCK_SCREENSHOTS is not set")
@pytest.mark.parametrize("name", [*PICTURES, "action"])
def test_pictures_are_taken(browser: Browser, name: str) -> None:
    with Filled(web_actions=True, appendonly=True) as found:
        fill(found.client)
        found.client.execute_command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
        size, scheme, path, height = PICTURES.get(name, (DESKTOP, "light", "/letters", 520))
        looking = Looking(browser, found, {**size, "height": height}, scheme)
        page = looking.page
        looking.log_in("ops", "secret")
        for at in range(40):
            _go_on(found.client, at)
            found.look()
        found.penstock.call(found.stretch)
        page.goto(page.url.rstrip("/") + path)
        if name == "action":
            page.goto(page.url + "?db=0&key=orders%3Adead")
            page.click("text=Redrive … >> nth=2")
        page.wait_for_timeout(500)
        page.screenshot(path=IMAGES / f"page-{name}.png")
        _shrink(IMAGES / f"page-{name}.png")
        looking.close()


def _go_on(client: Any, at: int) -> None:
    """What makes the lines of charts move."""
    for _ in range(at % 7):
        client.xadd("orders", {"order": "10400", "item": "tea", "cups": "2"})
        client.xadd("payments", {"amount": "9.90", "currency": "EUR"})
    client.xreadgroup("kitchen", "bob", {"orders": ">"}, count=1 + at % 4)
    for stream, group in (("payments", "ledger"), ("orders", "invoices")):
        for _, entries in client.xreadgroup(group, "worker-1", {stream: ">"}, count=4 + at % 4):
            client.xack(stream, group, *[entry for entry, _ in entries][: at % 4 + 1])


def _shrink(path: Path) -> None:
    """256 colours are enough for a page, and a quarter of the bytes."""
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as found:
        small = found.convert("RGB").quantize(256, dither=image.Dither.NONE)
    small.save(path, optimize=True)
