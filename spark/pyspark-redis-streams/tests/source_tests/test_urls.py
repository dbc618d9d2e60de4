"""URLs of servers."""

from __future__ import annotations

import pytest

from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.values import ServerUrl, parse_urls


def only(text: str) -> ServerUrl:
    (url,) = parse_urls(text)
    return url


def test_a_url_says_where_the_server_is() -> None:
    assert only("redis://example.org:7000/3") == ServerUrl((("example.org", 7000),), database=3)
    assert only("redis://[::1]:7000") == ServerUrl((("::1", 7000),))


def test_host_port_and_database_have_the_usual_defaults() -> None:
    assert only("redis://") == only("valkey://127.0.0.1:6379/0")


def test_credentials_are_decoded() -> None:
    url = only("rediss://us%40er:p%2Cw%3A%2F@host")
    assert (url.username, url.password, url.tls) == ("us@er", "p,w:/", True)
    assert only("redis://:pw@host").username is None


def test_nothing_secret_shows_in_a_url_or_its_label() -> None:
    url = only("redis://user:secret@host/0?ssl_password=hidden")
    for text in (repr(url), str(url), url.label):
        assert not any(word in text for word in ("user", "secret", "hidden"))
    assert url.label == "host:6379/0"


def test_a_socket_is_found_by_its_path() -> None:
    url = only("unix://user:pw@/tmp/redis%20sock?db=2")
    assert (url.path, url.database, url.nodes, url.password) == ("/tmp/redis sock", 2, (), "pw")
    assert url.label == "/tmp/redis sock/2"


def test_a_cluster_has_several_nodes() -> None:
    url = only("rediss+cluster://u:p@a:7000,b:7001,c")
    assert url.nodes == (("a", 7000), ("b", 7001), ("c", 6379))
    assert (url.cluster, url.tls, url.label) == (True, True, "cluster a:7000,b:7001,c:6379")


def test_sentinels_know_a_primary_by_its_name() -> None:
    url = only("redis+sentinel://u:p@a,b:7001/main%2Fone/2?sentinel_password=q")
    assert (url.nodes, url.service) == ((("a", 26379), ("b", 7001)), "main/one")
    assert (url.database, url.username, url.password) == (2, "u", "p")
    assert url.label == "sentinel a:26379,b:7001/main/one/2"
    assert only("valkeys+sentinel://a/main") == ServerUrl((("a", 26379),), tls=True, service="main")


def test_commas_separate_servers() -> None:
    one, two, three = parse_urls("redis://a:1, redis+cluster://b:2,c:3,redis+sentinel://d,e:4/m")
    assert (one.label, two.label) == ("a:1/0", "cluster b:2,c:3")
    assert three.label == "sentinel d:26379,e:4/m/0"


def test_settings_of_the_client_may_follow() -> None:
    assert only("redis://a?socket_timeout=3").settings == (("socket_timeout", "3"),)


@pytest.mark.parametrize(
    "text",
    [
        *("", "host:6379", "http://secret", "redis://secret:x", "redis://h:70000"),
        *("redis://h/secret", "redis+cluster://h/1", "unix+redis://secret", "redis://[::1"),
        *("redis+sentinel://h", "unix+sentinel://secret/main"),
        *("redis://a,redis://u:secret@a", "redis://h:secret:1/0"),
    ],
)
def test_what_is_no_url_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_urls(text)
    message = str(caught.value)
    assert message.startswith("option 'url' is ")
    assert "; allowed: redis://" in message
    assert "secret" not in message
    assert caught.value.__cause__ is None
