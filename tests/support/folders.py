"""Folders in which servers of tests may leave files."""

from __future__ import annotations

import shutil
import tempfile
import weakref


def folder_of(owner: object) -> str:
    """The path of a new folder, which is removed with everything in it when the owner is gone."""
    path = tempfile.mkdtemp(prefix="penstock-")
    weakref.finalize(owner, shutil.rmtree, path, ignore_errors=True)
    return path
