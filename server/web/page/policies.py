"""The policies that are in force of a stream or a consumer group, as a table."""

from __future__ import annotations

import re
from typing import Final

from penstock.html.document import section, table
from penstock.html.markup import Child, Html, joined, tag
from server.config.policies import DEAD_LETTER, GROUP, TIMES, Settings
from server.delivery.group_ref import GroupRef
from server.web.page.page_request import PageRequest, packed, url
from server.web.page.wording import duration, shown
from storage.engine.groups import Group
from storage.engine.stream import Stream

_LENGTHS: Final = re.compile(rb"[1-9][0-9]*(?![0-9%])")
"""The times in a value, without a percentage."""


def policies_of_stream(request: PageRequest, db: int, key: bytes, stream: Stream) -> Html | None:
    """What PENSTOCK POLICY GET tells: those of the stream, and those it gives all its groups;
    ``None`` if there are none."""
    shared = {name: value for name, value in stream.policy.items() if name in GROUP}
    own = request.server.policies.settings_of_stream(key, stream)
    return _section(request, db, {**own, **shared})


def policies_of_group(
    request: PageRequest, db: int, key: bytes, stream: Stream, group: Group
) -> Html | None:
    """What PENSTOCK POLICY GET tells of a group, ``None`` if there are none."""
    ref = GroupRef(request.server.state.keyspace.databases[db], key, stream, group)
    return _section(request, db, request.server.policies.settings_of_group(ref))


def _section(request: PageRequest, db: int, settings: Settings) -> Html | None:
    if not settings:
        return None
    rows: list[list[Child]] = [
        [tag("code", shown(name)), _value(request, db, name, settings[name])]
        for name in sorted(settings)
    ]
    return section("Policies", table(("Policy", "Value"), rows, ""))


def _value(request: PageRequest, db: int, name: bytes, value: bytes) -> Html:
    if name == DEAD_LETTER.name and value:
        return _target(request, db, value)
    text = tag("code", shown(value))
    if name not in TIMES:
        return text
    lengths = [duration(int(each)) for each in _LENGTHS.findall(value)]
    return joined([text, tag("small", f" {', '.join(lengths)}")]) if lengths else text


def _target(request: PageRequest, db: int, key: bytes) -> Html:
    """Where dead letters go, as a link; its name is not for everybody."""
    if not request.viewer.may_see(key):
        return tag("small", "a stream that is not for your user")
    return tag("a", shown(key), href=url("/letters", db=db, key=packed(key)))
