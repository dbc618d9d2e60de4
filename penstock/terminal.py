"""Argument parsers and output that the tools share: text of servers, for a terminal and as JSON."""

from __future__ import annotations

import argparse
import base64
import io
import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

from penstock import output

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH: Final = 200
"""Columns of what goes into a file or a pipe."""

BYTES: Final = "_base64"
"""The key of a value that is no text: ``{"_base64": "AAE="}``."""

_CREDENTIALS: Final = re.compile(r"(?<=://).*@", re.DOTALL)


def shown(text: bytes | str) -> str:
    """Text of a server as people read it: what is no UTF-8 as \\xff, and an escape for whatever a
    terminal might act on."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def shown_lines(text: str) -> str:
    """Return text that may have several lines as people read it, each as of :func:`shown`."""
    return "\n".join(map(shown, text.split("\n")))


def json_value(value: bytes) -> str | dict[str, str]:
    """Bytes of a server for JSON: the text that they are, or what is no text as :data:`BYTES`."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {BYTES: base64.b64encode(value).decode()}


def json_line(value: Any) -> str:
    """Return a line of JSON, with an escape for whatever a terminal might act on."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else _json_escape(sign) for sign in text)


def _json_escape(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def redact(text: str) -> str:
    """Return the text without what stands before the ``@`` of URLs."""
    return _CREDENTIALS.sub("***@", text)


def plural(number: int, noun: str) -> str:
    """Return a number and its noun: ``1 entry``, ``2 entries``, ``5 batches``, ``1,000 keys``."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{number:,} {noun.removesuffix('y')}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


class Parser(argparse.ArgumentParser):
    """Does not repeat passwords when it quotes arguments."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with the usage and a message that may quote arguments."""
        self.refuse(redact(message))

    def refuse(self, reason: str) -> NoReturn:
        """Ends the process with a reason that is known to hold no password."""
        super().error(reason)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends the process; it has failed if its output is lost."""
        super().exit(output.status(status), message)


def console(soft_wrap: bool = False) -> Console:
    """Standard output, which takes every name, whatever its encoding."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    found = Console(highlight=False, soft_wrap=soft_wrap)
    if not found.is_terminal:
        found.width = PLAIN_WIDTH
    return found
