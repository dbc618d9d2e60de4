"""Output that waits as if the disk were busy with an append-only file, where there is none."""

from __future__ import annotations

from server.persistence.commit import BEHIND, Commit
from server.traffic.output_gate import Held
from tests.support.direct import Direct


def hold_output(direct: Direct) -> Commit:
    """Lets all output of a server wait until what is returned is told to settle."""
    commit = direct.server.services.commit
    commit.state, commit.holding = BEHIND, True
    return commit


def held_output(direct: Direct) -> Held:
    """Returns what waits, which is the list itself."""
    return direct.server.services.commit._held
