"""The image in a real engine, driven through the port that it publishes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pexpect
import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, RedisError

from server.runtime.version import PENSTOCK_VERSION, REDIS_VERSION
from tests.clients.observing import until
from tests.container.conftest import HOST, TIMEOUT_S, Containers, docker
from tests.support.process import ROOT

MEGABYTE = 10**6


def test_redis_cli_and_redis_py_reach_it_through_the_published_port(
    containers: Containers,
) -> None:
    container = containers.start()
    with container.client() as client:
        assert client.xadd("orders", {"item": "pen"}, id="1-0") == "1-0"
    redis_cli = shutil.which("redis-cli")
    assert redis_cli is not None, "redis-cli is not installed"
    printed = subprocess.run(
        [redis_cli, "-h", HOST, "-p", str(container.port), "XRANGE", "orders", "-", "+"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == "1-0\nitem\npen\n"


def test_its_labels_say_what_it_was_built_from(containers: Containers) -> None:
    labels = json.loads(docker("inspect", containers.image))[0]["Config"]["Labels"]
    told = {name: labels[f"org.opencontainers.image.{name}"] for name in ("version", "source")}
    assert told == {"version": PENSTOCK_VERSION, "source": "https://git.example/penstock"}


def test_sigterm_reaches_the_server_which_ends_at_once(containers: Containers) -> None:
    container = containers.start()
    with container.client() as client:
        client.xadd("orders", {"item": "pen"})
        # Whoever waits does not hold it up.
        connection = client.connection_pool.get_connection()
        connection.send_command("XREAD", "BLOCK", 0, "STREAMS", "orders", "$")
        assert container.stop() == 0
        connection.disconnect()
    log = docker("logs", container.name)
    assert "Received SIGTERM" in log
    assert "Bye" in log


def test_a_volume_keeps_streams_groups_and_pending_entries(containers: Containers) -> None:
    volume = ("--volume", f"{containers.volume()}:/data")
    first = containers.start("--appendonly", "yes", options=volume)
    with first.client() as client:
        client.xgroup_create("orders", "packers", id="0", mkstream=True)
        client.xadd("orders", {"item": "pen"}, id="1-0")
        client.xreadgroup("packers", "ann", {"orders": ">"})
    assert first.stop() == 0

    docker("start", first.name)
    with first.client() as client:
        assert client.xlen("orders") == 1
    assert first.stop() == 0

    second = containers.start("--appendonly", "yes", options=volume)
    with second.client() as client:
        [row] = client.xpending_range("orders", "packers", "-", "+", 10)
        assert (row["message_id"], row["consumer"], row["times_delivered"]) == ("1-0", "ann", 1)
        assert client.xadd("orders", {"item": "ink"}, id="2-0") == "2-0"


def test_it_needs_no_root_no_capability_and_no_writable_root_filesystem(
    containers: Containers,
) -> None:
    options = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    container = containers.start("--appendonly", "yes", options=options)
    with container.client() as client:
        client.xadd("orders", {"item": "pen"})
        client.bgrewriteaof()
        until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0)
        assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    assert docker("exec", container.name, "id", "-u").strip() == "999"
    assert docker("exec", container.name, "ls", "/data").split() == ["appendonlydir"]


def test_a_mounted_file_configures_it_and_arguments_win(
    containers: Containers, tmp_path: Path
) -> None:
    file = tmp_path / "my.conf"
    file.write_text("bind 127.0.0.1\nport 7000\nstream-node-max-entries 7\ntimeout 30\n")
    tmp_path.chmod(0o755)
    file.chmod(0o644)
    options = ("--volume", f"{file}:/etc/penstock/my.conf:ro")
    arguments = ("/etc/penstock/my.conf", "--timeout", "60")
    container = containers.start(*arguments, options=options, port=7000)
    with container.client() as client:
        assert client.config_get("stream-node-max-entries") == {"stream-node-max-entries": "7"}
        assert client.config_get("timeout") == {"timeout": "60"}


def test_it_is_healthy_on_whatever_port_it_listens(containers: Containers) -> None:
    container = containers.start("--port", "7000", port=7000)
    container.client().close()
    assert docker("exec", container.name, "penstock-health") == ""
    until(lambda: container.inspect()["State"]["Health"]["Status"] == "healthy")


def test_it_is_healthy_with_a_unix_socket_alone(containers: Containers) -> None:
    container = containers.start("--bind", "", "--unixsocket", "penstock.sock")
    until(lambda: container.inspect()["State"]["Health"]["Status"] == "healthy")
    assert docker("exec", container.name, "penstock-health", "--ready") == ""


def test_it_is_not_healthy_without_a_server(containers: Containers) -> None:
    told = containers.run("penstock-health", status=1)
    assert told == "no process of this user listens on a socket\n"


def test_it_warns_once_that_no_password_is_required(containers: Containers) -> None:
    container = containers.start()
    container.client().close()
    assert docker("logs", container.name).count("No password is required") == 1


def test_a_password_in_the_environment_is_asked_for(containers: Containers) -> None:
    container = containers.start(options=("--env", "PENSTOCK_PASSWORD=sesame"))
    with container.client("sesame") as client:
        assert client.acl_whoami() == "default"
    with Redis(HOST, container.port) as stranger, pytest.raises(AuthenticationError):
        stranger.ping()
    until(lambda: container.inspect()["State"]["Health"]["Status"] == "healthy")
    assert "No password is required" not in docker("logs", container.name)


@pytest.mark.parametrize("content", ["", "# protected-mode no\n"])
def test_a_file_may_turn_protected_mode_on(
    containers: Containers, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "my.conf"
    tmp_path.chmod(0o755)
    mounted = ("--volume", f"{file}:/etc/my.conf:ro")
    file.write_text(content)
    file.chmod(0o644)
    with containers.start("/etc/my.conf", options=mounted).client() as client:
        assert client.config_get("protected-mode") == {"protected-mode": "no"}
    file.write_text("  Protected-Mode yes\n")
    container = containers.start("/etc/my.conf", options=mounted)
    words = ("exec", container.name, "penstock-health", "--ready")
    until(lambda: container.inspect()["State"]["Health"]["Status"] == "healthy")
    assert docker(*words) == ""
    with Redis(HOST, container.port) as client, pytest.raises(RedisError, match="DENIED"):
        client.ping()


@pytest.mark.parametrize("arguments", [(), ("penstock",)], ids=["options", "program"])
def test_a_wrong_option_ends_it_with_one_line(
    containers: Containers, arguments: tuple[str, ...]
) -> None:
    told = containers.run(*arguments, "--prot", "7000", status=1)
    assert told == "penstock: command line: prot: unknown setting; did you mean 'port'?\n"


def test_commands_for_an_image_of_redis_work(containers: Containers) -> None:
    container = containers.start("redis-server", "--appendonly", "yes")
    with container.client() as client:
        assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_the_health_check_of_a_service_that_was_an_image_of_redis_works(
    containers: Containers,
) -> None:
    container = containers.start(
        options=("--health-cmd", "redis-cli ping", "--health-interval", "1s")
    )
    until(lambda: container.inspect()["State"]["Health"]["Status"] == "healthy")
    assert container.inspect()["State"]["Health"]["Log"][0]["Output"] == "PONG\n"


def test_redis_cli_is_at_hand_in_a_terminal(containers: Containers) -> None:
    container = containers.start(options=("--env", "PENSTOCK_PASSWORD=sesame"))
    container.client("sesame").close()
    # Another terminal would be asked where its cursor is.
    command = ["exec", "-it", "--env", "TERM=dumb", container.name, "redis-cli"]
    terminal: Any = pexpect.spawn("docker", command, encoding="utf-8", timeout=TIMEOUT_S)
    for line, reply in (
        ("PING", "NOAUTH Authentication required"),
        ("AUTH sesame", "OK"),
        ("XADD orders 1-0 item pen", '"1-0"'),
        ("XLEN orders", "(integer) 1"),
    ):
        terminal.expect_exact("127.0.0.1:6379> ")
        terminal.sendline(line)
        terminal.expect_exact(reply)
    terminal.close(force=True)
    assert docker("exec", container.name, "ls", "-A", "/data") == ""


def test_of_debians_package_there_is_redis_cli_and_no_second_server(
    containers: Containers,
) -> None:
    assert containers.run("sh", "-c", "ls /usr/bin/redis*") == "/usr/bin/redis-cli\n"


def test_other_programs_of_the_image_are_reached(containers: Containers) -> None:
    told = f"Penstock server v={REDIS_VERSION} penstock={PENSTOCK_VERSION} "
    assert containers.run("--version").startswith(told)
    assert " build=compiled -O2 mypyc " in containers.run("--version")
    assert containers.run("sh", "-c", "echo $0") == "sh\n"
    assert re.search(r"\bcheck-aof\b", containers.run("check-aof", "--help"))


def test_scripts_run(containers: Containers) -> None:
    with containers.start().client() as client:
        assert client.eval("return redis.call('XLEN', KEYS[1])", 1, "orders") == 0


def test_streams_are_copied_with_a_bar_on_the_terminal(containers: Containers) -> None:
    container = containers.start()
    command = ("penstock", "import", "redis://localhost/0", "--to", "redis://localhost/5")
    with container.client() as client:
        client.xadd("orders", {"item": "pen"}, id="1-0")
        shown = docker("exec", "--tty", container.name, *command)
        assert "1 stream: 1 equal" in shown
        client.select(5)
        assert client.xrange("orders") == [("1-0", {"item": "pen"})]


def _fetched(port: int, path: str) -> str:
    """What is served over HTTP; nothing as long as it is not."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=30) as response:
            text: str = response.read().decode()
            return text
    except OSError:
        return ""


