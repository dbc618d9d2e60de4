"""DEBUG FAULT: how faults are described, listed and cleared. What they do to connections is in
tests/server/net/test_intercepted.py."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.wire import bulk

ACTIONS = (
    "ERROR text, DELAY ms, CLOSE, RESET, CUT bytes, DROP, NOREPLY, HOLD,"
    " LOADING, READONLY, OOM, NOGROUP, BUSY, MOVED, MASTERDOWN"
)
MISSING = f"the action is missing: one of {ACTIONS}"
UNKNOWN = "unknown subcommand or wrong number of arguments for 'FAULT'. Try DEBUG HELP."


def neither(word: str) -> str:
    options = "KEY, CLIENT, USER, AFTER, TIMES, PROBABILITY, SEED"
    return f"'{word}' is neither an option ({options}) nor an action ({ACTIONS})"


def fault(client: DirectClient, line: str) -> bytes:
    reply = client.send("DEBUG", "FAULT", *line.split())
    assert reply is not None
    return reply


def described(resp3: bool, identity: int, line: str, matched: int, struck: int) -> bytes:
    words = line.split()
    return b"".join(
        [
            b"%4\r\n" if resp3 else b"*8\r\n",
            bulk("id") + b":%d\r\n" % identity,
            bulk("words") + b"*%d\r\n" % len(words) + b"".join(map(bulk, words)),
            bulk("matched") + b":%d\r\n" % matched,
            bulk("struck") + b":%d\r\n" % struck,
        ]
    )


@pytest.mark.parametrize("resp3", [False, True])
def test_faults_are_listed_with_the_words_they_were_added_with(direct: Direct, resp3: bool) -> None:
    client = direct.client(resp3)
    one = "xadd key order:* Client w* AFTER 2 TIMES 3 PROBABILITY 0.5 SEED 7 DELAY 250"
    assert fault(client, f"ADD {one}") == b":1\r\n"
    assert fault(client, "ADD * noreply") == b":2\r\n"
    assert fault(client, "LIST") == b"*2\r\n" + described(resp3, 1, one, 0, 0) + described(
        resp3, 2, "* noreply", 0, 0
    )
    assert fault(client, "CLEAR 1") == b":1\r\n"
    assert fault(client, "CLEAR 1") == b":0\r\n"
    assert fault(client, "LIST") == b"*1\r\n" + described(resp3, 2, "* noreply", 0, 0)
    assert fault(client, "CLEAR") == b":1\r\n"
    assert fault(client, "LIST") == b"*0\r\n"
    assert fault(client, "ADD XGROUP|CREATE RESET") == b":3\r\n"


def test_a_text_is_one_word_and_may_have_blanks(direct: Direct, client: DirectClient) -> None:
    text = "TRYAGAIN not now"
    assert client.send("DEBUG", "FAULT", "ADD", "PING", "ERROR", text) == b":1\r\n"
    (added,) = direct.server.services.interception.rules.faults
    assert added.action.text == text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", UNKNOWN),
        ("REMOVE", UNKNOWN),
        ("ADD", UNKNOWN),
        ("LIST all", UNKNOWN),
        ("CLEAR 1 2", UNKNOWN),
        ("CLEAR one", "value is not an integer or out of range"),
        ("CLEAR -1", "value is out of range, value must between 0 and 9223372036854775807"),
        ("ADD XADD", MISSING),
        ("ADD XADD KEY k", MISSING),
        ("ADD XADDD CLOSE", "there is no command 'XADDD'"),
        ("ADD XGROUP|MAKE CLOSE", "there is no command 'XGROUP|MAKE'"),
        ("ADD DEBUG CLOSE", "no fault strikes DEBUG, or nobody could clear it"),
        ("ADD XADD KEY", "KEY needs a value"),
        ("ADD XADD ERROR", "ERROR needs a value"),
        ("ADD XADD CUT", "CUT needs a value"),
        ("ADD XADD KEY a KEY b CLOSE", "KEY is given twice"),
        ("ADD XADD BREAK", neither("BREAK")),
        ("ADD XADD CLOSE now", "the action comes last, but 'now' follows it"),
        ("ADD XADD CLOSE TIMES 1", "the action comes last, but 'TIMES' follows it"),
        ("ADD XADD AFTER -1 CLOSE", "AFTER takes an integer from 0 to 9223372036854775807"),
        ("ADD XADD AFTER x CLOSE", "AFTER takes an integer from 0 to 9223372036854775807"),
        ("ADD XADD TIMES 0 CLOSE", "TIMES takes an integer from 1 to 9223372036854775807"),
        ("ADD XADD SEED 1.5 CLOSE", "SEED takes an integer from 0 to 9223372036854775807"),
        ("ADD XADD DELAY 86400001", "DELAY takes an integer from 0 to 86400000"),
        ("ADD XADD DELAY soon", "DELAY takes an integer from 0 to 86400000"),
        ("ADD XADD CUT -1", "CUT takes an integer from 0 to 2147483647"),
        ("ADD PING KEY k CLOSE", "KEY needs a command with a key, which 'ping' has not"),
        ("ADD PING MOVED", "MOVED needs a command with a key, which 'ping' has not"),
        ("ADD XADD NOGROUP", "NOGROUP needs a command with a group, which 'xadd' has not"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(
    direct: Direct, client: DirectClient, line: str, text: str
) -> None:
    prefix = "" if text == UNKNOWN or text.startswith("value") else "DEBUG FAULT: "
    expected = f"-ERR {prefix}{text}\r\n".encode()
    assert fault(client, line) == expected
    assert fault(client, "LIST") == b"*0\r\n"
    assert not direct.server.services.interception.active


@pytest.mark.parametrize("number", ["0", "1.01", "-0.5", "x", "", "nan", "inf", "1e400", "0.0"])
def test_a_probability_is_above_0_and_up_to_1(client: DirectClient, number: str) -> None:
    words = ("ADD", "PING", "PROBABILITY", number, "CLOSE")
    assert client.send("DEBUG", "FAULT", *words) == (
        b"-ERR DEBUG FAULT: PROBABILITY takes a number above 0 and up to 1\r\n"
    )


@pytest.mark.parametrize("number", ["1", "0.5", ".5", "1e-3", "1."])
def test_a_probability_may_be_written_in_any_usual_way(client: DirectClient, number: str) -> None:
    assert fault(client, f"ADD PING PROBABILITY {number} CLOSE") == b":1\r\n"


def test_an_error_needs_a_text(client: DirectClient) -> None:
    assert client.send("DEBUG", "FAULT", "ADD", "PING", "ERROR", " ") == (
        b"-ERR DEBUG FAULT: ERROR needs a text, such as 'ERR try again'\r\n"
    )


def test_requests_are_looked_at_only_while_there_are_faults(
    direct: Direct, client: DirectClient
) -> None:
    interception = direct.server.services.interception
    fault(client, "ADD PING CLOSE")
    fault(client, "ADD PING CLOSE")
    assert interception.active
    fault(client, "CLEAR 1")
    assert interception.active
    fault(client, "CLEAR 2")
    assert not interception.active


def test_every_option_and_action_is_in_the_syntax(client: DirectClient) -> None:
    reply = client.send("COMMAND", "DOCS", "DEBUG")
    assert reply is not None
    for word in (b"PROBABILITY", b"NOREPLY", b"MASTERDOWN", b"CUT"):
        assert word in reply
