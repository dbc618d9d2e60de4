"""Stream commands in shapes that the conversations with real servers do not have."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.direct import Direct, DirectClient


def test_xadd_remembers_trimming_options_but_not_what_is_added(client: DirectClient) -> None:
    for name in ("a", "b", "c"):
        assert client.send("XADD", "k", "MAXLEN", "2", "*", name, "*") is not None
    for name in ("d", "e", "f"):
        assert client.send("XADD", "k", "MAXLEN", "=", "3", "*", name, "*") is not None
    assert client.send("XLEN", "k") == b":3\r\n"
    reply = client.send("XRANGE", "k", "-", "+")
    assert reply is not None
    assert reply.count(b"$1\r\n*\r\n") == 3
    assert all(b"$1\r\n%b\r\n" % name in reply for name in (b"d", b"e", b"f"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("MAXLEN x *", b"-ERR value is not an integer or out of range\r\n"),
        ("MAXLEN ~ -1 *", b"-ERR The MAXLEN argument must be >= 0.\r\n"),
        ("MINID x *", b"-ERR Invalid stream ID specified as stream command argument\r\n"),
        ("MAXLEN 5 LIMIT *", b"-ERR value is not an integer or out of range\r\n"),
    ],
)
def test_xadd_refuses_bad_trimming_options_each_time(
    client: DirectClient, words: str, error: bytes
) -> None:
    for _ in range(2):
        assert client.send("XADD", "k", *words.split(), "a", "b") == error
    assert client.send("EXISTS", "k") == b":0\r\n"


def test_xadd_takes_a_policy_once(client: DirectClient) -> None:
    error = b"-ERR syntax error\r\n"
    assert client.send("XADD", "k", "ACKED", "KEEPREF", "*", "a", "b") == error
    assert client.send("XTRIM", "k", "MAXLEN", "1", "ACKED", "DELREF") == error


def test_delref_takes_references_to_entries_that_were_deleted_before(client: DirectClient) -> None:
    def pending() -> list[bytes]:
        return [line[0] for line in client.ask("XPENDING", "k", "g", "-", "+", 10)]

    for number in range(1, 6):
        client.send("XADD", "k", f"{number}-0", "f", "v")
    client.send("XGROUP", "CREATE", "k", "g", 0)
    client.send("XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">")
    client.send("XDEL", "k", "1-0")
    assert client.send("XTRIM", "k", "MAXLEN", "4", "DELREF") == b":0\r\n"
    assert pending() == [b"2-0", b"3-0", b"4-0", b"5-0"]
    client.send("XDEL", "k", "2-0", "4-0")
    assert (
        client.send("XADD", "k", "MAXLEN", "=", "9", "DELREF", "6-0", "f", "v") == b"$3\r\n6-0\r\n"
    )
    assert pending() == [b"3-0", b"4-0", b"5-0"]
    assert client.send("XTRIM", "k", "MINID", "~", "4-0", "DELREF") == b":0\r\n"
    assert pending() == [b"3-0", b"4-0", b"5-0"]
    assert client.send("XTRIM", "k", "MINID", "5-0", "DELREF") == b":1\r\n"
    assert pending() == [b"5-0"]


def test_xadd_takes_idmp_without_its_ids_for_an_id(client: DirectClient) -> None:
    error = b"-ERR Invalid stream ID specified as stream command argument\r\n"
    assert client.send("XADD", "k", "NOMKSTREAM", "IDMP", "p") == error


def test_xreadgroup_remembers_the_options_of_the_same_request_alone(client: DirectClient) -> None:
    def read(*words: str) -> list[str]:
        """The IDs of the entries in the reply."""
        reply = client.send(*words)
        assert reply is not None
        return [found.decode() for found in re.findall(rb"\d+-1(?=\r)", reply)]

    client.send("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    for number in range(1, 7):
        client.send("XADD", "k", f"{number}-1", "f", "v")
    one = ["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "k", ">"]
    assert [read(*one), read(*one)] == [["1-1"], ["2-1"]]
    assert read(*one[:5], "2", *one[6:]) == ["3-1", "4-1"]
    assert read(*one[:-1], "0") == ["1-1"]
    long = ("XREADGROUP", "GROUP", "g", "c" * 2000, *one[4:])
    assert [read(*long), read(*long)] == [["5-1"], ["6-1"]]
    for _ in range(2):
        error = b"-ERR value is not an integer or out of range\r\n"
        assert client.send(*one[:5], "x", *one[6:]) == error


def test_xread_refuses_noack_wherever_it_stands(client: DirectClient) -> None:
    error = b"-ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.\r\n"
    assert client.send("XREAD", "COUNT", "1", "NOACK") == error
    assert client.send("XREAD", "NOACK", "STREAMS", "k", "0") == error


def test_xread_takes_many_streams(client: DirectClient) -> None:
    keys = [f"k{n}" for n in range(20)]
    for key in keys:
        client.send("XADD", key, "1-1", "a", "b")
    reply = client.send("XREAD", "STREAMS", *keys, *["0"] * 20)
    assert reply is not None
    assert reply.startswith(b"*20\r\n*2\r\n$2\r\nk0\r\n*1\r\n*2\r\n$3\r\n1-1\r\n")


def test_maxsize_leaves_entries_of_a_later_stream_undelivered(client: DirectClient) -> None:
    for key in ("one", "two"):
        client.send("XADD", key, "1-1", "a", "b")
        client.send("XGROUP", "CREATE", key, "g", "0")
    read = ("XREADGROUP", "GROUP", "g", "c", "MAXSIZE", "1", "STREAMS", "one", "two", ">", ">")
    entry = b"*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
    assert client.send(*read) == b"*1\r\n*2\r\n$3\r\none\r\n" + entry
    assert client.send("XPENDING", "two", "g") == b"*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n"
    assert client.send(*read) == b"*1\r\n*2\r\n$3\r\ntwo\r\n" + entry


PLACES = st.sampled_from(["0", "1", "1-1", "2-0", "3", "$", "+", ">", "x", "0" * 30])
READS = st.lists(
    st.tuples(st.sampled_from(["", "COUNT 1", "count 1", "NOACK"]), PLACES, PLACES, PLACES),
    min_size=2,
    max_size=6,
)


@given(READS)
@example([("", "0", "0", "0"), ("", "x", "0", "0"), ("", "1", "0", "0"), ("", "1", "0", "x")])
def test_a_read_that_differs_from_the_one_before_is_answered_as_on_a_connection_of_its_own(
    reads: list[tuple[str, str, str, str]],
) -> None:
    server = Direct()
    client = server.client()
    for entry_id in ("1-1", "1-2", "2-0"):
        client.send("XADD", "a", entry_id, "f", "v")
        client.send("XADD", "b", entry_id, "f", "v")
    for options, *places in reads:
        read = ("XREAD", *options.split(), "STREAMS", "a", "b", "none", *places)
        assert client.send(*read) == server.client().send(*read)


def test_which_of_two_mistakes_is_told_does_not_depend_on_the_read_before(
    client: DirectClient,
) -> None:
    client.send("SET", "text", "v")
    for place in ("1", "2"):
        wrong = client.send("XREAD", "STREAMS", "s", "text", "s", place, "0", "0")
        assert wrong is not None
        assert wrong.startswith(b"-WRONGTYPE ")
    assert client.send("XREAD", "STREAMS", "s", "text", "s", "x", "0", "0") == (
        b"-ERR Invalid stream ID specified as stream command argument\r\n"
    )
    assert client.send("XREAD", "STREAMS", "s", "text", "s", "2", "0", "x") == wrong


def test_the_same_read_of_what_is_new_begins_where_the_stream_ends_by_then(
    client: DirectClient,
) -> None:
    read = "XREAD", "BLOCK", 5, "STREAMS", "k", "other", "$", "0"
    for entry_id in ("1-0", "2-0"):
        client.ask("XADD", "k", entry_id, "f", "v")
        assert client.send(*read) is None
        assert client.session.waiter is not None
        client.server.services.blocking.time_out(client.session.waiter)
    assert client.send(*read) is None
    client.server.services.dispatcher.execute(
        client.server.state.new_session(0), [b"XADD", b"k", b"3-0", b"f", b"v"]
    )
    assert client.reply_when_woken == (
        b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    )