def test_metrics_are_served_through_a_published_port_and_the_check_of_health_is_at_ease(
    containers: Containers,
) -> None:
    container = containers.start("--metrics-port", "9121", port=9121)
    until(lambda: _fetched(container.port, "/readyz") == "ready\n")
    assert "\nredis_up 1.0\n" in _fetched(container.port, "/metrics")
    docker("exec", container.name, "penstock-health")


def test_what_it_says_of_itself(image: str) -> None:
    [found] = json.loads(docker("image", "inspect", image))
    config: dict[str, Any] = found["Config"]
    assert config["User"] == "999:999"
    assert list(config["ExposedPorts"]) == ["6379/tcp"]
    assert list(config["Volumes"]) == ["/data"]
    assert config["Entrypoint"] == ["penstock-entrypoint"]


def test_it_adds_to_its_base_what_the_documentation_says(image: str) -> None:
    stated = re.search(r"adds (\d+) MB", (ROOT / "docs" / "container.md").read_text())
    assert stated is not None
    rows = docker("history", "--no-trunc", "--format", "{{json .}}", "--human=false", image)
    layers = [json.loads(row) for row in rows.splitlines()]
    first = max(index for index, layer in enumerate(layers) if "groupadd" in layer["CreatedBy"])
    added = sum(int(layer["Size"]) for layer in layers[: first + 1])
    # Another version of a package may be a little smaller or bigger.
    assert abs(added / MEGABYTE - int(stated[1])) < 2
