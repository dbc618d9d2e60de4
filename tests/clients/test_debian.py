"""What Debian's packages have: phpredis and redis-rb, which tell the story, and two programs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis

from tests.clients.conftest import Clock
from tests.clients.observing import until
from tests.clients.programs import (
    TIMEOUT_S,
    Program,
    fail_to_create_twice,
    fetch,
    replace_a_killed_consumer,
    serving,
)
from tests.clients.story import ITEMS, Observer
from tests.support.ports import free_port
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.slow

FOLDER: Final = Path(__file__).parent / "debian"

LIBRARIES: Final = {
    "phpredis": ("php-redis", "php", "phpredis.php"),
    "redis-rb": ("ruby-redis", "ruby", "redis-rb.rb"),
}
"""The package of each library, and the program that uses it."""


def version(package: str) -> str:
    """The version of what Debian has packed; empty if it is not installed."""
    command = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", package]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""
    found = re.match(r"installed (?:\d+:)?(\d+(?:\.\d+)*)", shown)
    return found[1] if found else ""


def need(package: str) -> None:
    """Skips the test if a package is not installed."""
    if not version(package):
        pytest.skip(f"needs Debian's package {package}")


@pytest.fixture
def protocol() -> int:
    """None of them speaks RESP3."""
    return 2


# --- libraries -------------------------------------------------------------------------------


@pytest.fixture(params=LIBRARIES)
def program(request: pytest.FixtureRequest, penstock: PenstockThread, protocol: int) -> Program:
    package, interpreter, file = LIBRARIES[request.param]
    need(package)
    return Program(interpreter, str(FOLDER / file), str(penstock.port), str(protocol))


def test_a_killed_consumer_is_replaced(program: Program, observer: Observer) -> None:
    replace_a_killed_consumer(program, observer)


def test_an_error_of_the_server_ends_the_program(program: Program) -> None:
    fail_to_create_twice(program)


# --- programs --------------------------------------------------------------------------------

Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """What an exporter tells of each group and stream, by name and labels; and if all went well."""
    return {
        (sample.name.removeprefix("redis_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if re.fullmatch(r"redis_(up|stream_.*|exporter_last_scrape_error)", sample.name)
    }


def test_redis_exporter_tells_of_streams_and_groups(
    penstock: PenstockThread, client: Redis, clock: Clock
) -> None:
    need("prometheus-redis-exporter")
    for entry_id, fields in ITEMS.items():
        client.xadd("orders", fields, id=entry_id)  # type: ignore[arg-type]
    client.xreadgroup("packers", "ann", {"orders": ">"}, count=2)
    clock.advance(1500)
    address, port = f"redis://{penstock.host}:{penstock.port}", free_port()
    listen = f"127.0.0.1:{port}"
    with serving(
        "prometheus-redis-exporter",
        *(f"--redis.addr={address}", f"--web.listen-address={listen}", "--check-streams=orders"),
    ):
        until(lambda: "redis_up" in fetch(f"http://{listen}/metrics"))
        told = samples(fetch(f"http://{listen}/metrics"))
    stream, group = ("db0", "orders"), ("db0", "packers", "orders")
    assert told == {
        ("up",): 1,
        ("exporter_last_scrape_error", ""): 0,
        ("stream_length", *stream): 3,
        ("stream_groups", *stream): 1,
        ("stream_last_generated_id", *stream): 3,
        ("stream_radix_tree_keys", *stream): 1,
        ("stream_radix_tree_nodes", *stream): 2,
        ("stream_group_consumers", *group): 1,
        ("stream_group_messages_pending", *group): 2,
        ("stream_group_last_delivered_id", *group): 2,
        ("stream_group_consumer_messages_pending", "ann", *group): 2,
        ("stream_group_consumer_idle_seconds", "ann", *group): 1.5,
    }


CONFIGURATION: Final = """\
@version: 3.35
source lines { stdin(flags(no-parse)); };
destination stream {
  redis(host("127.0.0.1") port(%d) command("XADD", "logs", "*", "line", "${MESSAGE}"));
};
log { source(lines); destination(stream); };
"""


def test_syslog_ng_adds_each_line_to_a_stream(
    penstock: PenstockThread, client: Any, tmp_path: Path
) -> None:
    need("syslog-ng-mod-redis")
    files = {
        "cfgfile": tmp_path / "syslog-ng.conf",
        **{name: tmp_path / name for name in ("persist-file", "control", "pidfile")},
    }
    files["cfgfile"].write_text(CONFIGURATION % penstock.port)
    options = (f"--{name}={path}" for name, path in files.items())
    ended = subprocess.run(
        ["/usr/sbin/syslog-ng", "--foreground", "--no-caps", "--stderr", *options],
        input="pen\nink and paper\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = [fields for _, fields in client.xrange("logs")]
    assert lines == [{"line": "pen"}, {"line": "ink and paper"}]
