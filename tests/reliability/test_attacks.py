"""Every attack leaves the server running, its memory bounded, and nothing acknowledged lost."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks.servers import PLAIN, find_kinds
from tests.conformance.reference import find_server
from tests.reliability.attacks import ATTACKS, Attack
from tests.reliability.results import TRIAL_SCALE, results_of
from tests.reliability.trial import try_attack


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_server_survives_and_loses_nothing(
    attack: Attack, request: pytest.FixtureRequest
) -> None:
    results = results_of(request.config)
    outcome = try_attack(attack, PLAIN, 1 if results else TRIAL_SCALE)
    if results:
        results.note(attack, "penstock", outcome)
        for redis in find_kinds(["redis"])[0] if find_server() and not attack.of_page else []:
            results.note(attack, "redis", try_attack(attack, redis, 1))
    assert outcome.survived
    assert outcome.lost == 0
    if not attack.restarts:
        assert outcome.peak_mib < attack.memory_mib


def test_each_attack_has_a_row_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert len({attack.title for attack in ATTACKS}) == len(ATTACKS)
