"""XADDs recognized in bytes: what is plainly spelt and complete, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol import additions, additions_plain
from protocol.additions import Form
from tests.support.wire import bulk, pack

Cut = Callable[[bytes, int, Form, int, list[bytes]], tuple[list[bytes], int, bool]]

CUTS = pytest.mark.parametrize("cut", [additions.cut, additions_plain.cut], ids=["loop", "plain"])
FormAt = Callable[[bytes, int], Form | None]
FORMS = pytest.mark.parametrize(
    "form_at", [additions.form_at, additions_plain.Forms().form_at], ids=["loop", "plain"]
)
PREFIX = b"*7\r\n$4\r\nXADD\r\n$1\r\nk\r\n$1\r\n*\r\n"
NAMES = [b"f", b"longer"]


def form_of(fields: int) -> Form:
    """What requests of so many fields begin with that begin with PREFIX."""
    form = Form()
    form.prefix, form.size, form.key, form.fields = PREFIX, len(PREFIX), b"k", fields
    return form


def piece(*values: bytes, names: list[bytes] = NAMES) -> bytes:
    pairs = zip(names, values, strict=True)
    return b"".join([bulk(name) + bulk(value) for name, value in pairs])


EXPECTED = [bulk(name) for name in NAMES]


def cut_all(cut: Cut, data: bytes, at: int = 0) -> tuple[list[bytes], int, bool]:
    """All that is found; how much is taken at once is up to who cuts."""
    form = form_of(len(NAMES))
    found, at, alike = cut(data, at, form, 100, EXPECTED)
    more = found
    while more:
        more, at, also = cut(data, at, form, 100, EXPECTED)
        found = found + more
        alike = alike and (also or not more)
    return found, at, alike


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], []),
        ([b"NOMKSTREAM"], [b"NOMKSTREAM"]),
        ([b"MAXLEN", b"~", b"10"], [b"MAXLEN", b"~", b"10"]),
        ([b"anything", b"", b"*1"], [b"anything", b"", b"*1"]),
    ],
)
@pytest.mark.parametrize("name", [b"XADD", b"xadd", b"xAdD"])
@pytest.mark.parametrize("key", [b"k", b"", b"*", b"$1\r\n*\r\n", b"k" * 500])
@FORMS
def test_a_form_is_what_stands_before_the_fields(
    form_at: FormAt, name: bytes, key: bytes, words: list[bytes], options: list[bytes]
) -> None:
    request = pack(name, key, *words, b"*", b"f", b"1", b"longer", b"2")
    for _ in range(2):
        form = form_at(b"..." + request, 3)
        assert (form is None) == (len(key) == 500 and form_at is not additions.form_at)
        if form is not None:
            assert form.size == len(request) - len(piece(b"1", b"2"))
            assert (form.key, form.fields, form.header) == (key, 2, b"*4\r\n")
            assert form.options == b"".join(map(bulk, options))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        PREFIX[:-1],
        pack(b"XLEN", b"k", b"*", b"f", b"v"),
        pack(b"XADD", b"k", b"*"),
        pack(b"XADD", b"k", b"*", b"f"),
        pack(b"XADD", b"k", b"*", b"f", b"v", b"g"),
        pack(b"XADD", b"*", b"f", b"v", b"g", b"w"),
        pack(b"XADD", b"k", b"1-*", b"f", b"v"),
        pack(b"XADD", b"k", *[b"o"] * 14, b"*", b"f", b"v"),
        b"*05\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n",
        b"*5\r\n$4\r\nXADD\r\n$2\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n",
        b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$01\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n",
    ],
)
@FORMS
def test_anything_else_has_no_form(form_at: FormAt, data: bytes) -> None:
    assert form_at(data, 0) is None
    assert form_at(b"..." + data, 3) is None


@pytest.mark.parametrize("others", [[b"k2"], [b"j1"], [b"k1+"], [b"k2", b"k3"], []])
def test_requests_with_another_key_are_not_cut_with_those_before(others: list[bytes]) -> None:
    data = b"".join([pack(b"XADD", key, b"*", b"f", b"v") for key in (b"k1", b"k1", *others)])
    form = additions.form_at(data, 0)
    assert form is not None
    pieces, end, _ = additions.cut(data, 0, form, 9, [])
    assert pieces == [bulk(b"f") + bulk(b"v")] * 2
    if others:
        assert additions.form_at(data, end, form) is form
        assert additions.cut(data, end, form, 9, [])[0] == pieces[:1]


@pytest.mark.parametrize(
    ("text", "ms", "seq"),
    [
        (b"1-1", 1, 1),
        (b"0-0", 0, 0),
        (b"0-7", 0, 7),
        (b"1700000000000-12", 1700000000000, 12),
        (b"9" * 18 + b"-" + b"9" * 18, 10**18 - 1, 10**18 - 1),
    ],
)
def test_the_form_of_a_request_with_an_id_includes_it(text: bytes, ms: int, seq: int) -> None:
    request = pack(b"XADD", b"key", text, b"f", b"1", b"longer", b"2")
    form = additions.form_at(b"..." + request, 3)
    assert form is not None
    assert form.size == len(request) - len(piece(b"1", b"2"))
    assert (form.key, form.fields, form.options) == (b"key", 2, b"")
    assert (form.ms, form.seq, form.text) == (ms, seq, bulk(text))
    assert additions.cut(request, 0, form, 1, []) == ([piece(b"1", b"2")], len(request), False)


def test_a_form_may_be_made_of_another_one() -> None:
    spare = additions.form_at(pack(b"XADD", b"key", b"NOMKSTREAM", b"*", b"f", b"1"), 0)
    given = pack(b"XADD", b"other", b"7-8", b"f", b"1", b"longer", b"2")
    form = additions.form_at(given, 0, spare)
    assert form is spare
    assert form is not None
    assert (form.key, form.fields, form.header) == (b"other", 2, b"*4\r\n")
    assert (form.options, form.ms, form.seq, form.text) == (b"", 7, 8, bulk(b"7-8"))
    form = additions.form_at(pack(b"XADD", b"key", b"*", b"f", b"1"), 0, spare)
    assert form is not None
    assert (form.key, form.ms, form.seq) == (b"key", -1, -1)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"1", b"-", b"1-", b"-1", b"1-1-1", b"01-1", b"1-01", b"00-1", b"1-*", b"+1-1"),
        *(b"1-1 ", b"1\r1", b"1-1\r", b"a-1", b"1-a", b"1" * 19 + b"-1", b"1-" + b"1" * 19),
    ],
)
def test_an_id_in_another_spelling_has_no_form(text: bytes) -> None:
    assert additions.form_at(pack(b"XADD", b"key", text, b"f", b"1", b"g", b"2"), 0) is None


def test_only_so_many_forms_are_remembered() -> None:
    forms = additions_plain.Forms()
    for number in range(additions_plain.MOST_FORMS + 1):
        request = pack(b"XADD", b"%d" % number, b"*", b"f", b"v")
        form = forms.form_at(request, 0)
        assert form is not None
        assert forms.form_at(request, 0) is form
    assert 0 < len(forms.known) <= additions_plain.MOST_FORMS


@CUTS
@pytest.mark.parametrize(
    "value",
    [b"", b"1", b"\r\n", b"v" * 64, b"v" * 65, b"v" * 5000, PREFIX, PREFIX + piece(b"1", b"2")],
)
def test_requests_are_cut_into_what_is_stored(cut: Cut, value: bytes) -> None:
    pieces = [piece(b"1", b"2"), piece(value, b"3"), piece(b"4", value)]
    data = b"".join([PREFIX + each for each in pieces])
    assert cut_all(cut, b"-----" + data, 5) == (pieces, 5 + len(data), True)


@CUTS
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_are_cut_than_are_wanted(cut: Cut, most: int) -> None:
    request = PREFIX + piece(b"1", b"2")
    form = form_of(2)
    for _ in range(3):
        found = cut(request * 3, 0, form, most, EXPECTED)
        assert found == ([piece(b"1", b"2")] * most, most * len(request), True)


@CUTS
def test_entries_of_different_field_names_are_taken_together(cut: Cut) -> None:
    form = form_of(2)
    others = [b"f", b"g"], [b"", b"longer"], [b"longer", b"f"]
    pieces = [piece(b"1", b"2"), *(piece(b"3", b"4", names=names) for names in others)]
    for order in (pieces, pieces[::-1]):
        data = b"".join([PREFIX + each for each in order])
        assert cut(data, 0, form, 100, EXPECTED) == (order, len(data), False)
        assert cut(data, 0, form, 100, []) == (order, len(data), False)


@CUTS
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("names", [NAMES, [b"f", b"g"], [b"", b"longer"], [b"longer", b"f"]])
@pytest.mark.parametrize("expected", [[], NAMES, [b"f"], [b"longer", b"f"]])
def test_it_is_told_whether_the_names_are_the_expected_ones(
    cut: Cut, names: list[bytes], expected: list[bytes], count: int
) -> None:
    data = (PREFIX + piece(b"1", b"2", names=names)) * count
    alike = cut(data, 0, form_of(2), 100, [bulk(name) for name in expected])[2]
    assert alike == (names == expected)


@CUTS
@pytest.mark.parametrize(
    "next_one",
    [
        b"",
        b"*1\r\n$4\r\nPING\r\n",
        PREFIX,
        PREFIX[:-1],
        PREFIX + piece(b"1", b"2")[:-1],
        b"*5" + PREFIX[2:] + piece(b"1", names=[b"f"]),
        PREFIX + bulk(b"f") + b"$01\r\nv\r\n" + bulk(b"longer") + bulk(b"v"),
        PREFIX + bulk(b"f") + b"$1\r\nvx\n" + bulk(b"longer") + bulk(b"v"),
    ],
)
def test_anything_else_ends_a_run(cut: Cut, next_one: bytes) -> None:
    request = PREFIX + piece(b"1", b"2")
    expected = ([piece(b"1", b"2")] * 2, 2 * len(request), True)
    assert cut_all(cut, request * 2 + next_one) == expected
    assert cut(next_one, 0, form_of(2), 100, EXPECTED)[:2] == ([], 0)


@CUTS
@pytest.mark.parametrize("value", [b"2", b"v" * 100])
def test_requests_that_stand_alone_are_cut_like_many(cut: Cut, value: bytes) -> None:
    form = form_of(2)
    one = piece(b"1", value)
    for count in (3, 1, 1, 4, 1, 2):
        data = (PREFIX + one) * count
        assert cut(b"." + data, 1, form, 9, EXPECTED) == ([one] * count, 1 + len(data), True)
        assert cut(data, 0, form, 1, EXPECTED) == ([one], len(PREFIX + one), True)


def test_no_expression_is_made_for_very_many_fields() -> None:
    names = [b"n%d" % number for number in range(additions_plain.MOST_FIELDS + 1)]
    values = piece(*[b"v"] * len(names), names=names)
    before = additions_plain._pattern.cache_info().misses
    found = additions_plain.cut((PREFIX + values) * 2, 0, form_of(len(names)), 9, [])
    assert found == ([values] * 2, 2 * len(PREFIX + values), False)
    assert additions_plain._pattern.cache_info().misses == before


@pytest.fixture
def learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets an expression be made as soon as there was a run of requests that are alike."""
    monkeypatch.setattr(additions_plain, "LEARNED_AFTER", 2)
    monkeypatch.setattr(additions_plain, "_MANY", 2)
    monkeypatch.setattr(additions_plain, "_learned", {})
    monkeypatch.setattr(additions_plain, "_alike", {})


