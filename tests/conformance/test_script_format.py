"""The suite's own tools: they must not hide a difference, nor see one where there is none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from . import transcripts
from .marks import Expectation, expectation, normalise, parse_mark
from .notation import NotationError, reply_bytes
from .player import Observation
from .quoting import QuotingError, split_arguments
from .resp import Incomplete, encode, escape, parse, unescape
from .script import SCRIPTS, ScriptError, all_topics, read_step, read_topic

REPLY = b"%1\r\n$1\r\nk\r\n*4\r\n:5\r\n_\r\n$-1\r\n>1\r\n+OK\r\n"


def test_a_reply_ends_where_its_last_element_ends() -> None:
    frame, end = parse(REPLY + b"+NEXT\r\n")
    assert end == len(REPLY)
    assert encode(frame) == REPLY


@pytest.mark.parametrize("size", range(len(REPLY)))
def test_no_part_of_a_reply_is_taken_for_a_whole_one(size: int) -> None:
    with pytest.raises(Incomplete):
        parse(REPLY[:size])


def test_escaped_bytes_come_back() -> None:
    data = bytes(range(256))
    assert unescape(escape(data)) == data
    assert escape(data).isascii()


@pytest.mark.parametrize(
    ("text", "resp2", "resp3"),
    [
        ("+OK", b"+OK\r\n", b"+OK\r\n"),
        ("-ERR a, [b]", b"-ERR a, [b]\r\n", b"-ERR a, [b]\r\n"),
        ("null", b"$-1\r\n", b"_\r\n"),
        ("nullarray", b"*-1\r\n", b"_\r\n"),
        ('["a", :-1, +OK]', b"*3\r\n$1\r\na\r\n:-1\r\n+OK\r\n", b"*3\r\n$1\r\na\r\n:-1\r\n+OK\r\n"),
        ('{"a": []}', b"*2\r\n$1\r\na\r\n*0\r\n", b"%1\r\n$1\r\na\r\n*0\r\n"),
        (">[:#]", b"*1\r\n:#\r\n", b">1\r\n:#\r\n"),
        ("~[+RO]", b"*1\r\n+RO\r\n", b"~1\r\n+RO\r\n"),
    ],
)
def test_the_notation_knows_both_protocols(text: str, resp2: bytes, resp3: bytes) -> None:
    assert reply_bytes(text, 2) == resp2
    assert reply_bytes(text, 3) == resp3


@pytest.mark.parametrize("text", ["hello", "[:1", ":1 :2", "[:1 :2]", "[,]", "{:}"])
def test_a_reply_that_is_written_wrongly_is_refused(text: str) -> None:
    with pytest.raises(NotationError):
        reply_bytes(text, 2)


def test_arguments_are_split_as_redis_cli_does_it() -> None:
    line = r'SET k "a \"b\" \x00\r\n" {id} "{id}" "ab"*2'
    expected = [b"SET", b"k", b'a "b" \x00\r\n', b"7", b"{id}", b"abab"]
    assert split_arguments(line, {"id": b"7"}) == expected


@pytest.mark.parametrize("line", ['GET "k', 'GET "k"k', 'GET "k"*'])
def test_quotes_that_do_not_match_are_refused(line: str) -> None:
    with pytest.raises(QuotingError):
        split_arguments(line, {})


def test_only_times_near_now_are_masked() -> None:
    now = int(time.time() * 1000)
    reply = b":%d\r\n:%d\r\n:9999999999999\r\n" % (now, now // 1000)
    masked = normalise(reply, [parse_mark("mask now")], {})
    assert masked == b":TTTTTTTTTTTTT\r\n:tttttttttt\r\n:9999999999999\r\n"


def test_only_idle_times_are_masked() -> None:
    reply = b"*4\r\n$3\r\n1-0\r\n$1\r\nc\r\n:12\r\n:3\r\n"
    masked = normalise(reply, [parse_mark("mask idle")], {})
    assert masked == b"*4\r\n$3\r\n1-0\r\n$1\r\nc\r\n:#\r\n:3\r\n"


def test_a_saved_value_is_shown_by_its_name() -> None:
    saved: dict[str, bytes] = {}
    assert normalise(b":42\r\n", [parse_mark("save id")], saved) == b":<id>\r\n"
    assert saved == {"id": b"42"}


def test_integers_outside_the_range_are_not_hidden() -> None:
    mark = parse_mark("within 5 9")
    assert normalise(b":7\r\n", [mark], {}) == b":#\r\n"
    assert normalise(b":10\r\n", [mark], {}) == b":10\r\n"


def test_sorting_reaches_inner_arrays() -> None:
    reply = b"*2\r\n:1\r\n*2\r\n+b\r\n+a\r\n"
    assert normalise(reply, [parse_mark("unordered 1")], {}) == b"*2\r\n:1\r\n*2\r\n+a\r\n+b\r\n"
    assert normalise(reply, [parse_mark("unordered 5")], {}) == reply


def test_marks_for_newer_servers_replace_the_transcript_there_only() -> None:
    marks = [parse_mark("from 8.2 is :3")]
    assert expectation(marks, 2, (8, 0, 6), b":9\r\n").data == b":9\r\n"
    assert expectation(marks, 2, (8, 10), b":9\r\n").data == b":3\r\n"


def test_a_mark_for_one_protocol_leaves_the_other_alone() -> None:
    marks = [parse_mark("is2 :2"), parse_mark("is3 :3")]
    assert expectation(marks, 2, (8, 10), None).data == b":2\r\n"
    assert expectation(marks, 3, (8, 10), None).data == b":3\r\n"


def test_fields_are_added_at_their_place() -> None:
    recorded = b"%2\r\n$23\r\nrecorded-first-entry-id\r\n$3\r\n0-0\r\n$6\r\ngroups\r\n*1\r\n%0\r\n"
    marks = [parse_mark("from 8.6 adds idmp"), parse_mark("from 8.8 adds nacked-count")]
    frame, _ = parse(expectation(marks, 3, (8, 10), recorded).data)
    names = [item.text for item in frame.items[::2]]
    assert names[0] == b"recorded-first-entry-id"
    assert names[1] == b"idmp-duration"
    assert names[-1] == b"groups"
    assert frame.items[-1].items[0].items[0].text == b"nacked-count"


def test_without_an_expectation_any_reply_but_an_error_will_do() -> None:
    wanted = expectation([], 2, (8, 10), None)
    assert wanted.met_by(b":1\r\n")
    assert not wanted.met_by(b"-ERR\r\n")


def test_a_prefix_is_met_by_longer_replies_only() -> None:
    assert Expectation(b"-ERR a", "prefix").met_by(b"-ERR ab\r\n")
    assert not Expectation(b"-ERR a").met_by(b"-ERR ab\r\n")


def test_an_unknown_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown mark"):
        parse_mark("masc now")


def test_steps_are_told_apart_by_their_form() -> None:
    assert read_step("XLEN k").action == "command"
    assert read_step("B: XLEN k").client == "B"
    assert read_step("B blocks: XREAD").action == "unanswered"
    assert read_step("B receives 3").count == 3
    assert read_step("B receives after 10 ms").low == 10
    assert read_step("pause 5 ms").low == 5


def test_no_two_cases_of_a_topic_share_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("## same\nPING\n## same\nPING\n", "utf-8")
    with pytest.raises(ScriptError):
        read_topic(path)


def test_every_case_that_can_be_recorded_is_recorded() -> None:
    for topic in all_topics():
        path = transcripts.path_of(transcripts.TRANSCRIPTS, topic.name)
        assert path.exists() == (topic.since is None)
        if topic.since is None:
            for transcript in transcripts.read(path).values():
                assert list(transcript) == [case.name for case in topic.cases]


def test_a_transcript_has_one_line_where_both_protocols_reply_alike(tmp_path: Path) -> None:
    [topic] = [topic for topic in all_topics() if topic.name == "xadd"]
    first, second = [step for case in topic.cases for step in case.steps if step.observed][:2]
    in_resp2 = [Observation(first, b""), Observation(second, b"$-1\r\n")]
    in_resp3 = [Observation(first, b""), Observation(second, b"_\r\n")]
    path = transcripts.path_of(tmp_path, "topic")
    transcripts.write(path, [("a case", [in_resp2, in_resp3])])
    lines = ["## a case", f"> {first.line}", ""]
    lines += [f"> {second.line}", "RESP2 $-1\\r\\n", "RESP3 _\\r\\n", ""]
    assert path.read_text().split("\n") == lines
    assert transcripts.read(path) == {
        2: {"a case": [(first.line, b""), (second.line, b"$-1\r\n")]},
        3: {"a case": [(first.line, b""), (second.line, b"_\r\n")]},
    }


def test_there_is_a_case_for_each_of_the_sixty() -> None:
    names = [case.name for case in read_topic(SCRIPTS / "tricky.txt").cases]
    assert [int(name.partition(".")[0]) for name in names] == list(range(1, 61))


@pytest.mark.parametrize("protocol", [2, 3])
def test_every_reply_written_by_hand_can_be_read(protocol: int) -> None:
    for topic in all_topics():
        path = transcripts.path_of(transcripts.TRANSCRIPTS, topic.name)
        recorded = transcripts.read(path)[protocol] if topic.since is None else {}
        for case in topic.cases:
            steps = [step for step in case.steps if step.observed]
            replies = (
                [reply for _, reply in recorded[case.name]] if recorded else [None] * len(steps)
            )
            for step, reply in zip(steps, replies, strict=True):
                wanted = expectation(step.marks, protocol, (8, 10), reply)
                assert wanted.data or wanted.how == "no error" or reply == b"", step.line
