"""Settings: what each may be, how it is shown, and how several change at once."""

from __future__ import annotations

from typing import Any

import pytest

from server.config.registry import SETTINGS, BadSetting, Config


def refusal(name: str, text: str) -> str:
    """Why the setting cannot have this value."""
    with pytest.raises(BadSetting) as caught:
        Config().set_text(name, text)
    assert caught.value.name == name
    return caught.value.reason


@pytest.mark.parametrize("name", SETTINGS)
def test_every_default_can_be_set_as_it_is_shown(name: str) -> None:
    config = Config()
    config.set_text(name, config.get_text(name))
    assert config.get_text(name) == Config().get_text(name)


@pytest.mark.parametrize(
    ("name", "text", "value", "shown"),
    [
        ("timeout", "30", 30, "30"),
        ("hz", "0", 1, "1"),
        ("hz", "100000", 500, "500"),
        ("stream-node-max-bytes", "1kb", 1024, "1024"),
        ("stream-node-max-bytes", "1K", 1000, "1000"),
        ("stream-node-max-bytes", "2MB", 2 * 1024**2, "2097152"),
        ("proto-max-bulk-len", "1gb", 1024**3, "1073741824"),
        ("unixsocketperm", "0755", 0o755, "755"),
        ("loglevel", "WARNING", "warning", "warning"),
        ("enable-debug-command", "local", "local", "local"),
        ("bind", "127.0.0.1   ::1", "127.0.0.1 ::1", "127.0.0.1 ::1"),
        ("appendonly", "NO", False, "no"),
        ("appendonly", "Yes", True, "yes"),
        ("appendfsync", "ALWAYS", "always", "always"),
        ("appendfilename", "my file.aof", "my file.aof", "my file.aof"),
        ("auto-aof-rewrite-min-size", "1mb", 1048576, "1048576"),
        ("aof-use-rdb-preamble", "No", False, "no"),
        ("save", " 900  1 300 10", ((900, 1), (300, 10)), "900 1 300 10"),
        ("save", "", (), ""),
        ("replicaof", "NO  one", "", ""),
        ("notify-keyspace-events", "KEA", "AKE", "AKE"),
        ("notify-keyspace-events", "Et", "tE", "tE"),
        ("notify-keyspace-events", "ndtexzhsl$gmKE", "AnKEm", "AKEm"),
        ("notify-keyspace-events", "mndtexzhs$gEK", "g$shzxetdnKEm", "g$shzxetdnKEm"),
        ("notify-keyspace-events", "cKon", "nocK", "nocK"),
        ("notify-keyspace-events", "coEAn", "AnocE", "AocE"),
        ("notify-keyspace-events", "hVISTK", "hKSTIV", "hKSTIV"),
    ],
)
def test_a_value_is_understood_and_shown(name: str, text: str, value: Any, shown: str) -> None:
    config = Config()
    config.set_text(name, text)
    assert (config.get(name), config.get_text(name)) == (value, shown)


PERCENTILES = "latency-tracking-info-percentiles"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("50 99.9", "50 99.9"),
        ("0 12.50 100.0", "0 12.5 100"),
        ("5. .5 +5 1e1", "5 0.5 5 10"),
        ("99.123456789", "99.123457"),
        ("0.0000001", "0"),
    ],
)
def test_percentiles_are_shown_with_six_decimals_at_most(text: str, shown: str) -> None:
    config = Config()
    config.set_text(PERCENTILES, text)
    assert config.get_text(PERCENTILES) == shown


@pytest.mark.parametrize(
    "text", ["abc", "nan", "50,99", "50  99", " 50", "50\t", "1_0", "1e", ".", "\u0665"]
)
def test_percentiles_are_numbers_with_a_blank_between_them(text: str) -> None:
    assert refusal(PERCENTILES, text) == f"Invalid {PERCENTILES} parameters"


@pytest.mark.parametrize("text", ["101", "-1", "50 100.1", "inf", "-Infinity"])
def test_percentiles_lie_between_0_and_100(text: str) -> None:
    assert refusal(PERCENTILES, text) == f"{PERCENTILES} parameters should sit between [0.0,100.0]"


