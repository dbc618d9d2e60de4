"""Penstock for the tests of other projects: a pytest plugin, and the server that it runs.

The plugin (:mod:`penstock.testing.plugin`) gives tests the fixture ``penstock``, a
:class:`Penstock`. Outside pytest a :class:`PenstockServer` does the same as a context manager.

Nothing here imports the server: it runs as a process of its own, by the command ``penstock``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.conditions import Fault, Faults, ServerClock
    from penstock.testing.control import PenstockError, WaitTimeout
    from penstock.testing.delivery import Policies
    from penstock.testing.fixture import Penstock
    from penstock.testing.server import PenstockServer, RemoteServer
    from penstock.testing.tools import Snapshot
    from penstock.testing.trace import Trace, TracedCommand

__all__ = [
    "Fault",
    "Faults",
    "Penstock",
    "PenstockError",
    "PenstockServer",
    "Policies",
    "RemoteServer",
    "ServerClock",
    "Snapshot",
    "Trace",
    "TracedCommand",
    "WaitTimeout",
]

_MODULES = {
    "Fault": "conditions",
    "Faults": "conditions",
    "Penstock": "fixture",
    "PenstockError": "control",
    "PenstockServer": "server",
    "Policies": "delivery",
    "RemoteServer": "server",
    "ServerClock": "conditions",
    "Snapshot": "tools",
    "Trace": "trace",
    "TracedCommand": "trace",
    "WaitTimeout": "control",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for: pytest loads the plugin in this package with every run."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return what there is to use, for consoles and editors that complete names."""
    return __all__
