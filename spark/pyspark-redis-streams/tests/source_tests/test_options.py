"""Options: names, aliases, defaults, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyspark_redis_streams.errors import OptionError, RedisStreamsError
from pyspark_redis_streams.ids import MAX_ID, MAX_PART, parse_id
from pyspark_redis_streams.options import OPTIONS, ReadSettings
from pyspark_redis_streams.settings import read_settings, write_settings
from pyspark_redis_streams.values import Starting


def settings(**options: str) -> ReadSettings:
    return read_settings({"subscribe": "s", **options}, streaming=True)


def batch(**options: str) -> ReadSettings:
    return read_settings({"subscribe": "s", **options}, streaming=False)


def refused(**options: str) -> str:
    with pytest.raises(OptionError) as caught:
        settings(**options)
    return str(caught.value)


def test_every_option_with_a_default_has_it() -> None:
    given = settings()
    assert given.servers.urls[0].label == "127.0.0.1:6379/0"
    assert given.servers.retries == 5
    assert given.subscribe == ("s",)
    assert (given.mode, given.fail_on_loss, given.fetch_count) == ("offsets", True, 1000)
    assert (given.claim_min_idle_ms, given.poll_interval_ms) == (60_000, 100)
    assert (given.pattern_interval_ms, given.fields_format) == (5000, "map")
    assert (given.max_per_trigger, given.min_partitions, given.group) == (None, None, None)


def test_a_stream_begins_at_its_end_and_a_batch_at_its_beginning() -> None:
    assert settings().starting == Starting("latest")
    assert batch().starting == Starting("earliest")


def test_names_are_found_in_any_case() -> None:
    given = read_settings({"SUBSCRIBE": "a, b,a", "MAXOFFSETSPERTRIGGER": "7"}, True)
    assert (given.subscribe, given.max_per_trigger) == (("a", "b"), 7)


def test_a_json_list_may_hold_names_with_commas() -> None:
    assert read_settings({"subscribe": '["a,b", "c"]'}, True).subscribe == ("a,b", "c")


def test_the_names_of_spark_redis_are_known() -> None:
    given = read_settings(
        {
            "host": "h",
            "port": "7000",
            "auth": "p:w",
            "dbNum": "2",
            "timeout": "1500",
            "stream.keys": "a",
            "stream.parallelism": "4",
            "stream.group.name": "g",
            "stream.consumer.prefix": "c",
            "stream.read.batch.size": "10",
            "stream.offsets": '{"offsets":{"a":{"groupName":"g","offset":"5-1"}}}',
        },
        True,
    )
    url = given.servers.urls[0]
    assert (url.label, url.password, url.username) == ("h:7000/2", "p:w", None)
    assert given.servers.client == {"socket_timeout": "1.5"}
    assert (given.subscribe, given.min_partitions, given.group) == (("a",), 4, "g")
    assert (given.consumer, given.fetch_count) == ("c", 10)
    assert given.starting == Starting("earliest", {"a": parse_id("5-1")})


def test_load_may_name_the_streams() -> None:
    assert read_settings({"path": "a,b"}, True).subscribe == ("a", "b")


def test_starting_offsets_may_differ_by_stream() -> None:
    given = settings(subscribe="a,b,c", startingOffsets='{"a":"5","b":"latest"}')
    assert given.starting == Starting("earliest", {"a": 5 << 64, "b": "latest"})


def test_timestamps_are_milliseconds_or_iso_8601() -> None:
    given = batch(startingTimestamp="1000", endingTimestamp="1970-01-01T01:00:02+01:00")
    assert given.starting == Starting("timestamp", {"": parse_id(f"999-{MAX_PART}")})
    assert given.not_after == parse_id(f"1999-{MAX_PART}")
    assert settings().not_after == MAX_ID


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("retries", "-1", "a whole number from 0"),
        ("mode", "grup", "offsets, group"),
        ("failOnDataLoss", "yes", "true, false"),
        ("maxOffsetsPerTrigger", "0", "a whole number from 1"),
        ("minPartitions", "two", "a whole number from 1"),
        ("startingOffsets", "begin", "earliest, latest, group, or JSON"),
        ("startingOffsets", '{"s": 5}', "earliest, latest, group, or JSON"),
        ("startingOffsets", '{"s": "x"}', "earliest, latest, group, or JSON"),
        ("startingOffsets", '{"offsets": {"s": "5"}}', "earliest, latest, group, or JSON"),
        ("startingTimestamp", "2024-01-01T00:00:00", "Unix milliseconds, or an ISO 8601 time"),
        ("startingTimestamp", "-5", "Unix milliseconds, or an ISO 8601 time"),
        ("fieldsFormat", "list", "map, array"),
        ("subscribe", "a,,b", "stream names separated by commas"),
        ("subscribe", '["a", 5]', "stream names separated by commas"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(option: str, value: str, allowed: str) -> None:
    assert refused(**{option: value}).startswith(
        f"option '{option}' is '{value}'; allowed: {allowed}"
    )


def test_an_unknown_option_is_refused_with_a_guess() -> None:
    assert refused(maxOffsetPerTrigger="5") == (
        "option 'maxoffsetpertrigger' is 'not an option'; allowed: "
        "did you mean 'maxOffsetsPerTrigger'?"
    )
    assert "claimMinIdleMs, consumerName, deadLetterStream" in refused(zzz="5")


def test_an_option_and_its_alias_do_not_go_together() -> None:
    assert refused(**{"stream.keys": "t"}) == (
        "option 'stream.keys' is 't'; allowed: only one of ['subscribe', 'stream.keys']"
    )


def test_streams_have_to_be_named() -> None:
    with pytest.raises(OptionError, match="option 'subscribe' is missing"):
        read_settings({}, True)
    assert read_settings({"subscribePattern": "a*"}, True).patterns == ("a*",)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"mode": "group"}, "groupId"),
        ({"mode": "group", "groupId": "g"}, "consumerName"),
        ({"startingOffsets": "group"}, "groupId"),
        ({"maxDeliveries": "3"}, "maxDeliveries"),
        ({"endingOffsets": '{"s":"5"}'}, "endingOffsets"),
        ({"endingTimestamp": "5"}, "endingTimestamp"),
        ({"startingOffsets": '{"t":"5"}'}, "startingOffsets"),
        ({"startingOffsets": "latest", "startingTimestamp": "5"}, "startingOffsets"),
        ({"host": "h", "url": "redis://h"}, "host"),
        ({"timeout": "soon"}, "timeout"),
        ({"groupIsMirror": "true"}, "groupIsMirror"),
        ({"host": "h", "ssl": "yes"}, "ssl"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: dict[str, str], named: str) -> None:
    assert refused(**options).startswith(f"option '{named}' is ")


def test_dead_letters_need_both_their_options() -> None:
    group = {"mode": "group", "groupId": "g", "consumerName": "c"}
    assert refused(**group, maxDeliveries="3").startswith("option 'deadLetterStream' is missing")
    assert refused(**group, deadLetterStream="d").startswith("option 'maxDeliveries' is missing")
    assert settings(**group, maxDeliveries="3", deadLetterStream="d").max_deliveries == 3


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"mode": "group", "groupId": "g", "consumerName": "c"}, "mode"),
        ({"startingOffsets": "latest"}, "startingOffsets"),
    ],
)
def test_a_batch_refuses_what_only_a_stream_can(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=f"option '{named}' is "):
        batch(**options)


def test_a_write_trims_in_one_way_only_and_to_one_server() -> None:
    with pytest.raises(OptionError, match="option 'minid' is '5-0'; allowed: not together"):
        write_settings({"maxlen": "5", "minid": "5-0"})
    with pytest.raises(OptionError, match="option 'url' is 'a list'; allowed: one server"):
        write_settings({"url": "redis://a,redis://b"})
    given = write_settings({"stream": "s", "minid": "5-0", "approximate": "false"})
    assert (given.stream, given.minid, given.approximate, given.count) == (
        "s",
        5 << 64,
        False,
        1000,
    )


def test_what_is_passed_to_the_client_does_not_show() -> None:
    given = settings(url="redis://u:secret@h", **{"redis.password": "secret2"})
    assert given.servers.client == {"password": "secret2"}
    assert "secret" not in repr(given)


def test_an_error_keeps_its_text_on_the_way_from_a_worker() -> None:
    error: Any = pickle.loads(pickle.dumps(OptionError("mode", "x", "offsets, group")))
    assert isinstance(error, RedisStreamsError)
    assert str(error) == "option 'mode' is 'x'; allowed: offsets, group"


def test_every_option_says_what_it_means_and_what_is_allowed() -> None:
    assert all(option.meaning and option.kind.allowed for option in OPTIONS)
    names = [name.lower() for option in OPTIONS for name in (option.name, *option.aliases)]
    assert len(set(names)) == len(names) - 1, "only `path` stands for two, one to read one to write"


@pytest.mark.parametrize(
    ("options", "fails"),
    [
        ({}, True),
        ({"onDataLoss": "fail"}, True),
        ({"onDataLoss": "Continue"}, False),
        ({"failOnDataLoss": "false"}, False),
        ({"failOnDataLoss": "true"}, True),
        ({"onDataLoss": "continue", "failOnDataLoss": "false"}, False),
    ],
)
def test_loss_is_a_decision_with_two_names(options: dict[str, str], fails: bool) -> None:
    assert settings(**options).fail_on_loss is fails


def test_the_two_names_of_the_decision_may_not_contradict_each_other() -> None:
    assert refused(onDataLoss="continue", failOnDataLoss="true") == (
        "option 'failOnDataLoss' is 'true'; allowed: false, or nothing, as 'onDataLoss' is "
        "'continue'"
    )
    assert refused(onDataLoss="fail", failOnDataLoss="false") == (
        "option 'failOnDataLoss' is 'false'; allowed: true, or nothing, as 'onDataLoss' is 'fail'"
    )
    assert refused(onDataLoss="ignore").startswith(
        "option 'onDataLoss' is 'ignore'; allowed: fail, continue"
    )


@pytest.mark.parametrize(
    ("text", "size"), [("5", 5), ("3k", 3072), ("2MB", 2 << 20), ("1g", 1 << 30)]
)
def test_bytes_have_units(text: str, size: int) -> None:
    assert settings(maxBytesPerTrigger=text).max_bytes_per_trigger == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("10s", 10), ("10 seconds", 10), ("15m", 900), ("1h", 3600)],
)
def test_delays_have_units(text: str, seconds: float) -> None:
    assert settings(maxTriggerDelay=text, minOffsetsPerTrigger="5").max_trigger_delay == seconds


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger"),
        ({"fetchBytes": "2g"}, "fetchBytes"),
        ({"fetchBytes": "soon"}, "fetchBytes"),
        ({"maxTriggerDelay": "10"}, "maxTriggerDelay"),
        ({"maxTriggerDelay": "10s"}, "maxTriggerDelay"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger"),
        ({"startingOffsetsByTimestamp": '{"t": 5}'}, "startingOffsetsByTimestamp"),
        ({"startingOffsetsByTimestamp": '{"s": true}'}, "startingOffsetsByTimestamp"),
        (
            {"startingOffsetsByTimestamp": '{"s": 5}', "startingTimestamp": "5"},
            "startingOffsetsByTimestamp",
        ),
        (
            {"startingOffsetsByTimestamp": '{"s": 5}', "startingOffsets": '{"s": "5"}'},
            "startingOffsetsByTimestamp",
        ),
        ({"endingOffsetsByTimestamp": '{"s": 5}'}, "endingOffsetsByTimestamp"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, str], named: str) -> None:
    assert refused(**options).startswith(f"option '{named}' is ")


def test_each_stream_of_a_batch_may_end_at_a_time_of_its_own() -> None:
    given = batch(
        subscribe="a,b", endingOffsetsByTimestamp='{"a": 1000}', endingOffsets='{"b": "7"}'
    )
    assert given.ending == {"a": parse_id(f"999-{MAX_PART}"), "b": 7 << 64}
