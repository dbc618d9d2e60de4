"""Argument parsers and output that the tools share on a terminal."""

from __future__ import annotations

import argparse
import io
import re
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from penstock import output

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH: Final = 200
"""Columns of what goes into a file or a pipe."""

_CREDENTIALS: Final = re.compile(r"(?<=://).*@", re.DOTALL)


def redact(text: str) -> str:
    """The text without what stands before the ``@`` of URLs."""
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
