"""PENSTOCK POLICY: what is in force, where it is kept, what is refused."""

from __future__ import annotations

import pytest

from tests.server.delivery.support import GROUP, KEY, Kitchen
from tests.support.direct import Direct, parsed


def of_group(kitchen: Kitchen, key: str = KEY, group: str = GROUP) -> dict[bytes, bytes]:
    reply = kitchen.ask("PENSTOCK", "POLICY", "GET", key, "GROUP", group)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def of_stream(kitchen: Kitchen, key: str = KEY) -> dict[bytes, bytes]:
    reply = kitchen.ask("PENSTOCK", "POLICY", "GET", key)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def test_policies_are_set_shown_and_deleted() -> None:
    kitchen = Kitchen()
    assert of_group(kitchen) == {}
    kitchen.set("ACK-wait", 5, "paused", "no")
    kitchen.set("ack-wait", 7)
    assert of_group(kitchen) == {b"ack-wait": b"7", b"paused": b"no"}
    assert kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "ack-wait", "backoff") == 1
    assert of_group(kitchen) == {b"paused": b"no"}
    kitchen.set_stream("retention", 5)
    assert of_stream(kitchen) == {b"retention": b"5"}
    assert kitchen.ask("PENSTOCK", "POLICY", "del", KEY, "retention", "retention") == 1
    assert of_stream(kitchen) == {}


def test_resp3_has_a_map() -> None:
    kitchen = Kitchen("ack-wait", 5)
    client = kitchen.direct.client(resp3=True)
    words = ("PENSTOCK", "POLICY", "GET", KEY, "GROUP", GROUP)
    assert client.send(*words) == b"%1\r\n$8\r\nack-wait\r\n$1\r\n5\r\n"


def test_what_a_group_has_counts_before_its_stream_and_that_before_the_settings() -> None:
    direct = Direct(stream_policy="ord* * ack-wait 1 max-pending 1 backoff 1 retention 1")
    direct.client().send("XGROUP", "CREATE", KEY, GROUP, 0, "MKSTREAM")
    kitchen = Kitchen(direct=direct)
    kitchen.set_stream("max-pending", 2, "backoff", 2)
    kitchen.set("backoff", 3)
    assert of_group(kitchen) == {b"ack-wait": b"1", b"max-pending": b"2", b"backoff": b"3"}
    assert of_stream(kitchen) == {b"backoff": b"2", b"max-pending": b"2", b"retention": b"1"}


def test_the_first_line_that_fits_decides() -> None:
    lines = "\n".join(
        [
            "orders:vip:* * ack-wait 1",
            "orders:* kitchen ack-wait 2 dead-letter orders:dead",
            '"orders:*" * ack-wait 3 retention 5',
        ]
    )
    kitchen = Kitchen(stream_policy=lines)
    for key in ("orders:vip:1", "orders:1", "orders:dead", "others"):
        for group in ("kitchen", "bar"):
            kitchen.ask("XGROUP", "CREATE", key, group, 0, "MKSTREAM")
    assert of_group(kitchen, "orders:vip:1") == {b"ack-wait": b"1"}
    assert of_group(kitchen, "orders:1") == {b"ack-wait": b"2", b"dead-letter": b"orders:dead"}
    assert of_group(kitchen, "orders:1", "bar") == {b"ack-wait": b"3"}
    assert of_group(kitchen, "others") == {}
    assert of_stream(kitchen, "orders:vip:1") == {b"retention": b"5"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("RENAME", KEY, "other"), ["other"]),
        (("COPY", KEY, "other"), [KEY, "other"]),
    ],
)
def test_they_go_with_the_stream(command: tuple[str, ...], expected: list[str]) -> None:
    kitchen = Kitchen("ack-wait", 100)
    kitchen.set_stream("retention", 10**15)
    kitchen.add(1)
    kitchen.read()
    kitchen.ask(*command)
    kitchen.direct.advance(100)
    for key in expected:
        assert of_group(kitchen, key) == {b"ack-wait": b"100"}
        assert of_stream(kitchen, key) == {b"retention": b"%d" % 10**15}
        words = ("XREADGROUP", "GROUP", GROUP, "bob", "STREAMS", key, ">")
        assert kitchen.ask(*words)[0][1] == [[b"1-1", [b"n", b"1"]]]


