"""Consumer groups: owning, acknowledging and claiming."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from storage.engine.groups import (
    MOST_REFUSABLE,
    Claim,
    Claims,
    Group,
    claim_idle,
    claim_ids,
    claim_one,
    claim_scanning,
)
from storage.engine.limits import StreamLimits
from storage.engine.log import EntryLog
from storage.engine.pending import HIGHEST, NEVER, Consumer, PendingEntry

NOW = 1000


class Case:
    """A stream of ten entries, all of them delivered to ann: each a millisecond after the other."""

    def __init__(self) -> None:
        self.log = EntryLog(StreamLimits())
        self.group = Group(b"g", 10, None)
        self.ann = self.group.add_consumer(b"ann", 0)
        self.bob = self.group.add_consumer(b"bob", 0)
        for entry_id in range(1, 11):
            self.log.append(entry_id, [b"f", b"v"])
            self.group.pending.append_run([entry_id], self.ann, entry_id)

    def claim(
        self,
        min_idle: int = 0,
        time: int = NOW,
        deliveries: int | None = None,
        counting: bool = True,
        force: bool = False,
        refused: Sequence[int] = (),
    ) -> Claim:
        """A claim by bob, who may not have some of them."""

        def refuses(entry_id: int, before: PendingEntry) -> bool:
            return entry_id in refused

        return Claim(
            self.bob,
            min_idle,
            time,
            NOW,
            deliveries,
            counting,
            force,
            refuses if refused else None,
        )

    def entry(self, entry_id: int) -> PendingEntry:
        """The pending entry with this ID, which is there."""
        entry = self.group.pending.get(entry_id)
        assert entry is not None
        return entry

    def owned(self) -> dict[bytes, list[int]]:
        """What each consumer owns."""
        self.group.check()
        return {
            name: self.group.pending.owned_ids(person, 0, person.owned)
            for name, person in self.group.consumers.items()
        }


@pytest.fixture
def case() -> Case:
    return Case()


def _ids(claims: Claims) -> list[int]:
    return claims.ids


NOTHING: tuple[list[int], list[int], list[int]] = ([], [], [])


def _outcome(claims: Claims) -> tuple[list[int], list[int], list[int]]:
    """The IDs and counts claimed, and the IDs dropped."""
    return claims.ids, claims.counts, claims.dropped


def _always(payload: bytes) -> bool:
    return True


# --- groups and consumers --------------------------------------------------------------------


def test_a_new_group_has_nothing() -> None:
    group = Group(b"g", 7, 3)
    group.check()
    assert (group.name, group.last_id, group.entries_read) == (b"g", 7, 3)
    assert len(group.pending) == len(group.consumers) == 0


def test_removing_a_consumer_removes_what_it_owns(case: Case) -> None:
    case.group.hand_over(4, case.bob, 50, 2, NOW)
    assert len(case.group.remove_consumer(b"ann")) == 9
    assert case.owned() == {b"bob": [4]}
    assert len(case.group.remove_consumer(b"bob")) == 1
    assert len(case.group.pending) == 0


def test_acknowledging_tells_which_entries_were_pending(case: Case) -> None:
    assert case.group.acknowledge([3, 99, 1, 3]) == [3, 1]
    assert case.owned()[b"ann"] == [2, *range(4, 11)]


def test_handing_over_makes_an_entry_somebody_elses(case: Case) -> None:
    case.group.hand_over(4, case.bob, 50, 2, NOW)
    assert case.entry(4) == PendingEntry(4, case.bob, 50, 2)
    assert (case.bob.active, case.ann.active) == (NOW, NEVER)
    assert case.owned()[b"bob"] == [4]


def test_a_delivery_count_that_is_handed_over_stays_below_the_highest(case: Case) -> None:
    case.group.hand_over(4, case.bob, 50, HIGHEST + 5, NOW)
    assert case.entry(4).deliveries == HIGHEST


def test_a_copy_of_a_group_has_consumers_of_its_own(case: Case) -> None:
    case.group.pending.set(5, None, 0, 3)
    case.ann.active = 77
    twin = case.group.copy()
    twin.check()
    case.group.acknowledge(list(range(1, 11)))
    case.owned()
    ann = twin.consumers[b"ann"]
    assert ann is not case.ann
    assert (ann.seen, ann.active) == (0, 77)
    assert twin.pending.owned_ids(ann, 0, 99) == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert twin.pending.get(1) == PendingEntry(1, ann, 1, 1)
    assert list(twin.pending.extras.released) == [5]


def test_a_check_notices_a_consumer_who_owns_what_is_not_pending(case: Case) -> None:
    case.bob.owned += 1
    with pytest.raises(AssertionError):
        case.group.check()


# --- claiming single entries -----------------------------------------------------------------


def test_a_claimed_entry_counts_as_delivered_once_more(case: Case) -> None:
    claims = claim_ids(case.group, case.log, [4, 2], case.claim(time=900))
    assert _ids(claims) == [4, 2]
    assert case.entry(4) == PendingEntry(4, case.bob, 900, 2)
    assert case.bob.active == NOW


def test_a_claim_without_counting_leaves_the_delivery_count(case: Case) -> None:
    claim_ids(case.group, case.log, [4], case.claim(counting=False))
    assert case.entry(4).deliveries == 1


def test_a_claim_may_set_the_delivery_count(case: Case) -> None:
    claim_ids(case.group, case.log, [4], case.claim(deliveries=0))
    assert case.entry(4).deliveries == 0


def test_counting_a_claim_stays_at_the_highest_number(case: Case) -> None:
    claim_ids(case.group, case.log, [4], case.claim(deliveries=HIGHEST))
    assert claim_ids(case.group, case.log, [4], case.claim()).counts[0] == HIGHEST


@pytest.mark.parametrize(("min_idle", "claimed"), [(NOW - 4, [4]), (NOW - 3, [])])
def test_an_entry_is_claimed_once_it_has_been_idle_long_enough(
    case: Case, min_idle: int, claimed: list[int]
) -> None:
    assert _ids(claim_ids(case.group, case.log, [4], case.claim(min_idle))) == claimed


def test_a_freed_entry_is_claimed_however_young_it_is(case: Case) -> None:
    case.group.pending.set(4, None, NOW, 1)
    assert _ids(claim_ids(case.group, case.log, [4], case.claim(10**9))) == [4]
    assert case.owned()[b"bob"] == [4]


def test_what_is_not_pending_is_claimed_by_force_alone(case: Case) -> None:
    case.group.acknowledge([4])
    assert _outcome(claim_ids(case.group, case.log, [4], case.claim())) == NOTHING
    claims = claim_ids(case.group, case.log, [4], case.claim(10**9, force=True))
    assert _outcome(claims) == ([4], [2], [])
    assert claims.payloads == [case.log.get(4)]


def test_a_pending_entry_that_is_gone_is_dropped_however_young_it_is(case: Case) -> None:
    case.log.delete(4)
    claims = claim_ids(case.group, case.log, [4], case.claim(10**9))
    assert _outcome(claims) == ([], [], [4])
    assert 4 not in case.group.pending


def test_what_is_neither_pending_nor_there_cannot_be_claimed(case: Case) -> None:
    claims = Claims()
    assert not claim_one(case.group, 99, False, case.claim(force=True), claims)
    assert _outcome(claims) == NOTHING


# --- claiming while scanning -----------------------------------------------------------------


def test_scanning_goes_on_behind_the_last_entry_it_examined(case: Case) -> None:
    following, claims = claim_scanning(case.group, case.log, 3, 2, case.claim())
    assert (following, _ids(claims)) == (5, [3, 4])
    following, claims = claim_scanning(case.group, case.log, 5, 100, case.claim())
    assert (following, _ids(claims)) == (0, [5, 6, 7, 8, 9, 10])


def test_scanning_that_ends_with_the_list_begins_again(case: Case) -> None:
    assert claim_scanning(case.group, case.log, 9, 2, case.claim())[0] == 0


def test_scanning_examines_ten_times_as_many_entries_as_it_may_claim(case: Case) -> None:
    for entry_id in range(11, 31):
        case.log.append(entry_id, [b"f", b"v"])
    case.group.pending.append_run(range(11, 31), case.ann, NOW)
    following, claims = claim_scanning(case.group, case.log, 1, 2, case.claim(NOW))
    assert (following, _outcome(claims)) == (21, NOTHING)


def test_scanning_counts_dropped_entries_as_claimed(case: Case) -> None:
    case.log.trim_to_length(8)
    following, claims = claim_scanning(case.group, case.log, 0, 3, case.claim())
    assert (following, _ids(claims), claims.dropped) == (4, [3], [1, 2])


def test_scanning_steps_over_entries_that_are_too_young(case: Case) -> None:
    following, claims = claim_scanning(case.group, case.log, 0, 5, case.claim(NOW - 3))
    assert (following, _ids(claims)) == (0, [1, 2, 3])


# --- claiming the idle -----------------------------------------------------------------------


def _idle(
    case: Case, most: int, min_idle: int = 0, fits: Callable[[bytes], bool] = _always
) -> Claims:
    return claim_idle(case.group, case.log, most, case.claim(min_idle), fits)[0]


def test_the_longest_idle_are_claimed_first(case: Case) -> None:
    case.group.hand_over(9, case.ann, 0, 1, 0)
    assert _ids(_idle(case, 3)) == [9, 1, 2]


def test_freed_entries_are_claimed_before_all_others(case: Case) -> None:
    for entry_id in (7, 3):
        case.group.pending.set(entry_id, None, 0, 1)
    assert _ids(_idle(case, 4)) == [7, 3, 1, 2]


def test_no_entry_is_claimed_twice_at_once(case: Case) -> None:
    assert _ids(_idle(case, 100)) == list(range(1, 11))


def test_entries_that_are_not_idle_for_long_are_left_alone(case: Case) -> None:
    assert _ids(_idle(case, 100, NOW - 3)) == [1, 2, 3]
    assert case.owned()[b"ann"] == list(range(4, 11))


def test_entries_that_are_gone_make_room_for_others(case: Case) -> None:
    case.group.pending.set(2, None, 0, 1)
    case.log.trim_to_length(7)
    claims = _idle(case, 2)
    assert (_ids(claims), sorted(claims.dropped)) == ([4, 5], [1, 2, 3])


def test_claiming_ends_before_an_entry_that_does_not_fit(case: Case) -> None:
    room = [True, True, False]
    assert _ids(_idle(case, 10, fits=lambda _: room.pop(0))) == [1, 2]
    assert case.owned()[b"bob"] == [1, 2]


def test_nothing_is_claimed_where_nothing_is_asked_for(case: Case) -> None:
    assert _outcome(_idle(case, 0)) == NOTHING


def test_a_consumer_may_claim_its_own(case: Case) -> None:
    claim = Claim(case.ann, 0, NOW, NOW)
    claims, aged = claim_idle(case.group, case.log, 1, claim, _always)
    assert _ids(claims) == [1]
    assert aged == [(case.log.get(1), PendingEntry(1, case.ann, 1, 1))]
    assert case.entry(1) == PendingEntry(1, case.ann, NOW, 2)
    assert isinstance(case.ann, Consumer)


# --- claims that are refused -----------------------------------------------------------------


def test_an_entry_that_is_refused_stays_as_it_is(case: Case) -> None:
    claims = claim_ids(case.group, case.log, [2, 4, 6], case.claim(refused=[4]))
    assert _ids(claims) == [2, 6]
    assert case.entry(4) == PendingEntry(4, case.ann, 4, 1)


def test_a_scan_passes_over_entries_that_are_refused(case: Case) -> None:
    case.log.delete(3)
    following, claims = claim_scanning(case.group, case.log, 0, 4, case.claim(refused=[1, 4]))
    assert (following, _ids(claims), claims.dropped) == (7, [2, 5, 6], [3])


def test_a_scan_where_entries_may_be_refused_examines_a_limited_number_of_them(case: Case) -> None:
    more = range(11, MOST_REFUSABLE + 20)
    for entry_id in more:
        case.log.append(entry_id, [b"f", b"v"])
    case.group.pending.append_run(more, case.ann, 0)
    claim = case.claim(refused=more)
    following, claims = claim_scanning(case.group, case.log, 0, MOST_REFUSABLE, claim)
    assert _ids(claims) == list(range(1, 11))
    assert following == MOST_REFUSABLE + 1
    following, claims = claim_scanning(case.group, case.log, following, MOST_REFUSABLE, claim)
    assert (following, _ids(claims)) == (0, [])


def test_idle_entries_that_are_refused_are_not_asked_for_again(case: Case) -> None:
    claims, aged = claim_idle(case.group, case.log, 2, case.claim(refused=[3, 1]), _always)
    assert _ids(claims) == [2, 4]
    assert [each.before.id for each in aged] == [2, 4]


def test_where_entries_may_be_refused_those_without_an_owner_are_left_alone(case: Case) -> None:
    case.group.pending.set(7, None, 0, 1)
    case.group.pending.keep_back([8, 9], [50, 60])
    claims, _ = claim_idle(case.group, case.log, 20, case.claim(refused=[1]), _always)
    assert _ids(claims) == [2, 3, 4, 5, 6, 10]


def test_what_was_kept_back_is_claimed_behind_what_was_freed(case: Case) -> None:
    case.group.pending.set(9, None, 0, 1)
    case.group.pending.keep_back([7, 8], [50, 60])
    claims, aged = claim_idle(case.group, case.log, 4, case.claim(), _always)
    assert _ids(claims) == [9, 7, 8, 1]
    assert [each.before.deliveries for each in aged] == [1, 0, 0, 1]


def test_a_copy_of_a_group_has_its_policies(case: Case) -> None:
    case.group.policy[b"ack-wait"] = b"5"
    twin = case.group.copy()
    case.group.policy.clear()
    assert twin.policy == {b"ack-wait": b"5"}
