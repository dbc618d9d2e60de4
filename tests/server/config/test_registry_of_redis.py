"""Settings of Redis 8.0: all are known, and what each is here is said where it is set."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Final

import pytest

from server.app import Server
from server.config.file import ConfigError, apply, check, read_text, rewritten
from server.config.registry import OLDER_NAMES, SETTINGS, UNSUPPORTED, UNUSED, Config
from server.config.types import Choice, Lines, Switch
from server.runtime.log import Log
from tests.support.direct import Direct, DirectClient

OF_REDIS: Final[dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "config-8.0.6.json").read_text()
)
"""What CONFIG GET * of Redis 8.0.6 gives before anything is set, and what CONFIG SET says to
``@@bad`` and to a number that is too small."""

LOOKED_INTO: Final = {
    "cluster-announce-hostname",
    "cluster-announce-human-nodename",
    "locale-collate",
    "oom-score-adj-values",
    "proc-title-template",
}
"""Settings whose words Redis knows, and which are taken here as they are."""

WITHOUT_EFFECT: Final = [
    name
    for name in OF_REDIS
    if SETTINGS[name].unused or SETTINGS[name].unsupported or name in ("save", "pidfile")
]


def failed(name: str, reason: str) -> bytes:
    text = f"-ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}\r\n"
    return text.encode()


def read(text: str) -> Config:
    config = Config()
    read_text(config, text.encode(), "redis.conf")
    return config


# --- what Redis has --------------------------------------------------------------------------


def test_every_setting_of_redis_is_shown(client: DirectClient) -> None:
    shown = [name.decode() for name in client.ask("CONFIG", "GET", "*")[::2]]
    assert len(shown) == len(set(shown))
    assert set(shown) >= OF_REDIS.keys()
    assert len(OF_REDIS) == 203


@pytest.mark.parametrize("name", sorted({*WITHOUT_EFFECT} - {"aof-use-rdb-preamble", "save"}))
def test_a_setting_without_effect_has_the_default_of_redis(name: str) -> None:
    assert Config().get_text(name) == OF_REDIS[name][0]


@pytest.mark.parametrize("name", sorted({*WITHOUT_EFFECT} - LOOKED_INTO))
def test_what_is_no_value_is_refused_in_the_words_of_redis(client: DirectClient, name: str) -> None:
    for value, reason in zip(("@@bad", "-99999999999999"), OF_REDIS[name][1:], strict=True):
        if reason != "+OK":
            assert client.send("CONFIG", "SET", name, value) == failed(name, reason)
    assert client.ask("CONFIG", "GET", name) == [name.encode(), Config().get_text(name).encode()]


@pytest.mark.parametrize(("newer", "older"), OLDER_NAMES.items())
def test_two_names_of_a_setting_have_one_value(
    direct: Direct, client: DirectClient, newer: str, older: str
) -> None:
    if not SETTINGS[newer].mutable:
        assert client.ask("CONFIG", "GET", older, newer)[1::2] == [b"", b""]
        return
    value = {"yes": "no", "no": "yes"}.get(OF_REDIS[older][0], "7")
    assert client.send("CONFIG", "SET", older, value) == b"+OK\r\n"
    assert client.ask("CONFIG", "GET", newer)[1] == value.encode()
    assert client.send("CONFIG", "SET", older, value, newer, OF_REDIS[newer][0]) == b"+OK\r\n"
    assert client.ask("CONFIG", "GET", older)[1] == OF_REDIS[newer][0].encode()


# --- settings without an effect --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (each.name, "no" if each.default else "yes")
            for each in UNUSED
            if isinstance(each, Switch) and each.mutable
        ),
        *(
            (each.name, each.words[-1])
            for each in UNUSED
            if isinstance(each, Choice) and each.mutable
        ),
        ("list-compress-depth", "4"),
        ("masterauth", "sesame"),
        ("oom-score-adj-values", "0 100 200"),
        ("replica-announce-ip", "10.0.0.1"),
    ],
)
def test_a_setting_without_effect_is_taken_kept_and_told_of(name: str, value: str) -> None:
    messages = io.StringIO()
    direct = Direct()
    direct.server.state.log = Log(messages)
    client = direct.client()
    assert client.send("CONFIG", "SET", name, value) == b"+OK\r\n"
    assert client.ask("CONFIG", "GET", name)[1] == value.encode()
    assert messages.getvalue().endswith(f" * Taken without effect: {name}\n")


def test_a_setting_with_an_effect_is_not_told_of() -> None:
    messages = io.StringIO()
    direct = Direct()
    direct.server.state.log = Log(messages)
    direct.client().send("CONFIG", "SET", "timeout", 5)
    assert messages.getvalue() == ""


def test_a_rewrite_keeps_what_has_no_effect_for_a_redis_that_reads_the_file_again() -> None:
    text = "io-threads 4\nhash-max-ziplist-entries 64\nsave 900 1 300 10\ndaemonize yes\n"
    assert rewritten(read(text), text) == text


def test_a_setting_is_written_once_whichever_of_its_names_the_file_has() -> None:
    config = read("hash-max-ziplist-entries 64")
    assert rewritten(config, "hash-max-ziplist-entries 1\nhash-max-listpack-entries 1\n") == (
        "hash-max-ziplist-entries 64\n"
    )
    assert rewritten(config, "") == (
        "\n# Generated by CONFIG REWRITE\nhash-max-listpack-entries 64\n"
    )


def test_lines_that_redis_has_given_up_are_taken_and_not_listed() -> None:
    direct = Direct()
    direct.server.state.config = config = read("io-threads-do-reads yes")
    check(config)
    client = direct.client()
    assert client.ask("CONFIG", "GET", "io-threads-do-reads")[1] == b"yes"
    assert client.ask("CONFIG", "GET", "list-max-ziplist-value*") == []


# --- settings that cannot be kept ------------------------------------------------------------

UNKEPT: Final = [
    ("cluster-enabled yes", "argument must be no: there is no cluster: "),
    ("replicaof 127.0.0.1 6380", "argument must be empty: the server follows no other: "),
    ("loadmodule /lib/search.so", "argument must be empty: modules are libraries for Redis: "),
    ("rename-command FLUSHALL ''", "argument must be empty: commands keep their names: "),
    ("tls-ciphersuites TLS_AES_128_CCM_SHA256", "argument must be empty: Python leaves them "),
    ("hide-user-data-from-log yes", "argument must be no: messages may name keys and users: "),
    ("shutdown-on-sigint nosave", "argument must be default: a signal ends the server like "),
    ("shutdown-on-sigterm save", "argument must be default: a signal ends the server like "),
]


def test_all_of_them_are_tried() -> None:
    assert [text.split()[0] for text, _ in UNKEPT] == [each.name for each in UNSUPPORTED]


@pytest.mark.parametrize(("text", "reason"), UNKEPT)
def test_what_cannot_be_kept_is_refused_with_what_to_do_instead(text: str, reason: str) -> None:
    config = read(f"timeout 5\n{text}")
    with pytest.raises(ConfigError) as caught:
        check(config)
    message = str(caught.value)
    assert message.startswith(f"redis.conf, line 2: {text.split()[0]}: {reason}")
    assert message.endswith(" ('--ignore-unsupported yes' starts the server anyway)")


@pytest.mark.parametrize(("text", "reason"), UNKEPT)
def test_what_cannot_be_kept_is_taken_if_that_is_to_be_ignored(text: str, reason: str) -> None:
    config = read(f"{text}\nignore-unsupported yes")
    check(config)
    assert list(config.unkept()) == [text.split()[0]]
    assert rewritten(config, "").splitlines()[2:] == ["ignore-unsupported yes", text] or (
        text.split()[0] in rewritten(config, "")
    )


def test_a_later_line_takes_back_what_cannot_be_kept() -> None:
    config = read("cluster-enabled yes\nreplicaof 127.0.0.1 6380\nmaxmemory 1gb")
    read_text(config, b"maxmemory-policy allkeys-lru", "redis.conf")
    apply(config, "cluster-enabled", ["no"], "command line")
    apply(config, "slaveof", ["no", "one"], "command line")
    with pytest.raises(ConfigError, match=r"^redis.conf, line 1: maxmemory-policy: argument must"):
        check(config)
    apply(config, "maxmemory", ["0"], "command line")
    check(config)


def test_config_set_refuses_what_cannot_be_kept(client: DirectClient) -> None:
    reply = client.send("CONFIG", "SET", "timeout", 5, "Shutdown-On-Sigterm", "nosave")
    assert reply is not None
    assert reply.startswith(failed("Shutdown-On-Sigterm", "argument must be default")[:-2])
    assert client.ask("CONFIG", "GET", "shutdown-on-sigterm", "timeout")[1::2] == [b"default", b"0"]


def test_keys_cannot_be_evicted_where_memory_is_limited(client: DirectClient) -> None:
    start = failed("maxmemory-policy", "argument must be noeviction where maxmemory is set")[:-2]
    assert client.send("CONFIG", "SET", "maxmemory-policy", "allkeys-lru") == b"+OK\r\n"
    refused = client.send("CONFIG", "SET", "maxmemory", "100gb")
    assert refused is not None
    assert refused.startswith(start)
    assert client.ask("CONFIG", "GET", "maxmemory")[1] == b"0"
    both = ("maxmemory", "100gb", "maxmemory-policy", "noeviction")
    assert client.send("CONFIG", "SET", *both) == b"+OK\r\n"
    refused = client.send("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
    assert refused is not None
    assert refused.startswith(start)
    assert b"maxmemory_policy:noeviction\r\n" in (client.send("INFO", "memory") or b"")


def test_info_tells_what_is_so_whatever_is_ignored() -> None:
    direct = Direct(
        ignore_unsupported="yes",
        maxmemory="100gb",
        maxmemory_policy="allkeys-lru",
        cluster_enabled="yes",
        replicaof="127.0.0.1 6380",
    )
    told = direct.client().send("INFO") or b""
    for line in (b"maxmemory_policy:noeviction", b"cluster_enabled:0", b"role:master"):
        assert b"\r\n" + line + b"\r\n" in told


# --- points of time at which to save ---------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("save 900 1\nsave 300 10", "900 1 300 10"),
        ("save 900 1\nsave ''\nsave 60 1", "60 1"),
        ("save 900 1\nsave ''", ""),
        ("save 900 1 300 10", "900 1 300 10"),
    ],
)
def test_lines_of_save_points_add_up_and_an_empty_one_forgets_them(text: str, shown: str) -> None:
    assert read(text).get_text("save") == shown


def test_config_set_replaces_all_save_points() -> None:
    config = read("save 900 1")
    config.set_text("save", "60 2")
    assert config.get_text("save") == "60 2"


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"save": "60 1"}, 1),
        ({"save": "60 1", "appendonly": "yes"}, 0),
        ({"save": "60 1", "dbfilename": "dump.rdb"}, 0),
        ({}, 0),
    ],
)
def test_save_points_without_a_place_to_save_to_are_warned_of(
    settings: dict[str, str], warned: int
) -> None:
    messages = io.StringIO()
    server = Server(Config(**settings), log=Log(messages))
    assert messages.getvalue().count(" # save is '60 1', but nothing is saved by itself") == warned
    server.state.config.set_text("save", "60 1 30 2")
    assert messages.getvalue().count(" # save is '60 1 30 2', but ") == int(
        "appendonly" not in settings and "dbfilename" not in settings
    )


def test_a_file_that_is_not_written_by_itself_is_warned_of() -> None:
    messages = io.StringIO()
    server = Server(Config(dbfilename="dump.rdb"), log=Log(messages))
    warning = " # 'dump.rdb' is written by SAVE and BGSAVE only, as save has no points of time\n"
    assert messages.getvalue().endswith(warning)
    server.state.config.set_text("save", "60 1")
    server.state.config.set_text("save", "")
    assert messages.getvalue().count(warning) == 2


def test_only_settings_are_left_out_of_the_list_that_have_lines_of_their_own() -> None:
    hidden = [name for name, each in SETTINGS.items() if each.repeated]
    assert all(isinstance(SETTINGS[name], Lines) for name in hidden)
    assert not OF_REDIS.keys() & set(hidden)
