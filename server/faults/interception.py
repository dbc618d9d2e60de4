"""What requests have to pass before they run while a test looks at them or meddles with them.

``active`` is false unless a trace is on; then requests run at once, and XADDs may take the fast
path. Nothing here has sockets: :mod:`server.net.intercepted` lets requests pass.
"""

from __future__ import annotations

from server.monitoring.trace import Trace
from server.state import ServerState


class Interception:
    """Whatever is looked at before a request of a client runs."""

    def __init__(self, state: ServerState) -> None:
        self.trace = Trace(lambda: state.clock())
        self.active = False
        """Whether anything is."""

    def _update(self) -> None:
        self.active = self.trace.running

    # --- the trace ------------------------------------------------------------------------

    def start_trace(self, owner: int, pattern: bytes | None) -> None:
        """Notes the commands of all clients but this one; see :meth:`.Trace.start`."""
        self.trace.start(owner, pattern)
        self._update()

    def stop_trace(self) -> None:
        """Notes nothing more."""
        self.trace.stop()
        self._update()
