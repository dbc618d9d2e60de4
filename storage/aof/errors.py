"""Exceptions for invalid contents of an append-only file."""

from __future__ import annotations

import os


def printable(text: str) -> str:
    """A text in one line, in which bytes that cannot be printed are ``\\x..``; for messages with
    what stands in files, or what files are called."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


class LoadError(Exception):
    """A command of an append-only file cannot be applied; the text says which, and why.

    ``place`` is how many of the commands that were to be applied with it were before it."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))
        self.place = 0
