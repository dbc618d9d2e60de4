"""A browser as far as these tests need one: it keeps cookies, and sends forms as browsers do."""

from __future__ import annotations

import http.client
import re
from html import unescape
from http.cookies import SimpleCookie
from typing import NamedTuple
from urllib.parse import urlencode


class Answer(NamedTuple):
    """A response; ``html`` as it was sent."""

    status: int
    html: str
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """What is to be read, without markup, with single blanks."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.html)).split())

    def rows(self) -> list[list[str]]:
        """The cells of all rows of all tables."""
        found = re.findall(r"<tr(?: [^>]*)?>(.*?)</tr>", self.html, re.S)
        cells = [re.findall(r"<t[dh](?: [^>]*)?>(.*?)</t[dh]>", row, re.S) for row in found]
        return [[Answer(200, cell, {}).text for cell in row] for row in cells if row]

    def table(self, heads: str) -> list[list[str]]:
        """The rows of the first table with this among its heads, without the heads."""
        tables = re.findall(r"<table.*?</table>", self.html, re.S)
        rows = [Answer(200, table, {}).rows() for table in tables]
        return next((each[1:] for each in rows if heads in " ".join(each[0])), [])

    def fields(self, kind: str = "", at: int = 0) -> list[tuple[str, str]]:
        """The hidden fields of the form whose button asks for a kind of act, the first of these
        unless ``at`` says which, with that; without a kind of the form that goes on with one."""
        forms = [
            text
            for text in re.findall(r"<form.*?</form>", self.html, re.S)
            if 'action="/act"' in text and (not kind or f'name="kind" value="{kind}"' in text)
        ]
        hidden = re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', forms[at], re.S)
        asked = [("kind", kind)] if kind else []
        return [*((unescape(name), unescape(value)) for name, value in hidden), *asked]


class Asking:
    """A client of the page of a server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> Answer:
        """Asks for a screen."""
        return self._send("GET", path, None, headers)

    def post(self, path: str, fields: list[tuple[str, str]], **headers: str) -> Answer:
        """Sends a form."""
        return self._send("POST", path, urlencode(fields), headers)

    def post_text(self, path: str, text: str) -> Answer:
        """Sends what is called a form."""
        return self._send("POST", path, text, {})

    def log_in(self, user: str, password: str) -> Answer:
        """Logs in, and keeps the cookie."""
        return self.post("/login", [("user", user), ("password", password), ("next", "/")])

    def _send(self, method: str, path: str, body: str | None, given: dict[str, str]) -> Answer:
        headers = {name.replace("_", "-"): value for name, value in given.items()}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={it}" for name, it in self.cookies.items())
        if body is not None:
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body and body.encode(), headers)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            self._keep(found.get("set-cookie", ""))
            return Answer(response.status, response.read().decode(), found)
        finally:
            connection.close()

    def _keep(self, text: str) -> None:
        for name, morsel in SimpleCookie(text).items():
            if morsel["max-age"] == "0":
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value
