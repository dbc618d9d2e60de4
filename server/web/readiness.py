"""Whether a server could take any command now, and if not, why."""

from __future__ import annotations

from server.persistence.manager import Persistence
from server.road.state import ServerState
from server.runtime.phase import Phase


def obstacle(state: ServerState, persistence: Persistence, failure: str | None) -> str | None:
    """Why not every command would run now; ``None`` if they would. ``failure`` is why the start has
    failed, if it has."""
    if failure is not None:
        return f"the start has failed: {failure}"
    if state.phase is not Phase.SERVING:
        return f"{state.phase.value}{_progress(persistence)}"
    if state.busy is not None:
        return "a script takes long"
    if state.disk_error is not None:
        return f"the append-only file cannot be written: {state.disk_error}"
    return None


def _progress(persistence: Persistence) -> str:
    """How far the loading of files is, if it is going on."""
    if persistence.recovery is None:
        return ""
    fields = persistence.recovery.progress()
    return f", {fields['loading_loaded_perc']} %"
