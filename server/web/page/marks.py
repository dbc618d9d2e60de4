"""What charts mark: that the server started, that somebody acted, and what policies did."""

from __future__ import annotations

from typing import Final, NamedTuple

from server.delivery import happenings
from server.delivery.happenings import Happening
from server.services import Services
from server.web.page.logins import Viewer
from server.web.page.wording import shown


class ChartMark(NamedTuple):
    """Something that happened, with its time in Unix milliseconds."""

    time: int
    text: str


_TOLD: Final = {
    happenings.PAUSED: "was paused",
    happenings.RESUMED: "was resumed",
    happenings.MOVED: "its position was moved",
    happenings.LEFT: "consumers left",
    happenings.BURIED: "entries became dead letters",
    happenings.REDRIVEN: "dead letters went back",
}


def marks_of(
    server: Services, viewer: Viewer, db: int | None = None, key: bytes = b"", group: bytes = b""
) -> list[ChartMark]:
    """Return what happened to a group, to all groups of a stream, or to all that the user may
    see; the start of the server first."""
    found = [ChartMark(server.state.instance.started_ms, "The server started")]
    if not viewer.may(b"PENSTOCK", b"STATS"):
        return found
    for each in server.policies.happenings:
        is_meant = db is None or (
            (each.db, each.key) == (db, key) and (not group or each.group in (group, b""))
        )
        if is_meant and viewer.may_see(each.key):
            found.append(ChartMark(each.time, _text(each)))
    return found


def _text(happening: Happening) -> str:
    by = f", by user {shown(happening.user)}" if happening.user else ""
    return f"{shown(happening.group or happening.key)}: {_TOLD[happening.kind]}{by}"
