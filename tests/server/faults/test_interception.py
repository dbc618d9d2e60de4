"""Whether requests are looked at before they run."""

from __future__ import annotations

from server.faults.interception import Interception
from tests.support.direct import Direct


def test_requests_are_looked_at_only_while_there_is_a_reason() -> None:
    interception: Interception = Direct().server.services.interception
    assert not interception.active
    interception.start_trace(1, None)
    assert interception.active
    interception.stop_trace()
    assert not interception.active
