"""Packages that only some formats need."""

from __future__ import annotations

import importlib
from typing import Any

from penstock.extras import extra_missing
from penstock.pipeline.parse.errors import Unavailable


def need(module: str) -> Any:
    """A module of a package; raises Unavailable with the extra to install if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Unavailable(extra_missing("the format", module)) from None
