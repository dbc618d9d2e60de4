"""How a guesser of passwords is slowed down."""

from __future__ import annotations

import pytest

from server.web.page import attempts as attempts_module
from server.web.page import gatekeeper
from server.web.page.attempts import ADDRESSES_KEPT, OF_ADDRESS, OF_ALL, Attempts
from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled


class Moment:
    """Milliseconds that stand still until they are set."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


def test_an_address_waits_after_ten_failures_and_others_do_not() -> None:
    now = Moment()
    attempts = Attempts(now)
    for _ in range(OF_ADDRESS):
        assert attempts.wait_s("192.0.2.1") == 0
        attempts.failed("192.0.2.1")
    assert attempts.wait_s("192.0.2.1") == 6
    assert attempts.wait_s("192.0.2.2") == 0
    now.ms += 5999
    assert attempts.wait_s("192.0.2.1") == 1
    now.ms += 1
    assert attempts.wait_s("192.0.2.1") == 0
    attempts.failed("192.0.2.1")
    assert attempts.wait_s("192.0.2.1") == 6
    now.ms += 60_000
    for _ in range(OF_ADDRESS):
        assert attempts.wait_s("192.0.2.1") == 0
        attempts.failed("192.0.2.1")


def test_all_addresses_together_wait_after_a_hundred_failures() -> None:
    now = Moment()
    attempts = Attempts(now)
    for number in range(OF_ALL):
        assert attempts.wait_s(str(number)) == 0
        attempts.failed(str(number))
    assert attempts.wait_s("another") == 1
    now.ms += 600
    assert attempts.wait_s("another") == 0


def test_few_addresses_are_remembered() -> None:
    now = Moment()
    attempts = Attempts(now)
    for number in range(ADDRESSES_KEPT + 10):
        attempts.failed(str(number))
        now.ms += 600
    assert len(attempts) == ADDRESSES_KEPT


def test_a_guesser_is_told_to_wait_and_who_is_logged_in_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gatekeeper, "FAILURE_S", 0)
    monkeypatch.setattr(attempts_module, "PERIOD_MS", 10**9)
    with Filled() as filled:
        filled.client.config_set("requirepass", "hunter2")
        known, guesser = Asking(filled.http), Asking(filled.http)
        assert known.log_in("default", "hunter2").status == 303
        answers = [guesser.log_in("default", str(number)) for number in range(OF_ADDRESS + 1)]
        assert [answer.status for answer in answers] == [401] * OF_ADDRESS + [429]
        wait = answers[-1].headers["retry-after"]
        assert f"Too many logins have failed: try again in {wait} s." in answers[-1].text
        assert guesser.log_in("default", "hunter2").status == 429
        assert (
            len(filled.client.acl_log()) == 1
        )  # Of ten that are alike; the others were no attempt.
        assert filled.client.acl_log()[0]["count"] == OF_ADDRESS
        assert known.get("/server").status == 200