def test_they_go_to_another_database() -> None:
    kitchen = Kitchen("ack-wait", 100)
    kitchen.add(1)
    kitchen.read()
    kitchen.ask("MOVE", KEY, 1)
    kitchen.ask("SELECT", 1)
    kitchen.direct.advance(100)
    assert kitchen.read("bob") == [1]
    kitchen.ask("SWAPDB", 0, 1)
    kitchen.ask("SELECT", 0)
    kitchen.direct.advance(100)
    assert kitchen.read("carl") == [1]


@pytest.mark.parametrize(
    "command",
    [
        ("DEL", KEY),
        ("SET", KEY, "text"),
        ("PEXPIREAT", KEY, 1),
        ("RENAME", KEY, "other"),
        ("RENAME", "others", KEY),
        ("COPY", "others", KEY, "REPLACE"),
        ("MOVE", KEY, 1),
        ("SWAPDB", 0, 1),
        ("FLUSHALL",),
        ("XGROUP", "DESTROY", KEY, GROUP),
    ],
)
def test_nothing_is_kept_of_a_stream_or_a_group_that_is_gone(
    command: tuple[str | int, ...],
) -> None:
    kitchen = Kitchen("ack-wait", 100)
    kitchen.ask("XGROUP", "CREATE", "others", "bar", 0, "MKSTREAM")
    kitchen.ask("PENSTOCK", "POLICY", "SET", "others", "GROUP", "bar", "ack-wait", 1)
    kitchen.add(1)
    kitchen.read()
    kitchen.ask(*command)  # After each request the server looks at all that it keeps.
    for word in ("MULTI", "EXEC"):
        kitchen.ask("XGROUP", "CREATE", KEY, GROUP, 0, "MKSTREAM")
        kitchen.ask(*command)
        kitchen.ask(word)


def test_they_outlive_a_restart_with_all_that_they_have_kept_back() -> None:
    kitchen = Kitchen("delay-field", "at", "backoff", 5000)
    kitchen.set_stream("retention-unread", "keep")
    at = kitchen.direct.now_ms + 1000
    kitchen.add(1, "at", at)
    kitchen.add(2)
    assert kitchen.read() == [2]
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "2-1")
    kitchen.direct.server.services.persistence.reload()
    assert of_group(kitchen) == {b"delay-field": b"at", b"backoff": b"5000"}
    assert of_stream(kitchen) == {b"retention-unread": b"keep"}
    waiting = kitchen.wait()
    kitchen.direct.advance(999)
    assert waiting.reply_when_woken is None
    kitchen.direct.advance(1)
    assert waiting.reply_when_woken is not None
    kitchen.direct.advance(3999)
    assert kitchen.read() == []
    kitchen.direct.advance(1)
    assert kitchen.read() == [2]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("500", b"500"),
        ("500ms", b"500"),
        ("30s", b"30000"),
        ("5m", b"300000"),
        ("2h", b"7200000"),
        ("1d", b"86400000"),
        ("0d", b"0"),
        ("9007199254740992", b"9007199254740992"),
    ],
)
def test_a_time_may_have_a_unit_and_is_milliseconds(given: str, kept: bytes) -> None:
    kitchen = Kitchen("ack-wait", given, "consumer-ttl", given)
    kitchen.set_stream("retention", given)
    assert of_group(kitchen) == {b"ack-wait": kept, b"consumer-ttl": kept}
    assert of_stream(kitchen) == {b"retention": kept}
    line = Kitchen(stream_policy=f"ord* * ack-wait {given}")
    assert of_group(line) == {b"ack-wait": kept}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("1s,5s,30000", b"1000,5000,30000"),
        ("exponential:1s:5m:20%", b"exponential:1000:300000:20%"),
        ("exponential:1:1", b"exponential:1:1:0%"),
        ("", b""),
    ],
)
def test_so_may_each_delay_of_backoff(given: str, kept: bytes) -> None:
    kitchen = Kitchen("backoff", given)
    assert of_group(kitchen) == {b"backoff": kept}
    kitchen.direct.server.services.persistence.reload()
    assert of_group(kitchen) == {b"backoff": kept}


def test_a_restored_stream_has_none() -> None:
    kitchen = Kitchen("ack-wait", 100)
    payload = kitchen.client.send("DUMP", KEY) or b""
    kitchen.ask("RESTORE", "copy", 0, parsed(payload))
    assert of_group(kitchen, "copy") == {}


ALL_NAMES = (
    "ack-wait, auto-group, backoff, consumer-ttl, dead-letter, dead-letter-maxlen, delay-field,"
    " delete, delete-grace, look-ahead, max-deliveries, max-pending, max-pending-consumer, only,"
    " order-by, paused, priority-field, rate-limit, reasons, retention, retention-bytes,"
    " retention-unread"
)


