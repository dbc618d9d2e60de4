"""Programs that are written on a client library, each in the environment that it asks for.

Some of them want an older redis-py than these tests do, so they are installed apart, with the
versions of ``requirements.txt`` in this folder: by ``make`` into ``build/clients``, or wherever
``PENSTOCK_CLIENTS`` says.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.support.process import ROOT

FOLDER_VARIABLE: Final = "PENSTOCK_CLIENTS"


def find(name: str, beside: str = "") -> str:
    """The path of a program; skips the test if it is not installed.

    ``beside`` ends the name of the folder of a library that cannot be installed with the others.
    """
    folder = Path(os.environ.get(FOLDER_VARIABLE) or ROOT / "build/clients")
    path = Path(f"{folder}{beside}", "bin", name)
    if not os.access(path, os.X_OK):
        pytest.skip(f"{name} is not installed in {path.parent.parent}, which make does")
    return str(path)
