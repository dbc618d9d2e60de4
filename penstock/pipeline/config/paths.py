"""Folders and files named in a pipeline file: relative ones are beside that file."""

from __future__ import annotations

import re
from pathlib import Path


def resolve(path: str, folder: Path) -> str:
    """The absolute path, unless it is a URL, which Spark's file systems know."""
    if not path or re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path):
        return path
    return str((folder / path).resolve())
