"""Plain strings are copied when they are asked for; other keys are named and left out."""

from __future__ import annotations

from tests.migration.pretending import Pretender, Request, refusing
from tests.migration.running import copy
from tests.migration.streams import Client

START = """
    SET plain text
    SET number 007
    SET timed text PXAT 99999999999999
    SET taken new
    SET gone text
"""


def values(client: Client) -> dict[bytes, tuple[bytes, int]]:
    """The content of each string, and when it expires."""
    return {
        key: (client.call("GET", key), client.call("PEXPIRETIME", key))
        for key in client.send("KEYS *")
    }


def test_strings_are_left_out_unless_they_are_asked_for(source: Client, target: Client) -> None:
    source.script(START)
    ended = copy(source.port, target.port)
    assert ended.status == 0
    named = "gone, number, plain, taken, timed"
    assert f"left out: 5 string keys (--strings copies them): {named}\n" in ended.out
    assert target.send("DBSIZE") == 0


def test_strings_are_copied_with_their_expiry(source: Client, target: Client) -> None:
    source.script(START)
    ended = copy(source.port, target.port, "--strings")
    assert (ended.status, "5 strings: 5 copied, 0 there already" in ended.out) == (0, True)
    assert values(target) == values(source)
    ended = copy(source.port, target.port, "--strings")
    assert (ended.status, "5 strings: 0 copied, 5 there already" in ended.out) == (0, True)


def test_another_value_on_the_target_is_refused_or_replaced(source: Client, target: Client) -> None:
    source.script(START)
    target.script("SET taken old\nXADD plain 1-1 f v")
    ended = copy(source.port, target.port, "--strings")
    assert ended.status == 1
    names = "refused, the target has something else there (see --replace): plain, taken\n"
    assert names in ended.out
    assert target.send("GET taken") == b"old"
    assert copy(source.port, target.port, "--strings", "--replace").status == 0
    assert values(target) == values(source)


def test_a_value_that_does_not_stay_as_written_is_told(source: Client, target: Client) -> None:
    source.send("SET k text")

    def forgetful(request: Request) -> bytes | None:
        return b"+OK\r\n" if request[0] == b"SET" else None

    with Pretender(target.port, forgetful) as proxy:
        ended = copy(source.port, proxy.port, "--strings")
    assert (ended.status, "not as they were written: k\n" in ended.out) == (1, True)


def test_strings_that_may_not_be_read_are_told(source: Client, target: Client) -> None:
    source.script("SET k text\nXADD stream 1-1 f v")
    with Pretender(source.port, refusing("GET", "NOPERM not for you")) as proxy:
        ended = copy(proxy.port, target.port, "--strings")
        place = f"the source 127.0.0.1:{proxy.port}/0"
    assert (ended.status, ended.results) == (1, {"stream": "equal"})
    assert f"strings: {place} refuses: NOPERM not for you\n" in ended.out


def test_a_string_that_expires_on_the_way_is_not_copied(source: Client, target: Client) -> None:
    source.send("SET k text")

    def expired(request: Request) -> bytes | None:
        return b"$-1\r\n" if request[0] == b"GET" else None

    with Pretender(source.port, expired) as proxy:
        ended = copy(proxy.port, target.port, "--strings")
    assert (ended.status, "1 string: 0 copied, 1 there already" in ended.out) == (0, True)


def test_a_key_that_becomes_something_else_is_left_out(source: Client, target: Client) -> None:
    source.send("SET k text")
    kinds = iter([b"+string\r\n", b"+list\r\n"])

    def changing(request: Request) -> bytes | None:
        return next(kinds) if request[0] == b"TYPE" else None

    with Pretender(source.port, changing) as proxy:
        ended = copy(proxy.port, target.port, "--strings")
    assert (ended.status, "1 string: 0 copied, 0 there already" in ended.out) == (0, True)


def test_a_key_that_expires_while_keys_are_listed_is_none(source: Client, target: Client) -> None:
    source.call_all([("SET", f"key:{number}", "x") for number in range(1500)])
    with Pretender(source.port, lambda _: None) as proxy:
        ended = copy(proxy.port, target.port)
    assert "left out: 1,500 string keys (--strings copies them): key:0, key:1, key:10," in ended.out
    with Pretender(source.port, lambda r: b"+none\r\n" if r[0] == b"TYPE" else None) as proxy:
        ended = copy(proxy.port, target.port)
    assert ended.out.splitlines()[1:] == ["No streams there to be copied."]


def test_keys_of_other_types_are_named(real: Client, target: Client) -> None:
    real.script("HSET h f v\nRPUSH list:1 a\nRPUSH list:2 a\nXADD k 1-1 f v")
    real.call_all([("SADD", f"set:{number:02}", "a") for number in range(12)])
    ended = copy(real.port, target.port)
    assert (ended.status, ended.results) == (0, {"k": "equal"})
    sets = ", ".join(f"set:{number:02}" for number in range(10))
    assert ended.out.splitlines()[1:4] == [
        "left out: 1 hash key (--values copies them): h",
        "left out: 2 list keys (--values copies them): list:1, list:2",
        f"left out: 12 set keys (--values copies them): {sets} and 2 more",
    ]


def test_values_of_all_types_are_copied_and_compared(real: Client, target: Client) -> None:
    real.script("HSET h f v g w\nRPUSH l b a b\nSADD s x 1 2\nSET t text PXAT 99999999999999")
    real.script("PEXPIREAT h 99999999999999\nXADD k 1-1 f v")
    target.script("SADD s 2 1 x\nRPUSH l other")
    ended = copy(real.port, target.port, "--values")
    assert ended.status == 1
    assert "4 values: 2 copied, 1 there already" in ended.out
    assert "refused, the target has something else there (see --replace): l\n" in ended.out
    assert copy(real.port, target.port, "--values", "--replace").status == 0
    assert target.send("LRANGE l 0 -1") == [b"b", b"a", b"b"]
    assert target.send("HGETALL h") == [b"f", b"v", b"g", b"w"]
    assert target.send("PEXPIRETIME h") == 99999999999999
