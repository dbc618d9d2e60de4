"""Reply values in both protocols, byte for byte."""

from __future__ import annotations

import pytest

from protocol.encoder import array, bulk, encode, error_line
from protocol.replies import (
    EMPTY_ARRAY,
    NO_REPLY,
    NULL_ARRAY,
    OK,
    QUEUED,
    Bulk,
    Double,
    Encoded,
    Failure,
    Many,
    Map,
    Pairs,
    Push,
    Reply,
    Set,
    Simple,
    Verbatim,
)

ALIKE: list[tuple[Reply, bytes]] = [
    (OK, b"+OK\r\n"),
    (QUEUED, b"+QUEUED\r\n"),
    (EMPTY_ARRAY, b"*0\r\n"),
    (NO_REPLY, b""),
    (Encoded(b":7\r\n"), b":7\r\n"),
    (0, b":0\r\n"),
    (-(2**63), b":-9223372036854775808\r\n"),
    ("", b"$0\r\n\r\n"),
    ("h\u00e9", b"$3\r\nh\xc3\xa9\r\n"),
    ("\udcff", b"$1\r\n\xff\r\n"),
    (Bulk(b"a\r\nb\0"), b"$5\r\na\r\nb\0\r\n"),
    (Simple("PONG"), b"+PONG\r\n"),
    (Failure("ERR no"), b"-ERR no\r\n"),
    ([], b"*0\r\n"),
    ([1, "a", Bulk(b"b"), [Simple("c")]], b"*4\r\n:1\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n+c\r\n"),
    ([Encoded(b":1\r\n")], b"*1\r\n:1\r\n"),
    (Many([1, Simple("a")]), b":1\r\n+a\r\n"),
    (Many([]), b""),
]


@pytest.mark.parametrize(("reply", "wire"), ALIKE)
@pytest.mark.parametrize("resp3", [False, True])
def test_most_replies_read_the_same_in_both_protocols(
    reply: Reply, wire: bytes, resp3: bool
) -> None:
    assert encode(reply, resp3) == wire


@pytest.mark.parametrize(
    ("reply", "resp2", "resp3"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
        (
            Map([("a", 1), ("b", [])]),
            b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n",
            b"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n",
        ),
        (Map([]), b"*0\r\n", b"%0\r\n"),
        (
            Pairs([("k", [1]), ("k", [])]),
            b"*2\r\n*2\r\n$1\r\nk\r\n*1\r\n:1\r\n*2\r\n$1\r\nk\r\n*0\r\n",
            b"%2\r\n$1\r\nk\r\n*1\r\n:1\r\n$1\r\nk\r\n*0\r\n",
        ),
        (Set([1, 2]), b"*2\r\n:1\r\n:2\r\n", b"~2\r\n:1\r\n:2\r\n"),
        (Push(["m", None]), b"*2\r\n$1\r\nm\r\n$-1\r\n", b">2\r\n$1\r\nm\r\n_\r\n"),
        (Double(b"-1.5"), b"$4\r\n-1.5\r\n", b",-1.5\r\n"),
        (Verbatim(b"a\nb"), b"$3\r\na\nb\r\n", b"=7\r\ntxt:a\nb\r\n"),
        (
            [Map([(None, Set([]))])],
            b"*1\r\n*2\r\n$-1\r\n*0\r\n",
            b"*1\r\n%1\r\n_\r\n~0\r\n",
        ),
    ],
)
def test_replies_that_differ_between_the_protocols(
    reply: Reply, resp2: bytes, resp3: bytes
) -> None:
    assert encode(reply, False) == resp2
    assert encode(reply, True) == resp3


def test_an_error_stays_on_its_line_and_keeps_every_other_byte() -> None:
    assert error_line("ERR a\r\nb\udcff\u00e9") == b"-ERR a  b\xff\xc3\xa9\r\n"


def test_bulk_and_array_put_encoded_pieces_together() -> None:
    assert array([bulk(b"a"), bulk(b"")]) == b"*2\r\n$1\r\na\r\n$0\r\n\r\n"
    assert array([]) == b"*0\r\n"


def test_containers_take_any_iterable_once() -> None:
    assert encode(Set(iter([1])), True) == b"~1\r\n:1\r\n"
    assert encode(Push(iter([1])), True) == b">1\r\n:1\r\n"
    assert encode(Many(iter([1, 2])), True) == b":1\r\n:2\r\n"
    assert encode(Map(iter([(1, 2)])), True) == b"%1\r\n:1\r\n:2\r\n"
    assert encode(Pairs(iter([(1, 2)])), False) == b"*1\r\n*2\r\n:1\r\n:2\r\n"


def test_names_of_fields_that_are_too_many_to_be_kept_are_written_all_the_same() -> None:
    many = 3000
    reply = Map([(f"name-{number}", number) for number in range(many)])
    wanted = b"".join(
        b"$%d\r\nname-%d\r\n:%d\r\n" % (len(f"name-{number}"), number, number)
        for number in range(many)
    )
    for _ in range(2):
        assert encode(reply, resp3=True) == b"%%%d\r\n" % many + wanted


@pytest.mark.parametrize("length", [0, 256, 257])
def test_what_is_of_any_length_begins_with_it(length: int) -> None:
    assert bulk(b"x" * length) == b"$%d\r\n%b\r\n" % (length, b"x" * length)
    assert array([b":1\r\n"] * length) == b"*%d\r\n" % length + b":1\r\n" * length


@pytest.mark.parametrize("number", [-1, 0, 1023, 1024])
def test_integers_are_lines(number: int) -> None:
    assert encode(number, False) == b":%d\r\n" % number
