"""Packages that only some formats need."""

from __future__ import annotations

import importlib
from typing import Any

from penstock.pipeline.parse.errors import Unavailable


def need(module: str, extra: str) -> Any:
    """A module of a package; raises Unavailable with the extra to install if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise Unavailable(
            f"the package of '{package}' is not installed: pip install 'penstock[{extra}]'"
        ) from None
