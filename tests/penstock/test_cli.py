"""The ``penstock`` command, mostly as a real process."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import cli
from server.config.registry import SETTINGS, Config
from server.runtime.log import Log
from server.runtime.version import BUILD, build_line
from tests.support.direct import Direct
from tests.support.missing import check_packages
from tests.support.ports import free_port
from tests.support.process import ROOT, PenstockProcess, run_penstock
from tests.support.servers import PenstockThread

PING = b"*1\r\n$4\r\nPING\r\n"
PONG = b"+PONG\r\n"


# --- starting and stopping -------------------------------------------------------------------


def test_a_server_of_a_test_has_an_empty_folder_of_its_own() -> None:
    asked, other = b"CONFIG GET dir\r\n", PenstockThread()
    with PenstockProcess("--port", "0", "--bind", "127.0.0.1") as process, other:
        own = Path(process.ask(asked).split(b"\r\n")[4].decode())
        folders = [own, *(Path(each.server.state.config.dir) for each in (other, Direct()))]
        assert len(set(folders)) == 3
        assert [folder for folder in folders if folder.is_relative_to(ROOT)] == []
        assert [*own.iterdir()] == []
    ended = run_penstock("--port", "0", "--dir", "server")
    assert ended.stderr.endswith("/server': No such file or directory\n")


def test_the_ready_line_says_which_port_was_free() -> None:
    with PenstockProcess("--port", "0", "--bind", "127.0.0.1") as penstock:
        host, port = penstock.address
        assert (host, port > 0) == ("127.0.0.1", True)
        assert penstock.lines[-1].endswith(f"* Ready to accept connections on 127.0.0.1:{port}")
        assert penstock.ask(PING) == PONG


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_shuts_the_server_down_while_clients_are_connected(how: signal.Signals) -> None:
    with (
        PenstockProcess("--port", "0") as penstock,
        socket.create_connection(penstock.address) as client,
    ):
        client.sendall(PING)
        assert client.recv(100) == PONG
        assert penstock.stop(how) == 0
        assert client.recv(100) == b""
    assert penstock.errors == ""
    messages = [line.split(" * ")[-1] for line in penstock.lines[-3:]]
    assert messages == [f"Received {how.name}", "Shutting down", "Bye"]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE])
def test_a_signal_that_redis_lives_through_ends_nothing(number: signal.Signals) -> None:
    with PenstockProcess("--port", "0") as penstock:
        penstock.process.send_signal(number)
        assert penstock.ask(PING) == PONG
        assert penstock.stop() == 0
    told = [line.split(" * ")[-1] for line in penstock.lines]
    hangup = "Received SIGHUP: the log file is the one at its path"
    assert (hangup in told) == (number == signal.SIGHUP)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2])
def test_no_signal_after_the_first_keeps_a_server_from_saving_until_it_is_gone(
    number: signal.Signals, tmp_path: Path
) -> None:
    options = ("--port", "0", "--dbfilename", "dump.rdb", "--save", "3600 1", "--pidfile", "pid")
    with PenstockProcess(*options, cwd=tmp_path) as penstock:
        assert penstock.ask(b"XADD s 1-0 a b\r\n") == b"$3\r\n1-0\r\n"
        penstock.process.send_signal(signal.SIGTERM)
        while penstock.process.poll() is None:
            penstock.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                penstock.process.wait(0.001)
        assert penstock.wait() == 0
    assert {path.name for path in tmp_path.iterdir()} == {"appendonlydir", "dump.rdb"}
    # A SIGHUP is told when it comes, be it behind that.
    assert sum(line.endswith(" * Bye") for line in penstock.lines) == 1


def test_a_start_that_fails_leaves_the_handlers_of_signals_as_they_were(told: Told) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    assert told("--bind", "192.0.2.1").startswith("penstock: cannot listen on 192.0.2.1")
    assert [signal.getsignal(number) for number in numbers] == before


def test_shutdown_ends_the_process() -> None:
    with PenstockProcess("--port", "0") as penstock:
        penstock.ask(b"*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n")
        assert penstock.wait() == 0
    assert penstock.errors == ""


@pytest.mark.parametrize("options", [["--loglevel", "warning"], ["--logfile", "log"]])
def test_a_free_port_is_told_whatever_is_logged(tmp_path: Path, options: list[str]) -> None:
    with PenstockProcess("--port", "0", *options, cwd=tmp_path) as penstock:
        assert penstock.ask(PING) == PONG
    assert len(penstock.lines) == 1
    assert penstock.lines[0].startswith("Ready to accept connections on 127.0.0.1:")


def warnings(penstock: PenstockProcess) -> list[str]:
    """What it has warned of so far."""
    return [line.split(" # ")[1] for line in penstock.lines if " # " in line]


def test_it_warns_if_other_hosts_reach_it_and_nobody_needs_a_password() -> None:
    options = ("--port", "0", "--bind", "0.0.0.0")
    with PenstockProcess(*options, "--protected-mode", "no") as penstock:
        where = f"0.0.0.0:{penstock.address[1]}"
    assert warnings(penstock) == [
        f"No password is required: clients that can reach {where} can read and change all data"
    ]
    with PenstockProcess(*options) as penstock:
        where = f"0.0.0.0:{penstock.address[1]}"
    assert warnings(penstock) == [
        f"No password is required: clients on other hosts that reach {where} are turned away"
        " (protected-mode)"
    ]
    with PenstockProcess(*options, "--requirepass", "sesame") as penstock:
        pass
    assert warnings(penstock) == []


def test_it_does_not_warn_if_only_its_own_host_reaches_it(tmp_path: Path) -> None:
    bind = "127.0.0.1 127.0.0.2 -::1"
    port = str(free_port())
    with PenstockProcess("--port", port, "--bind", bind, "--unixsocket", "s", cwd=tmp_path) as own:
        pass
    assert warnings(own) == []


def test_messages_go_to_the_log_file_in_the_working_folder(tmp_path: Path) -> None:
    with PenstockProcess("--port", "0", "--dir", str(tmp_path), "--logfile", "log"):
        pass
    text = (tmp_path / "log").read_text()
    assert len(re.findall(r"^\d+:M .{24} \* ", text, re.MULTILINE)) == 6
    assert "Data is in memory only and gone when the server ends: appendonly yes keeps it" in text


def test_a_unix_socket_is_made_with_its_permissions_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    options = ["--bind", "", "--unixsocket", str(path), "--unixsocketperm", "700"]
    with PenstockProcess(*options) as penstock:
        assert penstock.lines[-1].endswith(f"Ready to accept connections on {path}")
        assert path.stat().st_mode & 0o777 == 0o700
        assert penstock.ask(PING, str(path)) == PONG
        assert penstock.stop() == 0
    assert not path.exists()


# --- configuration ---------------------------------------------------------------------------


def test_options_win_over_the_file_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("timeout 1\nhz 20\nmaxclients 30\nport 0\n")
    with PenstockProcess(
        str(tmp_path / "a.conf"), "--timeout", "3", "-", stdin="timeout 2\nhz 25\n"
    ) as penstock:
        request = b"CONFIG GET timeout hz maxclients\r\n"
        assert penstock.ask(request) == (
            b"*6\r\n$7\r\ntimeout\r\n$1\r\n3\r\n$2\r\nhz\r\n$2\r\n25\r\n"
            b"$10\r\nmaxclients\r\n$2\r\n30\r\n"
        )


def passwords_taken(*options: str, **environment: str) -> list[str]:
    """Which of some passwords a server takes that has these variables in its environment."""
    auth = "*2\r\n$4\r\nAUTH\r\n${}\r\n{}\r\n"
    with PenstockProcess("--port", "0", *options, environment=environment) as penstock:
        assert penstock.ask(PING).startswith(b"-NOAUTH")
        tried = ("", "sesame", "from a file", "option")
        answers = {word: penstock.ask(auth.format(len(word), word).encode()) for word in tried}
    return [word for word, answer in answers.items() if answer == b"+OK\r\n"]


def test_the_password_may_come_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from a file\n")
    assert passwords_taken(PENSTOCK_PASSWORD="sesame") == ["sesame"]
    assert passwords_taken(PENSTOCK_PASSWORD_FILE=str(file)) == ["from a file"]
    assert passwords_taken("--requirepass", "option", PENSTOCK_PASSWORD="sesame") == ["option"]


Told = Callable[..., str]
"""What the command says of arguments with which no server starts, without a process."""


Printed = Callable[..., str]
"""What the command prints for arguments with which it succeeds, without a process."""


@pytest.fixture
def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Told:
    monkeypatch.chdir(tmp_path)

    def run(*args: str, stdin: str = "") -> str:
        monkeypatch.setattr("sys.argv", ["penstock", *args])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        assert cli.main() == 1
        output, errors = capsys.readouterr()
        assert "Ready" not in output
        return errors

    return run


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    def run(*args: str) -> str:
        monkeypatch.setattr("sys.argv", ["penstock", *args])
        assert cli.main() == 0
        output, errors = capsys.readouterr()
        assert errors == ""
        return output

    return run


def test_a_password_that_cannot_be_read_is_told_in_one_line(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("empty").write_text("\n")
    for word, file, message in (
        (None, "missing", "can't read the password in 'missing': No such file or directory"),
        (None, "empty", "there is no password in 'empty'"),
        (
            "sesame",
            "empty",
            "PENSTOCK_PASSWORD and PENSTOCK_PASSWORD_FILE are both set: use one of them",
        ),
    ):
        if word:
            monkeypatch.setenv("PENSTOCK_PASSWORD", word)
        monkeypatch.setenv("PENSTOCK_PASSWORD_FILE", file)
        assert told("--port", "0") == f"penstock: {message}\n"


def test_the_whole_configuration_may_come_from_standard_input() -> None:
    with PenstockProcess("-", stdin="port 0\nbind 127.0.0.1\n") as penstock:
        assert penstock.ask(PING) == PONG


def test_config_rewrite_finds_its_file_after_the_folder_has_changed(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("port 0\ntimeout 1\n")
    (tmp_path / "data").mkdir()
    with PenstockProcess("a.conf", "--dir", "data", cwd=tmp_path) as penstock:
        assert penstock.ask(b"CONFIG SET timeout 5\r\n") == b"+OK\r\n"
        assert penstock.ask(b"CONFIG REWRITE\r\n") == b"+OK\r\n"
    assert (tmp_path / "a.conf").read_text() == (
        f"port 0\ntimeout 5\n\n# Generated by CONFIG REWRITE\ndir {tmp_path}/data\n"
        "user default on nopass sanitize-payload ~* &* +@all\n"
    )


def test_users_come_from_the_file_and_from_options(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text('port 0\nuser a on >pw "(~x" "+get)"\n')
    with PenstockProcess(
        str(tmp_path / "a.conf"), "--user", "b", "on", "nopass", "+@all", "-@slow"
    ) as penstock:
        assert penstock.ask(b"ACL USERS\r\n") == (b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$7\r\ndefault\r\n")
        assert penstock.ask(b"AUTH a pw\r\n") == b"+OK\r\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("user a foo", "command line: Error in user declaration 'a': Syntax error"),
        (
            "aclfile /nowhere/users.acl",
            "Aborting startup because of ACL errors: Error loading ACLs, opening file"
            " '/nowhere/users.acl': No such file or directory",
        ),
    ],
)
def test_users_that_cannot_be_made_end_the_start(told: Told, line: str, message: str) -> None:
    name, *values = line.split()
    assert told("--port", "0", f"--{name}", *values) == f"penstock: {message}\n"


def test_an_option_takes_several_words() -> None:
    with PenstockProcess("--port", "0", "--bind", "127.0.0.1", "-::1", "--save", "") as penstock:
        assert penstock.ask(b"CONFIG GET bind\r\n") == (
            b"*2\r\n$4\r\nbind\r\n$14\r\n127.0.0.1 -::1\r\n"
        )


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--foo", "bar"], "command line: foo: unknown setting"),
        (["--port"], "command line: port: wrong number of arguments"),
        (["--port", "1", "2"], "command line: port: wrong number of arguments"),
        (["--port", "x"], "command line: port: argument couldn't be parsed into an integer"),
        (
            ["--maxclients", "0"],
            "command line: maxclients: argument must be between 1 and 4294967295 inclusive",
        ),
        (["-q", "7000"], "command line: -q: expected an option such as --port"),
        (["none.conf"], "can't open config file 'none.conf': No such file or directory"),
        (["bad.conf"], "bad.conf, line 2: timeout: argument couldn't be parsed into an integer"),
        (["."], "can't open config file '.': Is a directory"),
        (["--dir", "/none"], "can't change to the folder '/none': No such file or directory"),
        (
            ["--logfile", "none/log"],
            "can't open the log file 'none/log': No such file or directory",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(told: Told, args: list[str], message: str) -> None:
    Path("bad.conf").write_text("port 0\ntimeout x\n")
    assert told(*args) == f"penstock: {message}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--bind", "192.0.2.1"],
            "cannot listen on 192.0.2.1:6379: Cannot assign requested address",
        ),
        (["--bind", "a..b"], "cannot listen on a..b:6379: this is no name of a host"),
        (["--bind", "-192.0.2.1"], "none of the addresses to listen on exists on this host"),
        (
            ["--bind", "", "--unixsocket", "none/socket"],
            "cannot listen on none/socket: No such file or directory",
        ),
    ],
)
def test_an_address_that_cannot_be_had_is_told_in_one_line(
    told: Told, args: list[str], message: str
) -> None:
    assert told(*args) == f"penstock: {message}\n"


def test_a_mistake_on_standard_input_is_told_in_one_line(told: Told) -> None:
    assert told("-", stdin="port\n") == (
        "penstock: standard input, line 1: port: wrong number of arguments\n"
    )


def test_a_host_name_that_nobody_knows_is_told_in_one_line(told: Told) -> None:
    assert re.fullmatch(
        r"penstock: cannot listen on no\.such\.host\.invalid:6379: .+\n",
        told("--bind", "no.such.host.invalid"),
    )


def test_a_busy_port_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        ended = run_penstock("--port", str(port))
    assert ended.returncode == 1
    assert ended.stderr == (
        f"penstock: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    )


# --- information -----------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version_names_that_of_redis_and_that_of_the_package(
    printed: Printed, option: str
) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    text = printed(option)
    assert text.startswith(f"Penstock server v=8.10.0 penstock={version} python=3.")
    form = "plain" if BUILD == "plain" else r"compiled -O[12] mypyc [\d.]+ (gcc|clang) [\d.]+"
    assert re.search(f" build={form}\n$", text)


OLDER_NAMES = {
    "lua-time-limit",
    "min-slaves-to-write",
    "min-slaves-max-lag",
    "repl-ping-slave-period",
}
"""Names of settings that have another one now, under which they are listed."""


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_lists_every_setting_that_has_an_effect(printed: Printed, option: str) -> None:
    text = printed(option)
    assert text.startswith("Usage: penstock [FILE.conf]")
    for name, each in SETTINGS.items():
        has_effect = not each.unused and not each.unsupported and name not in OLDER_NAMES
        assert (f"\n  --{name}" in text) == has_effect, f"penstock/settings.ini: {name}"


# --- parts that no process shows -------------------------------------------------------------


def test_main_returns_the_status_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["penstock", "--version"])
    assert cli.main() == 0
    monkeypatch.setattr("sys.argv", ["penstock", "--foo"])
    assert cli.main() == 1
    assert capsys.readouterr() == (
        cli.VERSION + build_line() + "\n",
        "penstock: command line: foo: unknown setting\n",
    )


def test_the_number_of_clients_is_lowered_to_what_the_system_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.cli.make_room", lambda clients: 50)
    config, stream = Config(), io.StringIO()
    cli._fit_clients(config, Log(stream))
    assert config.maxclients == 50
    assert stream.getvalue().endswith(
        " # maxclients is 50: the system does not allow more open files\n"
    )


@pytest.mark.logs("KeyError")
def test_an_error_that_nobody_expected_is_logged() -> None:
    stream = io.StringIO()
    cli._report(Log(stream), {"message": "In a callback", "exception": KeyError("x")})
    assert stream.getvalue().endswith(" # Unexpected error: In a callback: KeyError('x')\n")


def test_the_working_folder_is_the_one_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    config = cli.configure(["--dir", "data"], io.StringIO())
    assert os.getcwd() == str(tmp_path / "data") == config.get_text("dir")


# --- tools whose packages are missing --------------------------------------------------------


@pytest.mark.parametrize("name", ["import", "export"])
def test_import_and_export_name_their_packages(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "argv", ["penstock", name, "redis://localhost"])
    assert cli.main() == 1
    check_packages(capsys.readouterr().err, f"penstock {name}", "redis", "rich")