@pytest.mark.usefixtures("learning")
def test_what_many_requests_have_in_common_is_learned_and_forgotten() -> None:
    one, other = piece(b"1", b"2"), piece(b"1", b"2", names=[b"f", b"g"])
    run = (PREFIX + one) * 3, ([one] * 3, 3 * len(PREFIX + one), True)
    for _ in range(3):
        assert additions_plain.cut(run[0], 0, form_of(2), 9, EXPECTED) == run[1]
        assert PREFIX in additions_plain._learned
    mixed = b"".join([PREFIX + each for each in (one, other, one)])
    expected = [one, other, one], len(mixed), False
    for _ in range(2):
        assert additions_plain.cut(mixed, 0, form_of(2), 9, EXPECTED) == expected
        assert PREFIX not in additions_plain._learned


@pytest.mark.usefixtures("learning")
def test_only_so_much_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions_plain, "MOST_FORMS", 5)
    monkeypatch.setattr(additions_plain, "MOST_LEARNED", 3)
    for count in (2, 1):
        for number in range(20):
            additions_plain._learn(b"%d" % number, EXPECTED, count)
            assert len(additions_plain._learned) <= 3
            assert len(additions_plain._alike) <= 5


@pytest.mark.usefixtures("learning")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(
        st.one_of(st.binary(max_size=80), st.just(PREFIX + piece(b"1", b"2"))),
        min_size=2,
        max_size=20,
    ),
    end=st.integers(0, 400),
)
def test_both_forms_find_the_same(values: list[bytes], end: int) -> None:
    data = b"".join([PREFIX + piece(value, b"1") for value in values])
    data = data[: len(data) - end]
    expected = cut_all(additions.cut, data)
    for _ in range(3):
        assert cut_all(additions_plain.cut, data) == expected


@pytest.mark.parametrize("fields", [1, 2, 4, 40, 60])
@pytest.mark.parametrize("name", [b"XADD", b"xadd", b"xaDD"])
def test_a_look_at_few_bytes_tells_what_may_be_an_xadd(fields: int, name: bytes) -> None:
    assert additions.may_begin(pack(name, b"k", b"*", *[b"f", b"v"] * fields), 0)


@pytest.mark.parametrize("name", [b"XREADGROUP", b"XACK", b"SET", b"PING", b"XCLAIM", b"XPENDING"])
def test_a_look_at_few_bytes_tells_what_is_none(name: bytes) -> None:
    assert not additions.may_begin(b"\n" + pack(name, b"key", b"value", b"other"), 1)