A_TIME = "a time such as 500, 30s, 5m or 1d, up to 9007199254740992 milliseconds"
RATE = "a number of entries and a time, such as 100/1s"
DELAYS = "times such as 1s,5s,30s, or exponential:1s:5m:20% (first, longest, jitter)"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("ack-wait", "-1"), f"ack-wait: '-1' is not {A_TIME}"),
        (("ack-wait", "1.5s"), f"ack-wait: '1.5s' is not {A_TIME}"),
        (("ack-wait", "9007199254740993"), f"ack-wait: '9007199254740993' is not {A_TIME}"),
        (("consumer-ttl", "104249992d"), f"consumer-ttl: '104249992d' is not {A_TIME}"),
        (("max-pending", ""), "max-pending: '' is not a number from 0 to 2147483647"),
        (("backoff", "5,x"), f"backoff: '5,x' is not {DELAYS}"),
        (("backoff", "0"), f"backoff: '0' is not {DELAYS}"),
        (("backoff", "exponential:1s"), f"backoff: 'exponential:1s' is not {DELAYS}"),
        (("backoff", "exponential:1s:0:1%"), f"backoff: 'exponential:1s:0:1%' is not {DELAYS}"),
        (("backoff", "exponential:2:1:1%"), f"backoff: 'exponential:2:1:1%' is not {DELAYS}"),
        (("backoff", "exponential:1:2:101%"), f"backoff: 'exponential:1:2:101%' is not {DELAYS}"),
        (("rate-limit", "5"), f"rate-limit: '5' is not {RATE}"),
        (("rate-limit", "0/1s"), f"rate-limit: '0/1s' is not {RATE}"),
        (("rate-limit", "1/0"), f"rate-limit: '1/0' is not {RATE}"),
        (("paused", "maybe"), "paused: 'maybe' is not yes or no"),
        (("only", "kind"), "only: 'kind' is not FIELD=VALUE"),
        (("retention", "5"), "the policy 'retention' is one of streams, not of groups"),
        (("ack-wait", "1", "ACK-WAIT", "2"), "the policy 'ACK-WAIT' is given twice"),
        (("max-deliveries", "3"), "max-deliveries: dead-letter must name a stream for them"),
        (("dead-letter-maxlen", "3"), "dead-letter-maxlen: means nothing without dead-letter"),
        (("dead-letter", KEY), "dead-letter: dead letters would come back: orders -> orders"),
    ],
)
def test_policies_of_a_group_that_cannot_be(words: tuple[str, ...], reason: str) -> None:
    kitchen = Kitchen()
    assert (
        str(kitchen.ask("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP, *words))
        == f"ERR {reason}"
    )
    assert of_group(kitchen) == {}


def test_policies_of_a_stream_that_cannot_be() -> None:
    kitchen = Kitchen()
    for words, reason in {
        ("speed", "9"): f"unknown policy 'speed', expected one of: {ALL_NAMES}",
        ("delete", "all"): "delete: 'all' is not acked or no",
        ("delete-grace", "5"): "delete-grace: means nothing without delete acked",
        ("retention-bytes", "many"): "retention-bytes: 'many' is not a size such as 512mb",
        ("auto-group", "1"): "auto-group: '1' is not 0 or $ or no",
        ("max-deliveries", "1"): "max-deliveries: dead-letter must name a stream for them",
    }.items():
        assert str(kitchen.ask("PENSTOCK", "POLICY", "SET", KEY, *words)) == f"ERR {reason}"
    assert of_stream(kitchen) == {}


SYNTAX = (
    "ERR syntax error: expected SET key [GROUP group] name value [name value ...],"
    " GET key [GROUP group], or DEL key [GROUP group] name [name ...]"
)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP), SYNTAX),
        (("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP, "ack-wait"), SYNTAX),
        (("PENSTOCK", "POLICY", "GET", KEY, "GROUP", GROUP, "ack-wait"), SYNTAX),
        (("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP), SYNTAX),
        (("PENSTOCK", "POLICY", "PUT", KEY, "GROUP", GROUP), SYNTAX),
        (("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "speed"), "ERR unknown policy 'speed'"),
        (
            ("PENSTOCK", "POLICY", "GET", KEY, "GROUP", "bar"),
            "NOGROUP No such consumer group 'bar' for key name 'orders'",
        ),
        (("PENSTOCK", "POLICY", "GET", "none", "GROUP", GROUP), "ERR no such key"),
        (("PENSTOCK", "POLICY", "GET", "none"), "ERR no such key"),
        (("PENSTOCK", "POLICY", "SET", KEY, "GROUP"), SYNTAX),
        (("PENSTOCK", "POLICY", "GET", KEY, "group", GROUP, "more"), SYNTAX),
        (
            ("PENSTOCK", "POLICY", "GET"),
            "ERR wrong number of arguments for 'penstock|policy' command",
        ),
        (("PENSTOCK", "NONE"), "ERR unknown subcommand 'NONE'. Try PENSTOCK HELP."),
        (
            ("XGROUP", "POLICY", KEY, GROUP, "GET"),
            "ERR unknown subcommand 'POLICY'. Try XGROUP HELP.",
        ),
        (("XGROUP", "REDRIVE", KEY), "ERR unknown subcommand 'REDRIVE'. Try XGROUP HELP."),
    ],
)
def test_commands_that_cannot_be(words: tuple[str, ...], error: str) -> None:
    assert str(Kitchen().ask(*words)) == error


def test_what_others_need_is_not_deleted() -> None:
    kitchen = Kitchen("max-deliveries", 3, "dead-letter", "dead")
    reply = kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "dead-letter")
    assert str(reply) == "ERR max-deliveries: dead-letter must name a stream for them"
    assert of_group(kitchen) == {b"dead-letter": b"dead", b"max-deliveries": b"3"}
    kitchen.set_stream("delete", "acked", "delete-grace", 5)
    reply = kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "delete")
    assert str(reply) == "ERR delete-grace: means nothing without delete acked"
    assert (
        kitchen.ask(
            "PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "dead-letter", "max-deliveries"
        )
        == 2
    )


def test_dead_letters_do_not_go_round() -> None:
    kitchen = Kitchen("dead-letter", "b")
    kitchen.ask("XGROUP", "CREATE", "b", "g", 0, "MKSTREAM")
    kitchen.ask("PENSTOCK", "POLICY", "SET", "b", "GROUP", "g", "dead-letter", "c")
    kitchen.ask("XGROUP", "CREATE", "c", "g", 0, "MKSTREAM")
    reply = kitchen.ask("PENSTOCK", "POLICY", "SET", "c", "GROUP", "g", "dead-letter", KEY)
    assert str(reply) == ("ERR dead-letter: dead letters would come back: c -> orders -> b -> c")
    reply = kitchen.ask("PENSTOCK", "POLICY", "SET", "c", "dead-letter", KEY)
    assert str(reply) == ("ERR dead-letter: dead letters would come back: c -> orders -> b -> c")


def test_nothing_is_looked_at_while_there_are_no_policies() -> None:
    kitchen = Kitchen()
    policies = kitchen.direct.server.services.policies
    assert not policies.active
    kitchen.set("ack-wait", 5)
    assert policies.active


def test_policies_that_go_round_already_are_no_reason_to_go_on_for_ever() -> None:
    """A file and settings that were made apart from each other may lead to that."""
    kitchen = Kitchen(stream_policy="b * dead-letter c")
    for key in ("a", "b", "c"):
        kitchen.ask("XGROUP", "CREATE", key, "g", 0, "MKSTREAM")
    database = kitchen.direct.server.state.keyspace.databases[0]
    stream = database.stream(b"c")
    assert stream is not None
    database.set_policy(b"c", stream.groups[b"g"], {b"dead-letter": b"b"})
    assert kitchen.ask("PENSTOCK", "POLICY", "SET", "a", "GROUP", "g", "dead-letter", "b") == b"OK"


def test_help_says_what_there_is() -> None:
    assert [line.decode() for line in Kitchen().ask("PENSTOCK", "HELP")] == [
        "PENSTOCK <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "POLICY <SET key [GROUP group] name value [name value ...] | GET key [GROUP group]"
        " | DEL key [GROUP group] name [name ...]>",
        "    Shows and changes the policies of a stream, or of a consumer group.",
        "REDRIVE key [COUNT count] [id [id ...]]",
        "    Moves dead letters back to the groups that they come from.",
        "NACK key group <SILENT | FAIL | FATAL> [REASON text] [DELAY milliseconds]"
        " IDS numids id [id ...] [RETRYCOUNT count] [FORCE]",
        "    Gives pending entries back, as XNACK does, with the reason and a delay.",
        "HISTORY key group id",
        "    Tells how the deliveries of a pending entry ended, and why.",
        "STATS [key [group]]",
        "    Shows what is counted of a group and its consumers, or what happened lately.",
        "HELP",
        "    Print this help.",
    ]
