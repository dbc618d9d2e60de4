"""Memory of connections goes back to the system when many of them have ended."""

from __future__ import annotations

import pytest

from server import cron
from tests.support.direct import Direct


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has an element for each time that memory was given back."""
    times: list[int] = []
    monkeypatch.setattr(cron, "give_memory_back", lambda: times.append(1))
    return times


def test_memory_is_given_back_each_time_that_many_connections_have_ended(given: list[int]) -> None:
    direct = Direct()
    for wave in (1, 2):
        clients = [direct.client() for _ in range(cron.MANY_ENDED + 1)]
        direct.cron()
        clients.pop().disconnect()
        direct.cron()
        assert len(given) == wave - 1
        for client in clients:
            client.disconnect()
        direct.cron()
        direct.cron()
        assert len(given) == wave


def test_connections_that_end_a_few_at_a_time_are_added_up(given: list[int]) -> None:
    direct = Direct()
    clients = [direct.client() for _ in range(2 * cron.MANY_ENDED)]
    direct.cron()
    for client in clients:
        client.disconnect()
        direct.cron()
    assert given == [1, 1]


def test_connections_that_others_follow_need_nothing_given_back(given: list[int]) -> None:
    direct = Direct()
    for _ in range(3 * cron.MANY_ENDED):
        client = direct.client()
        direct.cron()
        client.disconnect()
        direct.cron()
    assert given == []
