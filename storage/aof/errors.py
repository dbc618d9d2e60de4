"""Exceptions for invalid contents of an append-only file."""

from __future__ import annotations


class LoadError(Exception):
    """A command of an append-only file cannot be applied; the text says which, and why."""
