"""Lists as values: what they hold after each change, and when they are large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storage.engine.limits import FEW, StreamLimits
from storage.types.kinds import LIST, kind_of
from storage.types.list import FEW_MATCHES, ListValue

ELEMENTS = st.sampled_from([b"a", b"b", b"c", b"", b"12", b"x" * 300])
INDEXES = st.integers(-4, 4)


def a_list(*elements: bytes, limit: int = -2) -> ListValue:
    """A list of these elements."""
    limits = StreamLimits().collections
    limits.list_max_listpack_size = limit
    value = ListValue(limits)
    value.push(elements, left=False)
    return value


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.lists(ELEMENTS, min_size=1, max_size=3), st.booleans()),
            st.tuples(st.just("pops"), st.integers(0, 3), st.booleans()),
            st.tuples(st.just("set"), INDEXES, ELEMENTS),
            st.tuples(st.just("insert"), st.tuples(ELEMENTS, ELEMENTS), st.booleans()),
            st.tuples(st.just("remove"), ELEMENTS, st.integers(-2, 2)),
            st.tuples(st.just("trim"), st.integers(0, 3), st.integers(0, 9)),
            st.tuples(st.just("turn"), st.booleans(), st.booleans()),
        ),
        max_size=30,
    ),
    st.sampled_from([-2, 2, 5]),
)
def test_it_is_a_list_whatever_is_done(steps: list[tuple[str, object, object]], limit: int) -> None:
    value, model = a_list(limit=limit), list[bytes]()
    for step in steps:
        model = changed(value, model, step)
        assert list(value.elements) == model
        value.check()
        for start in range(len(model)):
            assert value.slice(start, len(model)) == model[start:]
            assert value.slice(start, start + 2) == model[start : start + 2]


def changed(value: ListValue, model: list[bytes], step: tuple[str, object, object]) -> list[bytes]:
    """Does a step to both; returns the model after it."""
    match step:
        case ("push", list(elements), bool(left)):
            value.push(elements, left=left)
            return elements[::-1] + model if left else model + elements
        case ("pops", int(count), bool(left)):
            popped = value.pops(count, left=left)
            outer = model if left else model[::-1]
            assert popped == outer[:count]
            return model[count:] if left else model[: max(len(model) - count, 0)]
        case ("set", int(index), bytes(element)):
            there = -len(model) <= index < len(model)
            assert value.set(index, element) is there
            if there:
                model = model.copy()
                model[index] = element
        case ("turn", bool(left), bool(to_left)) if model:
            element, *others = model if left else [model[-1], *model[:-1]]
            assert value.turn(left=left, to_left=to_left) == element
            return [element, *others] if to_left else [*others, element]
        case ("insert", (bytes(pivot), bytes(element)), bool(before)):
            assert value.insert(pivot, element, before=before) is (pivot in model)
            if pivot in model:
                at = model.index(pivot) + (not before)
                return [*model[:at], element, *model[at:]]
        case ("remove", bytes(element), int(count)):
            places = [at for at, each in enumerate(model) if each == element]
            if count:
                places = places[:count] if count > 0 else places[count:]
            assert value.remove(element, count) == len(places)
            return [each for at, each in enumerate(model) if at not in places]
        case ("trim", int(start), int(end)) if start <= end <= len(model):
            assert value.trim(start, end) == len(model) - (end - start)
            return model[start:end]
    return model


@given(
    st.lists(st.sampled_from([b"a", b"b"]), min_size=FEW_MATCHES, max_size=4 * FEW_MATCHES),
    st.integers(-3 * FEW_MATCHES, 3 * FEW_MATCHES),
)
def test_many_equal_elements_are_removed(elements: list[bytes], count: int) -> None:
    value = a_list(*elements)
    model = changed(value, elements, ("remove", b"a", count))
    assert list(value.elements) == model
    value.check()


@given(
    st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12),
    *(st.integers(0, 3), st.integers(1, 4), st.integers(1, 14), st.booleans()),
)
def test_places_are_those_of_equal_elements(
    elements: list[bytes], skipped: int, wanted: int, most: int, left: bool
) -> None:
    value = a_list(*elements)
    looked_at = (elements if left else elements[::-1])[:most]
    places = [at for at, each in enumerate(looked_at) if each == b"a"]
    found = value.places(b"a", skipped, wanted, most, left=left)
    assert found == places[skipped : skipped + wanted]
    assert list(value.elements) == elements


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_parts_of_a_long_list_are_given_and_kept(size: int, start: int, length: int) -> None:
    elements = [b"%d" % n for n in range(size)]
    value = a_list(*elements)
    start = min(start, size)
    assert value.slice(start, start + length) == elements[start : start + length]
    assert value.trim(start, min(start + length, size)) == size - len(value)
    assert list(value.elements) == elements[start : start + length]
    value.check()


def test_a_long_list_is_large_until_it_is_half_as_long_as_it_may_be() -> None:
    value = a_list(*[b"x" * 100] * 80)
    assert value.encoding() == "listpack"
    value.push([b"x"] * 6, left=True)
    assert value.encoding() == "quicklist"
    value.pops(45, left=True)
    assert value.encoding() == "quicklist"
    value.pops(3, left=True)
    assert value.encoding() == "listpack"


def test_the_limit_may_be_a_number_of_elements() -> None:
    value = a_list(b"1", b"2", b"3", limit=3)
    assert value.encoding() == "listpack"
    value.push([b"4"], left=False)
    assert value.encoding() == "quicklist"
    value.trim(0, 1)
    assert value.encoding() == "listpack"
    assert a_list(bytes(9000), limit=3).encoding() == "quicklist"


def test_what_is_not_added_in_the_end_may_make_it_large() -> None:
    value = a_list(b"1", b"2", b"3", limit=3)
    assert not value.set(5, b"4")
    assert value.encoding() == "quicklist"
    value = a_list(b"1", b"2", b"3", limit=3)
    assert not value.insert(b"5", b"4", before=True)
    assert value.encoding() == "quicklist"


def test_an_element_that_turns_is_not_away_in_between() -> None:
    value = a_list(b"1", b"2", b"3", b"4", limit=3)
    value.pops(2, left=True)
    assert value.encoding() == "quicklist"
    value.turn(left=True, to_left=False)
    assert value.encoding() == "quicklist"
    value = a_list(b"1", b"2", limit=1)
    value.pop(left=True)
    value.turn(left=True, to_left=True)
    assert value.encoding() == "quicklist"


def test_a_copy_is_a_value_of_its_own() -> None:
    value = a_list(b"a", b"b")
    copy = value.copy()
    value.push([b"c"], left=True)
    assert list(copy.elements) == [b"a", b"b"]
    assert kind_of(copy) is LIST
    copy.check()


def test_what_stays_is_not_touched_where_less_is_removed() -> None:
    value = a_list(b"a", b"b", b"c", b"d", b"e")
    elements = value.elements
    assert value.trim(1, 4) == 2
    assert value.remove(b"c", -1) == 1
    assert value.elements is elements
    assert list(elements) == [b"b", b"d"]


def test_commands_of_64_elements_make_it_anew() -> None:
    commands = list(a_list(*[b"%d" % n for n in range(70)]).words(b"k"))
    assert [(words[:3], len(words)) for words in commands] == [
        ((b"RPUSH", b"k", b"0"), 66),
        ((b"RPUSH", b"k", b"64"), 8),
    ]


def test_a_long_list_is_freed_in_portions() -> None:
    value = a_list(*[b"x"] * (FEW + 1))
    disposal = value._limits.disposal
    assert value.memory() > FEW
    del value
    assert len(disposal) == FEW + 1
    disposal.free(FEW + 1)
    assert len(disposal) == 0


def test_what_is_cut_off_a_long_list_is_freed_in_portions() -> None:
    value = a_list(*[b"%d" % n for n in range(2 * FEW)])
    disposal = value._limits.disposal
    value.trim(5, 8)
    assert len(disposal) == 2 * FEW
    disposal.free(2 * FEW)
    assert list(value.elements) == [b"5", b"6", b"7"]
