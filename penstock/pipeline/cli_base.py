"""What the commands of ``penstock pipeline`` share: exit statuses, parsers and output."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.terminal import Parser, console

if TYPE_CHECKING:
    from rich.console import Console

    Commands = argparse._SubParsersAction[Parser]

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


def command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    """Adds a command with its function and the line that describes it; returns its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, allow_abbrev=False
    )
    parser.set_defaults(command=run)
    return parser


def output() -> Console:
    """Standard output, whose lines are not broken."""
    return console(soft_wrap=True)


def positive(text: str) -> int:
    """A whole number from 1; raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 1")
    return int(text)
