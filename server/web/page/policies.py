"""The policies that are in force of a stream or a consumer group, as a table."""

from __future__ import annotations

from typing import Final

from server.config.policies import GROUP, Settings
from server.web.page.document import section, table
from server.web.page.markup import Child, Html, joined, tag
from server.web.page.page_request import PageRequest, packed, url
from server.web.page.wording import duration, shown
from storage.engine.groups import Group
from storage.engine.stream import Stream

_TIMES: Final = frozenset({b"ack-wait", b"backoff", b"consumer-ttl", b"delete-grace", b"retention"})
"""Those whose values are milliseconds."""


def policies_of_stream(request: PageRequest, db: int, key: bytes, stream: Stream) -> Html | None:
    """What XSTREAM POLICY GET tells: those of the stream, and those it gives all its groups;
    ``None`` if there are none."""
    shared = {name: value for name, value in stream.policy.items() if name in GROUP}
    own = request.server.policies.settings_of_stream(key, stream)
    return _section(request, db, {**own, **shared})


def policies_of_group(
    request: PageRequest, db: int, key: bytes, stream: Stream, group: Group
) -> Html | None:
    """What XGROUP POLICY GET tells, ``None`` if there are none."""
    return _section(request, db, request.server.policies.settings_of_group(key, stream, group))


def _section(request: PageRequest, db: int, settings: Settings) -> Html | None:
    if not settings:
        return None
    rows: list[list[Child]] = [
        [tag("code", shown(name)), _value(request, db, name, settings[name])]
        for name in sorted(settings)
    ]
    return section("Policies", table(("Policy", "Value"), rows, ""))


def _value(request: PageRequest, db: int, name: bytes, value: bytes) -> Html:
    if name == b"dead-letter" and value:
        return _target(request, db, value)
    text = tag("code", shown(value))
    if name not in _TIMES:
        return text
    lengths = [duration(int(each)) for each in value.split(b",") if each != b"0" and each]
    return joined([text, tag("small", f" {', '.join(lengths)}")]) if lengths else text


def _target(request: PageRequest, db: int, key: bytes) -> Html:
    """Where dead letters go, as a link; its name is not for everybody."""
    if not request.viewer.may_see(key):
        return tag("small", "a stream that is not for your user")
    return tag("a", shown(key), href=url("/letters", db=db, key=packed(key)))
