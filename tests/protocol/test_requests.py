"""Requests out of bytes, however they are cut. Redis 8.0.6 closes with the same texts."""

from __future__ import annotations

import contextlib
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.requests import (
    ARGUMENT_OVERHEAD,
    MAX_BULK,
    MAX_QUERY,
    MEMORABLE,
    MEMORABLE_OF_MANY,
    PIECE,
    STEPS,
    ProtocolError,
    QueryTooLong,
    Request,
    RequestParser,
)
from tests.support.wire import pack

PING = b"*1\r\n$4\r\nPING\r\n"
PREFIX = "ERR Protocol error: "


def drain(parser: RequestParser) -> list[Request]:
    requests: list[Request] = []
    while parser.ready:
        requests += parser.batch()
    return requests


def outcome(pieces: list[bytes]) -> tuple[list[Request], str | None]:
    """The requests in the pieces, and the error behind them."""
    parser, requests = RequestParser(), []
    try:
        for piece in pieces:
            parser.feed(piece)
            while parser.ready:
                requests += parser.batch()
    except ProtocolError as error:
        return requests, error.text
    return requests, None


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


AGGREGATES = [b"*", b"%", b"~", b">", b"|"]

ACCEPTED: list[tuple[bytes, list[Request]]] = [
    (PING, [[b"PING"]]),
    (PING * 3, [[b"PING"]] * 3),
    (pack(b"SET", b"k", b"a\r\n$b\0"), [[b"SET", b"k", b"a\r\n$b\0"]]),
    (pack(b""), [[b""]]),
    (pack(b"XRANGE", b"k", b"-", b"+"), [[b"XRANGE", b"k", b"-", b"+"]]),
    (pack(b">", b"(1", b"=", b"~", b"|#%"), [[b">", b"(1", b"=", b"~", b"|#%"]]),
    (b"*0\r\n" + PING + b"*0\r\n", [[b"PING"]]),
    (b"*-1\r\n" + PING, [[b"PING"]]),
    (b"*-9223372036854775808\r\n" + PING, [[b"PING"]]),
    (b"*1\r\n$4\r\nPINGXY" + PING, [[b"PING"], [b"PING"]]),
    (b"*1\rX$4\rXPING\rX", [[b"PING"]]),
    (b"PING\n", [[b"PING"]]),
    (b"\r\n\n  \nPING 'a b'\r\n", [[b"PING", b"a b"]]),
    (b"PING\r\r\n", [[b"PING"]]),
    (b"PING\n" + PING + b"PING\r\n" + PING, [[b"PING"]] * 4),
    (b"$4\r\nPING\r\n", [[b"$4"], [b"PING"]]),
    (b"%1\r\n", [[b"%1"]]),
    (b">1\r\n" + PING, [[b">1"], [b"PING"]]),
    (PING + b"~1\r\n" + PING, [[b"PING"], [b"~1"], [b"PING"]]),
    (PING + b"|1\r\n" + PING, [[b"PING"], [b"|1"], [b"PING"]]),
    (PING + b":0\r\n" + PING, [[b"PING"], [b":0"], [b"PING"]]),
    (PING + b"#f\r\n*0\r\n" + PING, [[b"PING"], [b"#f"], [b"PING"]]),
    (PING + b"+OK\r\n" + PING, [[b"PING"], [b"+OK"], [b"PING"]]),
    (PING + b"$0\r\n\r\n" + PING, [[b"PING"], [b"$0"], [b"PING"]]),
    (PING + b"{}\r\n" + PING, [[b"PING"], [b"{}"], [b"PING"]]),
    (pack(b"ECHO", b"$1\r\n>\r\n"), [[b"ECHO", b"$1\r\n>\r\n"]]),
    (pack(b"ECHO", b"a > b"), [[b"ECHO", b"a > b"]]),
    (pack(b"ECHO", b"a=b"), [[b"ECHO", b"a=b"]]),
    (pack(*[b"%20\r\n"] * 3), [[b"%20\r\n"] * 3]),
    (pack(*[b"*1", b"*22", b"\r\n"] * 9), [[b"*1", b"*22", b"\r\n"] * 9]),
    (b"*9\r\n" + b"$1\rXaYY" * 9, [[b"a"] * 9]),
    (PING + b"_\r\n" + PING, [[b"PING"], [b"_"], [b"PING"]]),
    (pack(*[b"x"] * 1000), [[b"x"] * 1000]),
    (pack(b"ECHO", b"*123456789012345"), [[b"ECHO", b"*123456789012345"]]),
]


