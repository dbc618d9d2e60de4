"""What is copied is the same on both servers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.migration.running import copy, migrate
from tests.migration.streams import COMMANDS, LATER_COMMANDS, RICH, Client, everything, inside
from tests.property.stream_commands import Words
from tests.support.examples import scaled

RANDOM = settings(
    max_examples=scaled(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

EQUAL = {"orders": "equal", "trimmed": "equal", "empty": "equal", "counted": "equal"}


def flush(*clients: Client) -> None:
    for client in clients:
        client.send("FLUSHALL")


# --- between two Penstocks -------------------------------------------------------------------


def test_a_rich_stream_is_the_same_on_both_ends(source: Client, target: Client) -> None:
    source.script(RICH)
    ended = copy(source.port, target.port)
    assert (ended.status, ended.results, ended.err) == (0, EQUAL, "")
    assert everything(target, set()) == everything(source, set())


def test_export_goes_the_other_way(source: Client, target: Client) -> None:
    source.script(RICH)
    ended = migrate(
        f"redis://127.0.0.1:{target.port}",
        *("--from", f"redis://127.0.0.1:{source.port}"),
        direction="export",
    )
    assert (ended.status, ended.results) == (0, EQUAL)
    assert everything(target) == everything(source)


def test_a_second_run_changes_nothing(source: Client, target: Client) -> None:
    source.script(RICH)
    copy(source.port, target.port)
    before = everything(target)
    target.send("CONFIG SET notify-keyspace-events KA")
    with Client(target.port) as listener:
        listener.send("PSUBSCRIBE *")
        ended = copy(source.port, target.port)
        target.send("PUBLISH end now")
        heard = listener._connection.read_response(disable_decoding=True)
    assert (ended.status, ended.results) == (0, EQUAL)
    assert heard == [b"pmessage", b"*", b"end", b"now"]
    assert everything(target) == before


def test_binary_names_and_values_survive(source: Client, target: Client) -> None:
    key, odd = b"\xff\r\n[red]\x1b[0m", b"\x00\r\n\xfe"
    source.call("XADD", key, "1-1", odd, odd, b"", b"")
    source.call("XGROUP", "CREATE", key, odd, 0)
    source.call("XREADGROUP", "GROUP", odd, odd, "STREAMS", key, ">")
    ended = copy(source.port, target.port)
    assert ended.results == {"\\xff\\r\\n[red]\\x1b[0m": "equal"}
    assert target.call("XRANGE", key, "-", "+") == [[b"1-1", [odd, odd, b"", b""]]]
    assert target.call("XPENDING", key, odd, "-", "+", 9)[0][:2] == [b"1-1", odd]


def test_more_entries_and_pending_entries_than_fit_on_a_page(
    source: Client, target: Client
) -> None:
    source.call_all([("XADD", "k", f"1-{n}", "n", n) for n in range(1, 2501)])
    source.send("XGROUP CREATE k g 0")
    source.send("XREADGROUP GROUP g ann COUNT 1200 STREAMS k >")
    source.send("XREADGROUP GROUP g bob COUNT 1200 STREAMS k >")
    source.send("XTRIM k MAXLEN 300")
    ended = copy(source.port, target.port)
    assert (ended.status, ended.results) == (0, {"k": "equal"})
    assert inside(target, "k") == inside(source, "k")


def test_entries_of_a_megabyte_are_copied_one_by_one(source: Client, target: Client) -> None:
    source.call_all([("XADD", "k", f"1-{n}", "n", b"x" * 1_100_000) for n in range(1, 20)])
    assert copy(source.port, target.port).status == 0
    assert inside(target, "k") == inside(source, "k")


def test_released_entries_stay_without_an_owner(source: Client, target: Client) -> None:
    source.script(
        """
        XADD k 1-1 f v
        XADD k 1-2 f v
        XADD k 1-3 f v
        XGROUP CREATE k g 0
        XREADGROUP GROUP g ann STREAMS k >
        XNACK k g FAIL IDS 2 1-1 1-2 RETRYCOUNT 4
        XDEL k 1-2
        XCFGSET k IDMP-DURATION 7 IDMP-MAXSIZE 9
        """
    )
    assert copy(source.port, target.port).results == {"k": "equal"}
    assert inside(target, "k", set()) == inside(source, "k", set())
    assert target.send("XPENDING k g - + 9")[:2] == [[b"1-1", b"", -1, 4], [b"1-2", b"", -1, 4]]


def test_a_pending_id_above_the_last_generated_id_is_told(source: Client, target: Client) -> None:
    source.script(
        """
        XADD k 10-0 f v
        XGROUP CREATE k g 0
        XREADGROUP GROUP g ann STREAMS k >
        XTRIM k MAXLEN 0
        XSETID k 5-0
        XADD k 6-0 f v
        """
    )
    ended = copy(source.port, target.port)
    unreachable = "differs: 1 pending entry above the last-generated-id cannot be copied"
    assert (ended.status, ended.results) == (1, {"k": unreachable})
    assert copy(source.port, target.port).results == {"k": unreachable}


def test_idempotent_ids_are_left_behind_and_mentioned(source: Client, target: Client) -> None:
    source.send("XADD k IDMP producer one * f v")
    ended = copy(source.port, target.port)
    remark = "equal: 1 idempotent ID left behind: no command can read them"
    assert (ended.status, ended.results) == (0, {"k": remark})


def test_idmp_settings_that_the_target_does_not_know_are_mentioned(
    source: Client, real: Client
) -> None:
    source.script("XADD k 1-1 f v\nXCFGSET k IDMP-MAXSIZE 7\nXADD usual 1-1 f v")
    ended = copy(source.port, real.port)
    remark = "equal: the target has no idmp-duration and idmp-maxsize"
    assert (ended.status, ended.results) == (0, {"k": remark, "usual": "equal"})


def test_only_matching_keys_are_copied(source: Client, target: Client) -> None:
    source.script("XADD a:1 1-1 f v\nXADD b:1 1-1 f v\nXADD c:1 1-1 f v\nXADD a:2 1-1 f v")
    copy(source.port, target.port, "--match", "a:*", "--match", "*:1", "--match", "nothing")
    assert set(everything(target)) == {b"a:1", b"a:2", b"b:1", b"c:1"}
    target.send("FLUSHALL")
    copy(source.port, target.port, "--match", "a:*")
    assert set(everything(target)) == {b"a:1", b"a:2"}


def test_databases_go_to_those_of_the_same_number(source: Client, target: Client) -> None:
    with Client(source.port, db=3) as third, Client(target.port, db=3) as copied:
        source.send("XADD zero 1-1 f v")
        third.send("XADD three 1-1 f v")
        ended = copy(source.port, target.port, "--db", "all")
        assert ended.results == {"0: zero": "equal", "3: three": "equal"}
        assert list(everything(target)) == [b"zero"]
        assert list(everything(copied)) == [b"three"]
        target.send("FLUSHALL")
        assert copy(source.port, target.port, "--db", "3").results == {"3: three": "equal"}
        assert (everything(target), list(everything(copied))) == ({}, [b"three"])


def test_urls_may_name_different_databases(source: Client, target: Client) -> None:
    source.send("XADD zero 1-1 f v")
    urls = (f"redis://127.0.0.1:{source.port}/0", "--to", f"redis://127.0.0.1:{target.port}/5")
    assert migrate(*urls).status == 0
    with Client(target.port, db=5) as fifth:
        assert list(everything(fifth)) == [b"zero"]


@RANDOM
@given(COMMANDS)
def test_any_stream_is_the_same_on_both_ends(
    source: Client, target: Client, commands: list[Words]
) -> None:
    flush(source, target)
    source.attempt(commands)
    for _ in range(2):
        assert copy(source.port, target.port).status == 0
        assert everything(target) == everything(source)


@RANDOM
@given(COMMANDS, st.lists(LATER_COMMANDS, min_size=1, max_size=3))
def test_a_copy_catches_up_with_its_source_or_is_refused(
    source: Client, target: Client, commands: list[Words], later: list[list[Words]]
) -> None:
    flush(source, target)
    source.attempt(commands)
    assert copy(source.port, target.port).status == 0
    for more in later:
        source.attempt(more)
        before = everything(target)
        ended = copy(source.port, target.port)
        if ended.status:
            assert ended.results["k"].startswith("refused: ")
            assert everything(target) == before
            ended = copy(source.port, target.port, "--replace")
        assert (ended.status, everything(target)) == (0, everything(source))


# --- with real servers -----------------------------------------------------------------------


@pytest.mark.parametrize("inward", [True, False], ids=["import", "export"])
def test_a_rich_stream_goes_from_and_to_a_real_server(
    here: Client, real: Client, inward: bool
) -> None:
    source, target = (real, here) if inward else (here, real)
    source.script(RICH)
    for _ in range(2):
        ended = copy(source.port, target.port)
        assert (ended.status, ended.results) == (0, EQUAL)
        assert everything(target) == everything(source)


@pytest.mark.parametrize("inward", [True, False], ids=["import", "export"])
@RANDOM
@given(commands=COMMANDS)
def test_any_stream_goes_from_and_to_a_real_server(
    here: Client, real: Client, inward: bool, commands: list[Words]
) -> None:
    source, target = (real, here) if inward else (here, real)
    flush(source, target)
    source.attempt(commands)
    for _ in range(2):
        assert copy(source.port, target.port).status == 0
        assert everything(target) == everything(source)
