"""When a client that does not read is cut off."""

from __future__ import annotations

from typing import cast

import pytest

from server.config.registry import Config
from server.net.connection import Connection
from server.traffic.output import OutputLimits


class Rig:
    """Limits with a clock that stands still until it is set, and a client."""

    def __init__(self, limits: str) -> None:
        self.now_ms = 0
        self.limits = OutputLimits(lambda: self.now_ms)
        Config(client_output_buffer_limit=limits).listen(
            "client-output-buffer-limit", self.limits.configure
        )
        self.client = cast(Connection, object())

    def exceeded(self, pending: int, kind: str = "pubsub") -> bool:
        return self.limits.exceeded(self.client, kind, pending)


def test_the_hard_limit_holds_at_once() -> None:
    rig = Rig("pubsub 100 0 0")
    assert not rig.exceeded(100)
    assert rig.exceeded(101)


def test_the_soft_limit_holds_after_its_time() -> None:
    rig = Rig("pubsub 0 50 2")
    assert not rig.exceeded(51)
    assert rig.limits.watched() == [rig.client]
    rig.now_ms = 2000
    assert not rig.exceeded(51)
    rig.now_ms = 2001
    assert rig.exceeded(51)


def test_the_time_begins_anew_when_the_client_has_read() -> None:
    rig = Rig("pubsub 0 50 2")
    rig.exceeded(51)
    rig.now_ms = 1500
    assert not rig.exceeded(50)
    assert rig.limits.watched() == []
    rig.now_ms = 3000
    assert not rig.exceeded(51)


def test_a_client_that_is_gone_is_forgotten() -> None:
    rig = Rig("pubsub 0 50 2")
    rig.exceeded(51)
    rig.limits.forget(rig.client)
    assert rig.limits.watched() == []


def test_each_class_has_its_own_limits() -> None:
    rig = Rig("pubsub 100 0 0 normal 10 0 0")
    assert rig.exceeded(11, "normal")
    assert not rig.exceeded(11)


@pytest.mark.parametrize(
    ("limits", "limited"),
    [("normal 0 0 60", False), ("normal 1 0 0", True), ("normal 0 1 60", True)],
)
def test_replies_are_limited_only_if_the_setting_says_so(limits: str, limited: bool) -> None:
    assert Rig(limits).limits.normal is limited