@pytest.mark.parametrize(("data", "requests"), ACCEPTED)
def test_requests_come_out_whole_byte_by_byte_and_with_a_request_behind(
    data: bytes, requests: list[Request]
) -> None:
    assert outcome([data]) == (requests, None)
    assert outcome(bytewise(data)) == (requests, None)
    assert outcome([data + PING]) == ([*requests, [b"PING"]], None)
    assert outcome([data, PING]) == ([*requests, [b"PING"]], None)


REFUSED: list[tuple[bytes, str]] = [
    (b"*x\r\n", "invalid multibulk length"),
    (b"*\r\n", "invalid multibulk length"),
    (b"*+1\r\n", "invalid multibulk length"),
    (b"* 1\r\n", "invalid multibulk length"),
    (b"*01\r\n", "invalid multibulk length"),
    (b"*-0\r\n", "invalid multibulk length"),
    (b"*2147483648\r\n", "invalid multibulk length"),
    (b"*-9223372036854775809\r\n", "invalid multibulk length"),
    (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
    (b"*1\r\n\r\n", "expected '$', got '\r'"),
    (b"*1\r\n\n\r\n", "expected '$', got '\n'"),
    (b"*1\r\n\xff\r\n", "expected '$', got '\udcff'"),
    (b"*1\r\n+PING\r\n", "expected '$', got '+'"),
    (b"*2\r\n$2\r\n$1\r\n+\r\n", "expected '$', got '+'"),
    (b"*1\r\n+\r\n", "expected '$', got '+'"),
    (b"*1\r\n=8\r\ntxt:PING\r\n", "expected '$', got '='"),
    (b"*1\r\n(123\r\n", "expected '$', got '('"),
    (b"*1\r\n:1\r\n", "expected '$', got ':'"),
    (b"*1\r\n,1.5\r\n", "expected '$', got ','"),
    (b"*1\r\n#t\r\n", "expected '$', got '#'"),
    (b"*1\r\n_\r\n", "expected '$', got '_'"),
    (b"*1\r\n-ERR\r\n", "expected '$', got '-'"),
    (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
    (b"*1\r\n*0\r\n", "expected '$', got '*'"),
    (b"*1\r\n%1\r\n$1\r\na\r\n$1\r\nb\r\n", "expected '$', got '%'"),
    (b"*2\r\n%1\r\n", "expected '$', got '%'"),
    (b"*2\r\n$1\r\na\r\n%1\r\n*0\r\n", "expected '$', got '%'"),
    (b"*2\r\n$1\r\na\r\n>250000000\r\n", "expected '$', got '>'"),
    (b"*1\r\n(" + b"1" * 5000 + b"\r\n", "expected '$', got '('"),
    (b"*1\r\n~1\r\n$1\r\na\r\n", "expected '$', got '~'"),
    (b"*1\r\n>1\r\n$1\r\na\r\n", "expected '$', got '>'"),
    (b"*1\r\n|1\r\n+a\r\n+b\r\n$1\r\na\r\n", "expected '$', got '|'"),
    (b"*2\r\n$1\r\naXX+b\r\n", "expected '$', got '+'"),
    (b"*2\r\n$6\r\nab\r\n$4\r\n+foo\r\n", "expected '$', got '+'"),
    (b"*1\r\n$-1\r\n", "invalid bulk length"),
    (b"*1\r\n$-2\r\n", "invalid bulk length"),
    (b"*1\r\n$x\r\n", "invalid bulk length"),
    (b"*1\r\n$\r\n", "invalid bulk length"),
    (b"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"),
    (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
    (b"*1\r\n$4 \r\nPING\r\n", "invalid bulk length"),
    (b"*1\r\n$536870913\r\n", "invalid bulk length"),
    (b"*1\r\n$600000000\r\n", "invalid bulk length"),
    (b'SET "a\r\n', "unbalanced quotes in request"),
    (b"SET 'a'b\n", "unbalanced quotes in request"),
]


@pytest.mark.parametrize(("data", "text"), REFUSED)
def test_what_is_no_request_ends_in_its_error_behind_the_requests_before(
    data: bytes, text: str
) -> None:
    assert outcome([data]) == ([], PREFIX + text)
    assert outcome(bytewise(data)) == ([], PREFIX + text)
    assert outcome([PING + data + PING]) == ([[b"PING"]], PREFIX + text)
    assert outcome([PING, PING + data]) == ([[b"PING"], [b"PING"]], PREFIX + text)


def test_an_error_is_raised_again_and_nothing_after_it_is_parsed() -> None:
    parser = RequestParser()
    parser.feed(b"*x\r\n")
    for _ in range(2):
        with pytest.raises(ProtocolError, match="invalid multibulk length"):
            parser.batch()
        parser.feed(PING)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (b"*", "too big mbulk count string"),
        (b"*1\r\n$", "too big bulk count string"),
        (b"", "too big inline request"),
    ],
)
def test_a_line_may_have_64_kib_before_its_end_is_there(start: bytes, text: str) -> None:
    line_start = start.rpartition(b"\n")[2]
    filling = b"1" * (64 * 1024 - len(line_start))
    assert outcome([start + filling]) == ([], None)
    assert outcome([start + filling + b"1"]) == ([], PREFIX + text)
    assert outcome([start + filling, b"1"]) == ([], PREFIX + text)


def test_a_longer_inline_command_is_taken_when_its_end_comes_with_it() -> None:
    assert outcome([b"A" * 70_000 + b"\n"]) == ([[b"A" * 70_000]], None)


@pytest.mark.parametrize("data", [b"PI\0NG\r\n", b'ECHO "a\0"\n', b"*1\0\r\n", b"*1\r\n\0\r\n"])
def test_a_line_with_a_nul_has_no_end(data: bytes) -> None:
    assert outcome([data + PING]) == ([], None)
    assert outcome([data + b"x" * 70_000])[1] in (
        PREFIX + "too big inline request",
        PREFIX + "too big mbulk count string",
        PREFIX + "too big bulk count string",
    )


# --- sizes -----------------------------------------------------------------------------------


def test_a_value_may_be_as_long_as_the_limit_and_no_longer() -> None:
    for pieces in ([pack(b"x" * 10)], bytewise(pack(b"x" * 10))):
        parser = RequestParser(max_bulk=10)
        requests: list[Request] = []
        for piece in pieces:
            parser.feed(piece)
            requests += drain(parser)
        assert requests == [[b"x" * 10]]
    parser = RequestParser(max_bulk=10)
    parser.feed(pack(b"x" * 11))
    with pytest.raises(ProtocolError, match="invalid bulk length"):
        parser.batch()


def test_the_limit_may_change_between_requests() -> None:
    parser = RequestParser(max_bulk=10)
    parser.limit(11, MAX_QUERY)
    parser.feed(pack(b"x" * 11))
    assert drain(parser) == [[b"x" * 11]]


@pytest.mark.parametrize(
    "data",
    [
        b"*1000000\r\n",
        b"*2147483647\r\n",
        PING + b"*99999999\r\n",
        b"*1\r\n$1\r\naXX*100000000\r\n",
        b"*9999\r\n" * 9000,
        b"*9999\r\n$1\r\na\r\n" * 4000,
        b"*99\r\n" * 10_000,
        b"*9\r\n" * 16_000,
        *[b"*2\r\n$1\r\na\r\n" + sign + b"25000000\r\n" for sign in AGGREGATES],
        *[PING + sign + b"25000000\r\n" for sign in AGGREGATES],
        *[PING + b"*1\r\n$1\r\naXX" + sign + b"25000000\r\n" for sign in AGGREGATES],
        *[b"*1\r\n" * 9 + sign + b"+025000000\r\n" for sign in AGGREGATES],
        *[b"*1\r\n" * 9 + sign + b"-25000000\r\n" for sign in AGGREGATES],
        b"*1\r\n" * 16_000,
    ],
)
def test_announced_elements_take_no_memory_before_they_are_there(data: bytes) -> None:
    tracemalloc.start()
    try:
        outcome([data])
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024**2
    finally:
        tracemalloc.stop()


# --- steps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("argument", [b"a", b"\r\n", b"a" * 1000])
def test_a_request_of_many_arguments_is_read_in_steps_and_each_argument_once(
    argument: bytes,
) -> None:
    count = 20_000
    data = pack(*[argument] * count)
    parser = RequestParser()
    parser.feed(data)
    requests: list[Request] = []
    left = [parser.held]
    while parser.ready:
        requests += parser.batch()
        left.append(parser.held)
        assert left[-2] - left[-1] <= 2 * PIECE
    assert requests == [[argument] * count]
    assert len(left) <= len(data) // PIECE + count // STEPS + 3
    assert parser.held == parser.memory == parser.argument_bytes == 0


def test_what_has_been_read_of_a_request_is_counted() -> None:
    parser = RequestParser()
    parser.feed(b"*30\r\n" + b"$3\r\nabc\r\n" * 20 + b"$4\r\nab")
    assert drain(parser) == []
    assert parser.buffer
    assert (parser.argument_bytes, parser.held) == (60, 2)
    assert parser.memory == 62 + 20 * ARGUMENT_OVERHEAD


@pytest.mark.parametrize("filler", [b"\r\n", b"*0\r\n", b"PING\r\n", b"*1\r\n$1\r\naXX"])
def test_small_requests_and_what_is_none_are_read_in_steps(filler: bytes) -> None:
    parser = RequestParser()
    parser.feed(b"\r\n" + filler * 5000)
    batches = 0
    requests = 0
    while parser.ready:
        found = len(parser.batch())
        assert found <= STEPS
        requests += found
        batches += 1
    assert batches >= 5000 // STEPS
    assert requests == (0 if filler in (b"\r\n", b"*0\r\n") else 5000)


def test_a_long_line_is_a_step_of_its_own() -> None:
    parser = RequestParser()
    parser.feed((b"ECHO " + b"x" * 60_000 + b"\n") * 2)
    assert len(parser.batch()) == 1
    assert len(drain(parser)) == 1


def test_small_reads_that_wait_are_kept_together() -> None:
    parser = RequestParser()
    for at in range(len(PING)):
        parser.feed(PING[at : at + 1])
    assert parser.held == len(PING)
    assert drain(parser) == [[b"PING"]]


@pytest.mark.parametrize("cut", range(1, len(pack(b"XADD", b"s", b"*", b"field", b"value"))))
def test_one_batch_has_all_requests_before_the_one_that_the_end_of_a_read_cuts(cut: int) -> None:
    request = pack(b"XADD", b"s", b"*", b"field", b"value")
    many = 2 * STEPS
    parser = RequestParser()
    parser.feed(request * many + request[:cut])
    assert parser.batch() == [[b"XADD", b"s", b"*", b"field", b"value"]] * many
    assert drain(parser) == []
    parser.feed(request[cut:])
    assert drain(parser) == [[b"XADD", b"s", b"*", b"field", b"value"]]


def test_a_value_longer_than_the_query_buffer_may_be_ends_in_its_own_error() -> None:
    parser = RequestParser()
    parser.limit(MAX_BULK, 200_000)
    values = [b"x" * 199_998, b"x" * 199_999]
    parser.feed(PING + pack(b"ECHO", values[0]) + pack(b"ECHO", values[1]))
    requests: list[Request] = []
    with contextlib.suppress(QueryTooLong):
        for _ in range(99):
            requests += parser.batch()
    assert requests == [[b"PING"], [b"ECHO", values[0]]]
    with pytest.raises(QueryTooLong):
        parser.batch()


def test_a_long_value_in_small_pieces_is_put_together_once() -> None:
    value = bytes(range(256)) * 4096
    data = pack(b"SET", b"k", value)
    parser = RequestParser()
    for at in range(0, len(data) - 1000, 1000):
        parser.feed(data[at : at + 1000])
        assert parser.batch() == []
    assert len(value) - 1000 < parser.held <= len(value)
    parser.feed(data[-(len(data) % 1000 or 1000) :])
    assert drain(parser) == [[b"SET", b"k", value]]
    assert parser.held == 0


def test_held_counts_what_is_in_no_finished_request() -> None:
    parser = RequestParser()
    parser.feed(PING)
    parser.feed(PING[:3])
    assert parser.held == len(PING) + 3
    assert parser.batch() == [[b"PING"]]
    assert parser.held == 3
    assert parser.batch() == []


# --- clients that have not authenticated -----------------------------------------------------


def test_a_restricted_client_gets_one_request_at_a_time() -> None:
    parser = RequestParser()
    for _ in range(2):
        parser.restricted = True
    assert parser.restricted
    parser.feed(PING + pack(b"AUTH", b"x"))
    assert parser.batch() == [[b"PING"]]
    assert parser.batch() == [[b"AUTH", b"x"]]
    assert parser.batch() == []


def test_a_restriction_that_is_lifted_does_not_hold_for_what_was_sent_along() -> None:
    parser = RequestParser()
    parser.restricted = True
    parser.feed(pack(b"AUTH", b"x") + pack(*[b"a"] * 20) + PING)
    assert parser.batch() == [[b"AUTH", b"x"]]
    parser.restricted = False
    assert drain(parser) == [[b"a"] * 20, [b"PING"]]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*11\r\n", "unauthenticated multibulk length"),
        (b"*1\r\n$16385\r\n", "unauthenticated bulk length"),
    ],
)
def test_a_restricted_client_may_not_send_much(data: bytes, text: str) -> None:
    parser = RequestParser()
    parser.restricted = True
    parser.feed(data)
    with pytest.raises(ProtocolError) as raised:
        parser.batch()
    assert raised.value.text == PREFIX + text


