"""Room for clients, by the limits of the operating system."""

from __future__ import annotations

import resource

import pytest

from penstock.cli import require_room
from server.config.types import BadSetting
from server.runtime.process import make_room


class System:
    """Limits of a process, of which only the first may be raised, up to the second."""

    def __init__(self, soft: int, hard: int) -> None:
        self.limits = (soft, hard)

    def getrlimit(self, kind: int) -> tuple[int, int]:
        return self.limits

    def setrlimit(self, kind: int, limits: tuple[int, int]) -> None:
        assert kind == resource.RLIMIT_NOFILE
        self.limits = limits


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    system = System(100, 1000)
    monkeypatch.setattr("server.runtime.process.resource.getrlimit", system.getrlimit)
    monkeypatch.setattr("server.runtime.process.resource.setrlimit", system.setrlimit)
    return system


def test_a_limit_that_is_high_enough_stays(system: System) -> None:
    assert make_room(68) == 68
    assert system.limits == (100, 1000)


def test_no_limit_stays_none(system: System) -> None:
    system.limits = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert make_room(10**6) == 10**6
    assert system.limits == (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def test_the_limit_is_raised_as_far_as_clients_need(system: System) -> None:
    assert make_room(69) == 69
    assert system.limits == (101, 1000)


def test_the_limit_is_raised_freely_if_nothing_bounds_it(system: System) -> None:
    system.limits = (100, resource.RLIM_INFINITY)
    assert make_room(10**6) == 10**6
    assert system.limits == (10**6 + 32, resource.RLIM_INFINITY)


def test_there_is_room_for_what_the_system_grants(system: System) -> None:
    assert make_room(2000) == 968
    assert system.limits == (1000, 1000)


def test_there_is_always_room_for_one_client(system: System) -> None:
    system.limits = (10, 20)
    assert make_room(2000) == 1


def test_more_clients_than_there_is_room_for_are_refused(system: System) -> None:
    require_room(968)
    with pytest.raises(BadSetting) as caught:
        require_room(969)
    assert caught.value.reason == (
        "The operating system is not able to handle the specified number of clients, try with 968"
    )
