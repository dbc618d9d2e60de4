"""By which rules a group is in trouble, and a consumer gone."""

from __future__ import annotations

import pytest

from server.delivery.health import HealthFacts, age_of, consumer_state

MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("facts", "troubles"),
    [
        (HealthFacts(), []),
        (HealthFacts(oldest=5 * MINUTE_MS), ["stuck"]),
        (HealthFacts(oldest=5 * MINUTE_MS - 1), []),
        (HealthFacts(deliveries=5), ["failing"]),
        (HealthFacts(deliveries=4), []),
        (HealthFacts(died=1), ["failing"]),
        (HealthFacts(waits=5 * MINUTE_MS), ["behind"]),
        (HealthFacts(waits=5 * MINUTE_MS, paused=True), []),
        (HealthFacts(grows=2.0), ["behind"]),
        (HealthFacts(grows=2.0, paused=True), []),
        (HealthFacts(lag=1, consumers=2, silent=MINUTE_MS), ["unattended"]),
        (HealthFacts(pending=1, consumers=2, silent=MINUTE_MS), ["unattended"]),
        (HealthFacts(consumers=2, silent=MINUTE_MS), []),
        (HealthFacts(lag=1, consumers=2, silent=MINUTE_MS - 1), []),
        (HealthFacts(lag=1, consumers=2, silent=None), []),
        (HealthFacts(lag=1, consumers=2, silent=MINUTE_MS, paused=True), []),
        (HealthFacts(lag=1, waits=MINUTE_MS), ["unattended"]),
        (HealthFacts(lag=1, waits=None), []),
        (
            HealthFacts(oldest=10**7, deliveries=9, lag=1, waits=10**7, consumers=1, silent=10**7),
            ["stuck", "failing", "unattended", "behind"],
        ),
    ],
)
def test_what_counts_as_trouble(facts: HealthFacts, troubles: list[str]) -> None:
    assert facts.troubles() == troubles
    fine = "paused" if facts.paused else "fine"
    assert facts.state() == (troubles[0] if troubles else fine)


def test_groups_in_trouble_come_first_then_the_oldest_entry_lag_and_deliveries() -> None:
    ordered = [
        HealthFacts(oldest=10 * MINUTE_MS),
        HealthFacts(oldest=6 * MINUTE_MS, lag=9),
        HealthFacts(oldest=6 * MINUTE_MS, lag=8),
        HealthFacts(deliveries=9),
        HealthFacts(deliveries=8),
        HealthFacts(oldest=MINUTE_MS),
        HealthFacts(lag=100),
        HealthFacts(),
    ]
    keys = [each.order() for each in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("owned", "waiting", "connected", "silent", "state"),
    [
        (0, True, True, 10**9, "waits"),
        (3, True, True, 0, "waits"),
        (0, False, True, 0, "away"),
        (0, False, False, 10**9, "away"),
        (1, False, True, 10**9, "works"),
        (1, False, False, 0, "gone"),
        (1, False, None, MINUTE_MS - 1, "works"),
        (1, False, None, MINUTE_MS, "gone"),
    ],
)
def test_a_consumer_that_works_for_long_is_not_gone_while_its_client_is_connected(
    owned: int, waiting: bool, connected: bool | None, silent: int, state: str
) -> None:
    assert consumer_state(owned, waiting, connected, silent) == state


def test_an_id_that_is_no_time_has_no_age() -> None:
    now = 1_700_000_000_000
    assert age_of(now - 5, now) == 5
    assert age_of(1, now) is None
    assert age_of(now + 1, now) is None