@pytest.mark.parametrize("text", ["", "abc", " 5", "05", "+5", "5.0", "\u0665", "9" * 20])
def test_a_number_has_one_spelling(text: str) -> None:
    assert refusal("timeout", text) == "argument couldn't be parsed into an integer"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("timeout", "-1", "argument must be between 0 and 2147483647 inclusive"),
        ("stream-idmp-duration", "0", "argument must be between 1 and 86400 inclusive"),
        ("stream-idmp-maxsize", "10001", "argument must be between 1 and 10000 inclusive"),
        ("proto-max-bulk-len", "1", f"argument must be between 1048576 and {2**63 - 1} inclusive"),
        ("stream-node-max-bytes", "-1", "argument must be a memory value"),
        ("stream-node-max-bytes", "1tb", "argument must be a memory value"),
        ("stream-node-max-bytes", "1bk", "argument must be a memory value"),
        ("stream-node-max-bytes", "\u0665", "argument must be a memory value"),
        ("unixsocketperm", "999", "argument couldn't be parsed into an integer"),
        ("unixsocketperm", "7777", "argument must be between 0 and 511 inclusive"),
        (
            "loglevel",
            "loud",
            "argument(s) must be one of the following: debug, verbose, notice, warning, nothing",
        ),
        (
            "notify-keyspace-events",
            "Q",
            "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
        ),
        ("appendonly", "maybe", "argument must be 'yes' or 'no'"),
        (
            "appendfsync",
            "sometimes",
            "argument(s) must be one of the following: everysec, always, no",
        ),
        ("appendfilename", "", "appendfilename can't be empty"),
        ("appenddirname", "a/b", "appenddirname can't be a path, just a name"),
        ("save", "900", "Invalid save parameters"),
        ("save", "0 1", "Invalid save parameters"),
        ("save", " ", "Invalid save parameters"),
        ("replicaof", "127.0.0.1", "wrong number of arguments"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name: str, text: str, reason: str) -> None:
    assert refusal(name, text) == reason


def test_limits_of_a_class_of_clients_leave_those_of_the_others() -> None:
    config = Config()
    config.set_text("client-output-buffer-limit", "Replica 1mb 2k 3 pubsub 4 5 6")
    config.set_text("client-output-buffer-limit", "normal 7 8 9")
    config.set_text("client-output-buffer-limit", "")
    assert (
        config.get_text("client-output-buffer-limit")
        == "normal 7 8 9 slave 1048576 2000 3 pubsub 4 5 6"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pubsub 1 2", "Wrong number of arguments in buffer limit configuration."),
        ("clients 1 2 3", "Invalid client class specified in buffer limit configuration."),
        *(
            (text, "Error in hard, soft or soft_seconds setting in buffer limit configuration.")
            for text in ("pubsub x 2 3", "pubsub 1 x 3", "pubsub 1 2 x", "pubsub 1 2 -3")
        ),
    ],
)
def test_limits_that_cannot_be_are_refused(text: str, reason: str) -> None:
    assert refusal("client-output-buffer-limit", text) == reason


def test_settings_are_given_as_keywords() -> None:
    config = Config(tcp_backlog=7, enable_debug_command=True, loglevel="debug")
    assert (config.tcp_backlog, config.enable_debug_command, config.loglevel) == (7, "yes", "debug")


def test_a_setting_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(AttributeError, match="there is no setting 'max-speed'"):
        _ = Config().max_speed
    with pytest.raises(AttributeError, match="there is no setting 'max-speed'"):
        Config(max_speed=3)


def test_a_listener_hears_of_the_value_and_of_every_change() -> None:
    config = Config(timeout=1)
    heard: list[int] = []
    config.listen("timeout", heard.append)
    config.set_text("timeout", "2")
    config.set_text("timeout", "2")
    assert heard == [1, 2]


def test_several_settings_change_together() -> None:
    config = Config()
    config.change([("timeout", "5"), ("hz", "20")])
    assert (config.timeout, config.hz) == (5, 20)


def test_nothing_changes_if_one_of_several_cannot() -> None:
    config = Config()
    with pytest.raises(BadSetting) as caught:
        config.change([("timeout", "5"), ("hz", "fast")])
    assert caught.value.name == "hz"
    assert (config.timeout, config.hz) == (0, 10)


def test_a_change_that_a_listener_refuses_is_undone_with_those_before_it() -> None:
    config = Config(maxclients=10)
    heard: list[int] = []

    def refuse(value: int) -> None:
        if value > 1000:
            raise BadSetting("too fast")

    config.listen("timeout", heard.append)
    config.listen("maxclients", refuse)
    with pytest.raises(BadSetting, match="too fast") as caught:
        config.change([("timeout", "5"), ("maxclients", "2000"), ("hz", "20")])
    assert caught.value.name == "maxclients"
    assert (config.timeout, config.maxclients, config.hz) == (0, 10, 10)
    assert heard == [0, 5, 0]
