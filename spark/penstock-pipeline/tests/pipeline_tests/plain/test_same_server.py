"""Two spellings of one server are recognised, and what is wrong is told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_pipeline.errors import InvalidFile
from penstock_pipeline.file import load
from penstock_pipeline.options import share_server
from pipeline_tests.plain.files import text, write


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"url": "redis://localhost"}),
        ({"url": "redis://h"}, {"url": "redis://H:6379/0"}),
        ({"url": "redis://h"}, {"url": "valkey://user:password@h:6379"}),
        ({"url": "redis://h:7000/2"}, {"host": "h", "port": "7000", "dbNum": "2"}),
        ({"url": "redis://[::1]:7000"}, {"url": "redis://127.0.0.1:7000"}),
        ({"url": "redis://a,redis://b"}, {"url": "redis://b/0"}),
        ({"url": "redis+cluster://a:7000,b:7000"}, {"url": "redis+cluster://b:7000"}),
        ({"url": "unix:///s?db=1"}, {"url": "unix:///s?db=1"}),
    ],
)
def test_the_same_server_is_recognised(one: dict[str, str], other: dict[str, str]) -> None:
    assert share_server(one, other)
    assert share_server(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "redis://h"}, {"url": "redis://h/1"}),
        ({"url": "redis://h"}, {"url": "redis://h:7000"}),
        ({"url": "redis://h"}, {"url": "redis://i"}),
        ({"url": "unix:///s"}, {"url": "unix:///t"}),
        ({"url": "nonsense"}, {"url": "nonsense"}),
    ],
)
def test_other_servers_are_told_apart(one: dict[str, str], other: dict[str, str]) -> None:
    assert not share_server(one, other)


def problems(folder: Path, content: str, **environment: str) -> list[str]:
    with pytest.raises(InvalidFile) as caught:
        load(write(folder, content), environment)
    return [str(problem) for problem in caught.value.problems]


def test_a_cycle_is_found_whatever_the_spelling(tmp_path: Path) -> None:
    sink = '[[sink]]\nname = "s"\ntype = "stream"\nstream = "orders"\nhost = "LOCALHOST"\n'
    assert problems(tmp_path, text("redis://127.0.0.1:6379", more=sink)) == [
        "sink[1].stream: is 'orders', which the source reads: the pipeline would read what it "
        "writes"
    ]


def test_a_variable_that_is_not_set_is_the_only_problem(tmp_path: Path) -> None:
    sink = '[[sink]]\nname = "s"\ntype = "stream"\nstream = "copy"\n'
    sink += '[dead_letters]\nstream = "dead"\n[parse.columns]\na = "int"\n'
    assert problems(tmp_path, text("${REDIS_URL}", more=sink)) == [
        "source.url: the environment variable REDIS_URL is not set"
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('redis.socket_timeout = "soon"', "source.redis: option 'redis.socket_timeout' is 'soon'"),
        ('redis.ssl_check_hostname = "no"', "source.redis: option 'redis.ssl_check_hostname'"),
        ('redis.nonsense = "x"', "source.redis: option 'redis.nonsense' is 'not an option'"),
        ('"redis.nonsense" = "x"', "source.redis.nonsense: option 'redis.nonsense' is"),
    ],
)
def test_options_of_the_client_are_checked_with_the_file(
    tmp_path: Path, line: str, problem: str
) -> None:
    (found,) = problems(tmp_path, text("redis://h", line))
    assert found.startswith(problem)


def test_options_in_a_url_are_checked_with_the_file(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, text("redis://h?socket_timeout=soon"))
    assert "option 'url?socket_timeout' is 'soon'; allowed: a number of seconds" in found
