"""How deliveries ended: what is kept of each entry, and what goes when."""

from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storage.engine.histories import MOST_LINES, PIECE, EndedDelivery, Histories

LINE = EndedDelivery(1, b"ann", b"fail", b"no tea")


def noted(*entry_ids: int) -> Histories:
    histories = Histories()
    for entry_id in entry_ids:
        histories.note(entry_id, LINE)
    return histories


def test_an_entry_has_its_last_lines() -> None:
    histories = Histories()
    for number in range(MOST_LINES + 5):
        histories.note(7, LINE._replace(time=number))
    assert [line.time for line in histories.lines(7)] == list(range(5, MOST_LINES + 5))
    assert histories.lines(8) == []


def test_a_copy_is_independent() -> None:
    histories = noted(1, 2)
    twin = histories.copy()
    histories.note(1, LINE)
    histories.forget([2])
    assert (twin.lines(1), twin.ids()) == ([LINE], [1, 2])
    twin.forget_below(3)
    assert (twin.size, histories.ids()) == (0, [1])


def test_no_piece_has_more_than_a_thousand_entries_in_whatever_order_they_come() -> None:
    for entry_ids in (range(5000), range(5000, 0, -1), [7 * n % 5000 for n in range(5000)]):
        histories = noted(*entry_ids)
        pieces: list[Any] = histories.pieces()
        assert max(map(len, pieces)) <= PIECE
        assert sum(map(len, pieces)) == 5000
        histories.forget(entry_ids)
        assert histories.pieces() == []


def test_a_trimming_removes_whole_pieces_and_the_lower_part_of_one() -> None:
    histories = noted(*range(5000))
    histories.forget_below(3333)
    assert histories.ids() == list(range(3333, 5000))
    assert histories.size == noted(*range(3333, 5000)).size
    histories.note(7, LINE)
    assert histories.ids()[:2] == [7, 3333]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["note", "note", "many", "forget", "below"]),
        st.integers(0, 9) | st.integers(0, 9000),
    ),
    max_size=40,
)


@given(STEPS)
def test_what_is_kept_is_what_a_dictionary_would_keep(steps: list[tuple[str, int]]) -> None:
    histories = Histories()
    model: dict[int, list[EndedDelivery]] = {}
    for time, (step, entry_id) in enumerate(steps):
        line = LINE._replace(time=time, reason=b"x" * time)
        if step in ("note", "many"):
            for each in range(entry_id, 9000 if step == "many" else entry_id + 1, 7):
                histories.note(each, line)
                model[each] = [*model.get(each, []), line][-MOST_LINES:]
        elif step == "forget":
            histories.forget([entry_id])
            model.pop(entry_id, None)
        else:
            histories.forget_below(entry_id)
            model = {each: lines for each, lines in model.items() if each >= entry_id}
        assert {each: list(histories.lines(each)) for each in histories.ids()} == model
        assert (histories.size > 0) == (len(model) > 0)


def test_ids_that_are_gone_take_no_memory_for_ever() -> None:
    histories = noted(0)
    for entry_id in range(1, 10_000):
        histories.note(entry_id, LINE)
        histories.forget([entry_id])
    assert len(histories.pieces()) < 10


def test_the_size_is_about_what_they_take() -> None:
    tracemalloc.start()
    histories = Histories()
    for entry_id in range(2000):
        for _ in range(3):
            histories.note(
                entry_id << 64, EndedDelivery(2**41 + entry_id, b"ann", b"fail", bytes(100))
            )
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 0.5 < histories.size / taken < 2
