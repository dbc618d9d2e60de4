"""Each of these well-known faults is found, by which kind and where; what mends it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from examples.explore import inbox, outbox, rate_limiter
from penstock.testing import Penstock, exploring
from tests.penstock.explore import workers
from tests.penstock.explore.together import known_faults as faults


@dataclass(frozen=True)
class Case:
    """A fault, what finds it, and the scenarios or orders that end wrong."""

    faulty: Any
    mended: Any
    found: str
    invariant: Callable[[Any], object]
    prepare: Callable[[Any], object] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def explore(self, penstock: Penstock, worker: Any) -> exploring.Exploration:
        """Tries it: orders if there are several workers, else faults."""
        usual = {"prepare": self.prepare, "invariant": self.invariant, **self.options}
        if isinstance(worker, tuple):
            ann, bob = worker
            return penstock.explore.orders(ann=ann, bob=bob, **usual)
        return penstock.explore.crashes(worker, **usual)


COUNTING = workers.counted_once, workers.fill

CASES = {
    "counts, then acknowledges": Case(
        workers.counting_first,
        workers.by_a_script(),
        "crash-after@2 crash-before@3 crash-after@5 crash-before@6 crash-after@8 crash-before@9",
        *COUNTING,
    ),
    "acknowledges, then counts": Case(
        faults.acknowledging_first,
        workers.by_a_script(),
        "crash-after@2 crash-before@3 crash-after@5 crash-before@6 crash-after@8 crash-before@9",
        *COUNTING,
    ),
    "reads only what is new": Case(
        workers.only_new,
        workers.by_a_script(),
        "crash-after@0 crash-before@1 crash-after@3 crash-before@4 crash-after@6 crash-before@7",
        *COUNTING,
    ),
    "a pipeline without a transaction": Case(
        faults.in_a_pipeline(transaction=False),
        faults.in_a_pipeline(transaction=True),
        "crash-after@2 crash-before@3 crash-after@5 crash-before@6 crash-after@8 crash-before@9",
        *COUNTING,
    ),
    "a transaction that does not look at XACK": Case(
        workers.in_a_transaction(),
        workers.by_a_script(),
        "stall@3 stall@8 stall@13",
        *COUNTING,
        options={"kinds": "stall", "recover": workers.by_a_script("bob")},
    ),
    "claims what another works on": Case(
        (faults.reading, faults.claiming(idle_ms=0)),
        (faults.reading, faults.claiming(idle_ms=60_000)),
        "aabbba abbbaa",
        faults.counted_at_most_once,
        faults.one_order,
    ),
    "adds again what was added": Case(
        faults.adding,
        faults.adding_once,
        "connection-after@0",
        faults.added_once,
        options={"kinds": "connection", "recover": faults.nobody},
    ),
    "trims what nobody has read": Case(
        (faults.trimming(), faults.packing),
        (faults.trimming("ACKED"), faults.packing),
        "aaabbbbbbb+",
        faults.all_packed,
        faults.empty_group,
    ),
    "takes out of the outbox, then publishes": Case(
        outbox.delete_then_publish,
        outbox.publish_then_delete,
        "crash-after@1 crash-before@2 crash-after@3 crash-before@4 crash-after@5 crash-before@6",
        outbox.each_announced,
        outbox.fill,
    ),
    "looks into the inbox, then handles": Case(
        (inbox.exists_then_set,) * 2,
        (inbox.by_a_script,) * 2,
        "aabbba abbbaa bbaaab baaabb",
        inbox.charged_once,
    ),
    "a lock that anybody releases": Case(
        (faults.slow(faults.delete), faults.quick(faults.delete)),
        (faults.slow(faults.delete_own), faults.quick(faults.delete_own)),
        "ab+ba+bbb",
        faults.not_broken,
    ),
    "a counter that does not expire": Case(
        rate_limiter.incr_then_expire,
        rate_limiter.by_a_script,
        "crash-after@0 crash-before@1",
        rate_limiter.expires,
    ),
    "a cache that is filled with what was": Case(
        (faults.filling_the_cache, faults.writing),
        (faults.filling_if_unchanged, faults.writing),
        "aabba",
        faults.fresh,
        faults.in_the_database,
    ),
    "WATCH, and nobody looks": Case(
        (faults.watching_in_vain,) * 2,
        (faults.watching,) * 2,
        "aabbba abbbaa bbaaab baaabb",
        faults.both_counted,
    ),
    "a counter that a failover sets back": Case(
        faults.numbering,
        faults.naming,
        "failover@1 failover@3",
        faults.each_number_once,
        options={"kinds": "failover"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_found(
    penstock: Penstock, session: exploring.ExploringSession, name: str
) -> None:
    case = CASES[name]
    with pytest.raises(AssertionError):
        case.explore(penstock, case.faulty)
    outcomes = session.found[-1].outcomes
    assert " ".join(outcome.id for outcome in outcomes if outcome.wrong) == case.found


@pytest.mark.parametrize("name", CASES)
def test_what_mends_it_is_right_in_all(penstock: Penstock, name: str) -> None:
    case = CASES[name]
    result = case.explore(penstock, case.mended)
    assert (result.complete, result.diverged) == (True, [])
