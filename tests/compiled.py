"""A plugin of pytest for the suite on the compiled form: ``pytest -p tests.compiled``.

Everything runs there but what :data:`LEFT_OUT` lists, each with its reason. A line that fits no
test any more is an error, as is a run on plain Python.
"""

from __future__ import annotations

from typing import Final

import pytest

from server.runtime.version import BUILD

LEFT_OUT: Final = {
    "tests/test_layout.py": "it reads the source of the packages, which is in the checkout",
}
"""Why a module or a test cannot run where only the compiled wheel is, by how its name begins."""


def pytest_configure() -> None:
    if BUILD != "compiled":
        raise pytest.UsageError("the server that the tests import is not compiled")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.nodeid.startswith(tuple(LEFT_OUT))]
    names = [item.nodeid for item in left_out]
    if list(config.args) == config.getini("testpaths"):
        idle = [key for key in LEFT_OUT if not any(name.startswith(key) for name in names)]
        if idle:
            raise pytest.UsageError(f"tests.compiled.LEFT_OUT lists what is not there: {idle}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