def test_a_restricted_client_may_send_up_to_its_limits() -> None:
    parser = RequestParser()
    parser.restricted = True
    parser.feed(pack(*[b"a"] * 9, b"x" * 16384))
    assert parser.batch() == [[b"a"] * 9 + [b"x" * 16384]]
    parser.feed(b"PING 1 2 3 4 5 6 7 8 9 10 11\r\n")
    assert len(parser.batch()[0]) == 12


# --- any pipeline, cut anywhere --------------------------------------------------------------

WORDS = st.binary(max_size=12) | st.sampled_from([b"+", b">", b"(1", b"$", b"*3", b"\r\n$1", b"=7"])
WHOLE = st.lists(WORDS, min_size=1, max_size=5).map(lambda words: pack(*words))
ODD = st.sampled_from(
    [
        b"*0\r\n",
        b"*-1\r\n",
        b"PING\r\n",
        b"\r\n",
        b"*1\r\n$1\r\naXX",
        b"#f\r\n",
        b":0\r\n",
        b">0\r\n",
    ]
)
BROKEN = st.sampled_from(
    [
        *(data for data, _ in REFUSED),
        b"*2\r\n$1\r\na",
        b"*3\r\n",
        b"*1\r\n$5\r\nab",
        b"+a\r\n",
        b"_\r\n",
    ]
)


