"""The site has the colours, the letters and the sign of the server's page."""

from __future__ import annotations

import re

from tests.support.process import ROOT

SITE = ROOT / "docs" / "site"
PAGE = ROOT / "server" / "web" / "html"


def test_the_colours_and_letters_are_those_of_the_page() -> None:
    ours = re.findall(r"^  --\w[\w-]*: (?!var).+;$", (SITE / "extra.css").read_text(), re.MULTILINE)
    assert len(ours) > 10
    assert {*ours} <= {*(PAGE / "static" / "page.css").read_text().splitlines()}


def test_the_sign_is_that_of_the_page() -> None:
    icons = (PAGE / "templates" / "icons.html").read_text()
    (sign,) = re.findall(r'<symbol id="i-brand" viewBox="0 0 24 24">(.*?)</symbol>', icons)
    assert sign in (SITE / "theme" / ".icons" / "sign.svg").read_text()
