"""Sets as values: their members, their order, and when they are large."""

from __future__ import annotations

from collections.abc import Collection
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from storage.engine.limits import FEW, StreamLimits
from storage.types.collection import drawn
from storage.types.kinds import SET, kind_of
from storage.types.set import SetValue

MEMBERS = st.sampled_from([b"%d" % number for number in range(-3, 12)]) | st.binary(max_size=2)


def fill(value: SetValue, members: Collection[bytes], *, tight: bool = False) -> None:
    for _ in value.filling(members, tight=tight):
        pass


def a_set(*members: bytes) -> SetValue:
    """A set of these members."""
    value = SetValue(StreamLimits().collections)
    for member in members:
        value.add(member)
    return value


def numbers(count: int) -> list[bytes]:
    """The texts of 0, 1 and so on."""
    return [b"%d" % number for number in range(count)]


@given(st.lists(st.tuples(st.booleans(), MEMBERS)), st.booleans())
def test_it_is_a_set_with_or_without_an_index(
    steps: list[tuple[bool, bytes]], indexed: bool
) -> None:
    value, model = a_set(), dict[bytes, None]()
    for adding, member in steps:
        if indexed:
            value.members.page(0, 1)
        if adding:
            assert value.add(member) is (member not in model)
            model[member] = None
        else:
            assert value.remove(member) is (member in model)
            model.pop(member, None)
        assert set(value.ordered()) == set(model)
        value.check()
    assert len(value) == len(model)


def test_integers_are_in_their_order_and_what_comes_then_behind_them() -> None:
    value = a_set(b"5", b"-1", b"30", b"4")
    assert (list(value.ordered()), value.encoding()) == ([b"-1", b"4", b"5", b"30"], "intset")
    value.add(b"2")
    value.add(b"x")
    value.add(b"1")
    assert list(value.ordered()) == [b"-1", b"2", b"4", b"5", b"30", b"x", b"1"]
    assert value.encoding() == "listpack"


def test_what_is_no_integer_of_64_bits_in_its_one_spelling_is_a_text() -> None:
    for member in (b"01", b"+1", b" 1", b"-0", b"9223372036854775808", b"1.0", b""):
        assert a_set(member).encoding() == "listpack"
    assert a_set(b"9223372036854775807", b"-9223372036854775808", b"0").encoding() == "intset"


def test_many_members_and_long_ones_are_large_and_stay_so() -> None:
    value = a_set(*numbers(512))
    assert value.encoding() == "intset"
    value.add(b"512")
    value.remove(b"512")
    assert (value.encoding(), value.is_small) == ("hashtable", False)
    texts = a_set(*[b"m%d" % number for number in range(128)])
    assert texts.encoding() == "listpack"
    texts.add(b"one more")
    assert texts.encoding() == "hashtable"
    assert a_set(b"a", bytes(64)).encoding() == "listpack"
    assert a_set(b"a", bytes(65)).encoding() == "hashtable"
    assert a_set(*numbers(200), b"x").encoding() == "hashtable"


def test_what_is_expected_counts_for_the_encoding_whether_or_not_it_is_new() -> None:
    def after(count: int, member: bytes, *present: bytes) -> str:
        value = a_set(*present)
        value.expect(member, count)
        value.add(member)
        value.check()
        return value.encoding()

    assert [after(count, b"1") for count in (512, 513)] == ["intset", "hashtable"]
    assert [after(count, b"a") for count in (128, 129)] == ["listpack", "hashtable"]
    assert [after(count, b"2", b"1") for count in (512, 513)] == ["intset", "hashtable"]
    assert [after(count, b"a", b"1") for count in (512, 513)] == ["listpack", "hashtable"]
    assert [after(count, b"1", b"a") for count in (128, 129)] == ["listpack", "hashtable"]


def test_integers_beyond_their_limit_are_small_if_texts_would_be() -> None:
    value = a_set()
    value._limits.set_max_intset_entries = 10
    value.expect(b"0", 11)
    assert value.encoding() == "listpack"
    filled = SetValue(value._limits)
    fill(filled, numbers(11), tight=True)
    assert (filled.encoding(), list(filled.ordered())) == ("listpack", numbers(11))


def test_a_set_that_is_filled_has_the_encoding_of_one_that_grew_or_the_tightest() -> None:
    for count in (1, 512, 513, 600):
        value, tight, grown = a_set(), a_set(), a_set(*numbers(count))
        fill(value, numbers(count))
        fill(tight, dict.fromkeys(numbers(count)), tight=True)
        assert value.encoding() == tight.encoding() == grown.encoding()
        assert list(value.ordered()) == list(tight.ordered()) == numbers(count)
        tight.check()
    mixed, tight = a_set(), a_set()
    for each in (mixed, tight):
        each._limits.set_max_intset_entries = 3
        fill(each, [b"4", b"1", b"2", b"3", b"x"], tight=each is tight)
    assert (mixed.encoding(), tight.encoding()) == ("hashtable", "listpack")


def test_long_integers_are_texts_that_are_too_long() -> None:
    value = a_set(b"123456")
    value._limits.set_max_listpack_value = 5
    value.add(b"x")
    assert value.encoding() == "hashtable"


@given(st.integers(0, 70), st.integers(0, 70), st.booleans())
def test_picks_are_different_members(total: int, count: int, indexed: bool) -> None:
    value = a_set(*[b"m%d" % number for number in range(total)])
    if indexed:
        value.members.page(0, 1)
    picks = value.members.picks(count)
    assert len(set(picks)) == len(picks) == min(total, count)
    value.remove_all(picks)
    assert len(value) == total - len(picks)
    assert not set(picks) & set(value.ordered())
    value.check()


def test_few_of_many_are_picked_one_by_one() -> None:
    value = a_set(*[b"m%d" % number for number in range(1000)])
    assert not value.members.are_listed_for(9)
    assert len(set(value.members.picks(9))) == 9
    assert value.members.index is not None


def test_every_name_is_drawn_once_and_each_place_may_have_any() -> None:
    names = [b"a", b"b", b"c"]
    orders = {tuple(drawn(names.copy(), 3)) for _ in range(1000)}
    assert orders == set(permutations(names))


def test_a_copy_is_a_value_of_its_own_with_the_same_encoding() -> None:
    value = a_set(b"3", b"1")
    copy = value.copy()
    value.add(b"x")
    assert (list(copy.ordered()), copy.encoding()) == ([b"1", b"3"], "intset")
    assert kind_of(copy) is SET


def test_commands_of_64_members_make_it_anew() -> None:
    commands = list(a_set(*numbers(130)).words(b"k"))
    assert [(words[:3], len(words)) for words in commands] == [
        ((b"SADD", b"k", b"0"), 66),
        ((b"SADD", b"k", b"64"), 66),
        ((b"SADD", b"k", b"128"), 4),
    ]


def test_its_memory_grows_with_its_members_and_a_long_one_is_freed_in_portions() -> None:
    assert a_set().memory() == 0
    value = a_set(*numbers(FEW + 1))
    assert value.memory() > 10 * a_set(*numbers(10)).memory()
    disposal = value._limits.disposal
    del value
    assert len(disposal) == FEW + 1