MANY = st.builds(
    lambda count, word: pack(*[word] * count),
    st.integers(10, 120),
    st.sampled_from([b"a", b"", b"\r\n", b"x" * 100]),
)


@given(st.data())
def test_a_pipeline_gives_the_same_requests_wherever_it_is_cut(data: st.DataObject) -> None:
    parts = data.draw(st.lists(WHOLE | ODD | MANY, max_size=8))
    stream = b"".join(parts) + data.draw(st.just(b"") | BROKEN) + data.draw(st.just(b"") | WHOLE)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
    pieces = [stream[start:end] for start, end in pairwise(sorted({0, *cuts, len(stream)}))]
    # Nothing is proved of single bytes: they are read by the rules.
    assert outcome(pieces) == outcome(bytewise(stream))


@pytest.mark.parametrize("cut", range(1, 230))
def test_a_pipeline_may_be_cut_at_every_place(cut: int) -> None:
    words = [[b"XADD", b"s", b"*", b"f", b"x" * 101], [b"PING"], [b"DEL", *[b"k"] * 5], [b""]]
    stream = b"".join(pack(*request) for request in words) + pack(b"ECHO", b"\r\n$1")
    assert outcome([stream[:cut], stream[cut:]]) == ([*words, [b"ECHO", b"\r\n$1"]], None)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_any_bytes_give_what_the_rules_say(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert outcome(pieces) == outcome(bytewise(stream))


@given(st.text(alphabet="*$+=(>~|%#_:,-01259\r\naX", max_size=40).map(str.encode))
def test_anything_that_looks_like_resp_gives_what_the_rules_say(text: bytes) -> None:
    stream = PING + b"*2\r\n$1\r\n" + text
    assert outcome([stream]) == outcome(bytewise(stream))


# --- what is remembered -----------------------------------------------------------------------


def test_the_last_short_read_is_remembered() -> None:
    parser = RequestParser()
    for request in ([b"1"], [b"1"], [b"2"], [b"1"], [b"v" * MEMORABLE], [b"v" * MEMORABLE]):
        parser.feed(pack(*request))
        assert drain(parser) == [request]
        assert (parser.held, parser.ready) == (0, False)
    parser.feed(pack(b"1") + pack(b"2")[:5])
    assert drain(parser) == [[b"1"]]


def test_a_long_request_of_many_arguments_is_remembered() -> None:
    parser = RequestParser()
    many = [b"XREAD", b"STREAMS", *[b"stream:%d" % number for number in range(200)]]
    given = []
    for _ in range(4):
        parser.feed(pack(*many))
        given += parser.batch()
    assert given == [many] * 4
    assert given[1] is given[2] is given[3]


@pytest.mark.parametrize(
    "requests",
    [
        [[b"SET", b"k", b"v" * MEMORABLE]],
        [[b"PING"]] * MEMORABLE,
        [[b"XREAD", *[b"stream:%d" % number for number in range(MEMORABLE_OF_MANY // 12)]]],
    ],
    ids=["a long value", "many requests", "very many arguments"],
)
def test_what_takes_much_memory_is_not_kept(requests: list[list[bytes]]) -> None:
    parser = RequestParser()
    for _ in range(3):
        parser.feed(b"".join(pack(*request) for request in requests))
        assert drain(parser) == requests
    assert parser._known == b""


def test_a_read_that_is_remembered_still_has_to_keep_the_limit() -> None:
    parser = RequestParser()
    parser.feed(pack(b"12345"))
    assert drain(parser) == [[b"12345"]]
    parser.limit(4, MAX_QUERY)
    parser.feed(pack(b"12345"))
    with pytest.raises(ProtocolError):
        drain(parser)


# --- looking at requests before they are parsed ----------------------------------------------


def shown(parser: RequestParser) -> bytes:
    """What can be looked at."""
    return parser.buffer[parser.position :] if parser.peek(1) else b""


def test_what_has_been_fed_can_be_looked_at_and_passed_over() -> None:
    parser = RequestParser()
    assert not parser.peek(0)
    parser.feed(pack(b"one") + pack(b"two"))
    both = pack(b"one") + pack(b"two")
    assert shown(parser) == both
    assert parser.peek(len(both))
    assert not parser.peek(len(both) + 1)
    parser.skip(len(pack(b"one")))
    assert shown(parser) == pack(b"two")
    assert drain(parser) == [[b"two"]]
    assert shown(parser) == b""


def test_what_is_passed_over_makes_room_for_the_rest_of_a_long_read() -> None:
    parser = RequestParser()
    word = b"x" * (PIECE // 4 - len(b"*1\r\n$16370\r\n\r\n"))
    parser.feed(pack(word) * 5)
    assert shown(parser) == pack(word) * 4
    parser.skip(PIECE)
    assert shown(parser) == pack(word)
    assert drain(parser) == [[word]]


def test_a_request_that_was_cut_is_looked_at_with_what_comes_next() -> None:
    parser = RequestParser()
    request = pack(b"XADD", b"value")
    parser.feed(pack(b"one") + request[:6])
    assert shown(parser)
    parser.skip(len(pack(b"one")))
    assert drain(parser) == []
    assert parser.held == len(b"$4")
    parser.feed(request[6:] + request[:9])
    assert shown(parser) == request + request[:9]
    parser.skip(len(request))
    assert drain(parser) == []
    parser.feed(request[9:])
    assert drain(parser) == [[b"XADD", b"value"]]


def test_a_request_that_was_cut_twice_is_not_looked_at_again() -> None:
    parser = RequestParser()
    request = pack(b"XADD", b"value")
    parser.feed(pack(b"one") + request[:9])
    assert drain(parser) == [[b"one"]]
    parser.feed(request[9:11])
    assert shown(parser) == request[:11]
    assert drain(parser) == []
    parser.feed(request[11:])
    assert shown(parser) == b""
    assert drain(parser) == [[b"XADD", b"value"]]


def test_what_goes_beyond_a_limit_or_a_restriction_is_not_looked_at() -> None:
    parser = RequestParser(max_bulk=15)
    parser.feed(pack(b"one"))
    assert shown(parser) == pack(b"one")
    parser.limit(MAX_BULK, 5)
    assert shown(parser) == b""
    parser.limit(5, MAX_QUERY)
    assert shown(parser) == b""
    assert drain(parser) == [[b"one"]]
    for restricted in (RequestParser(), RequestParser()):
        restricted.restricted = True
        restricted.feed(pack(b"one") + pack(b"two"))
        assert shown(restricted) == b""
        assert restricted.batch() == [[b"one"]]
        assert shown(restricted) == b""


def test_nothing_is_looked_at_behind_an_error() -> None:
    parser = RequestParser()
    parser.feed(b"*x\r\n" + PING)
    with pytest.raises(ProtocolError):
        drain(parser)
    assert shown(parser) == b""
    parser.feed(PING)
    assert shown(parser) == b""
