"""The ``penstock`` command: options and configuration file, start, signals, and the end.

Clients expect an answer within 150 ms of the start of the process, so this module and those that it
imports do without the bigger parts of the standard library (argparse, dataclasses, tempfile). What
only some commands and settings need is imported in their functions:
tests/penstock/together/test_start.py has a list of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, Literal, TextIO

from penstock import added, output
from server.app import Server
from server.config.file import ConfigError, apply, check, close_to, read_file, read_text
from server.config.registry import SETTINGS, BadSetting, Config
from server.net.listener import ListenError
from server.persistence.loader import Loader, Replay
from server.persistence.manager import PersistenceError
from server.runtime.clock import system_clock
from server.runtime.log import Log
from server.runtime.process import make_room, new_event_loop
from server.runtime.signals import ENDING, owned
from server.runtime.version import BUILD, PENSTOCK_VERSION, REDIS_VERSION, build_line

VERSION: Final = (
    f"Penstock server v={REDIS_VERSION} penstock={PENSTOCK_VERSION}"
    f" python={sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    " build="
)
"""What ``--version`` prints before the form of the build. Programs that start servers read the
version of Redis behind ``v=``."""

BARE: Final = {"save": [""]}
"""What options mean that are given without a value, as far as they may be."""

LOOKING: Final = ("top", "groups", "tail", "dead", "doctor")
"""The tools that ask a server, Penstock or another."""

TESTING: Final = ("debug", "explore")
"""The tools for tests."""

TOOLS: Final = (*LOOKING, "check-aof", "import", "export", *added.TOOLS, *TESTING, "completion")
"""The tools of the command, by the first argument."""

SHORT: Final = {"-p": "--port"}
"""Options of one letter, as other servers and clients have them."""

PASSWORD_VARIABLES: Final = ("PENSTOCK_PASSWORD", "PENSTOCK_PASSWORD_FILE")
"""What the environment may have the password of the default user in."""


def main() -> int:
    """Runs the command with the arguments of the process; returns its exit status."""
    args = sys.argv[1:]
    if args[:1] and args[0] in TOOLS:
        return output.status(run_tool(args[0], args[1:]))
    if args[:1] in (["-v"], ["--version"]):
        print(VERSION + build_line())
        return output.status(0)
    if args[:1] in (["-h"], ["--help"]):
        from penstock.help import usage

        print(usage())
        return output.status(0)
    try:
        config = configure(args, sys.stdin, os.environ)
        with log_file(config) as (stream, reopen):
            serve(config, Log(stream, config.loglevel), reopen)
    except (ConfigError, ListenError, PersistenceError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    return 0


def run_tool(name: str, args: Sequence[str]) -> int:
    """Runs a tool, which is imported only when it is needed."""
    if name == "check-aof":  # As at a start, the data are many objects, and no cycles.
        from penstock.check_aof import main as check_aof

        return check_aof(args, new_replay)
    gc.enable()
    if name in LOOKING:
        return run_looking(name, args)
    if name == "completion":
        from penstock.completion import main as completion

        return completion(args, TOOLS)
    if name == "debug":
        from penstock.debug import main as debug

        return debug(args)
    if name == "explore":
        from penstock.explore_command import main as explore

        return explore(args)
    if name in added.TOOLS:
        return added.run(name, args)
    return run_migration("import" if name == "import" else "export", args)


def new_replay() -> Replay:
    """Loads the files of an append-only file into an empty keyspace, as a server does that has the
    default settings."""
    server = Server()
    return Replay(server.state, Loader(server.state, server.services.dispatcher))


def run_looking(name: str, args: Sequence[str]) -> int:
    """Runs a tool that asks a server; an environment that `make run` has begun with may lack
    packages."""
    try:
        tool = import_module(f"penstock.operate.{name}")
    except ModuleNotFoundError:
        from server.runtime.packages import packages_missing

        print(packages_missing(f"penstock {name}", "redis", "rich"), file=sys.stderr)
        return 1
    status: int = tool.main(args)
    return status


def run_migration(name: Literal["import", "export"], args: Sequence[str]) -> int:
    """Runs an import or export; an environment that `make run` has begun with may lack packages."""
    try:
        from penstock.migration.cli import main as migrate

        return migrate(args, name)
    except ModuleNotFoundError:
        from server.runtime.packages import packages_missing

        print(packages_missing(f"penstock {name}", "redis", "rich"), file=sys.stderr)
        return 1


# --- configuration ---------------------------------------------------------------------------


def configure(
    args: Sequence[str], stdin: TextIO, environment: Mapping[str, str] = MappingProxyType({})
) -> Config:
    """The settings that the arguments ask for, with the password that the environment has unless
    they have one; raises :class:`ConfigError`.

    The working folder is changed to the one that is set.
    """
    config = Config()
    rest = list(args)
    if rest and not rest[0].startswith("-"):
        _refuse_unknown_tool(rest[0])
        config.file = os.path.abspath(rest[0])
        read_file(config, rest.pop(0))
    if "-" in (rest[:1] + rest[-1:]):
        rest.remove("-")
        read_text(config, stdin.read().encode("utf-8", "surrogateescape"), "standard input")
    for name, values in options(rest):
        apply(config, name, values or BARE.get(name, []), "command line")
    check(config)
    password = password_of(environment)
    if password and not config.requirepass:
        config.set_text("requirepass", password)
    _enter(config.dir)
    return config


def _refuse_unknown_tool(word: str) -> None:
    """Raises :class:`ConfigError` for what is no file, but nearly the name of a tool."""
    if not os.path.exists(word) and (near := close_to(word, TOOLS)):
        raise ConfigError(f"{word}: no such tool, and no such file; did you mean '{near}'?")


def password_of(environment: Mapping[str, str]) -> str:
    """The password of the default user from ``PENSTOCK_PASSWORD``, or from the file that
    ``PENSTOCK_PASSWORD_FILE`` names, without the end of its line; empty without either.

    Raises :class:`ConfigError`. A command line is read by whoever is on the host, these are not."""
    password, path = (environment.get(name, "") for name in PASSWORD_VARIABLES)
    if not path:
        return password
    if password:
        raise ConfigError(f"{' and '.join(PASSWORD_VARIABLES)} are both set: use one of them")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            password = file.read().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ConfigError(f"can't read the password in '{path}': {error.strerror}") from error
    if not password:
        raise ConfigError(f"there is no password in '{path}'")
    return password


def options(args: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each ``--name`` with the values that follow it, in the same argument, too; raises
    :class:`ConfigError`."""
    name, values = "", list[str]()
    for arg in args:
        arg = SHORT.get(arg, arg)
        if arg.startswith("--") and len(arg) > 2:
            if name:
                yield name, values
            name, *values = arg[2:].split()
        elif name:
            values.append(arg)
        else:
            raise ConfigError(f"command line: {arg}: expected an option such as --port")
    if name:
        yield name, values


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(f"can't change to the folder '{folder}': {error.strerror}") from error


@contextlib.contextmanager
def log_file(config: Config) -> Iterator[tuple[TextIO, Callable[[], None]]]:
    """Where messages go, the log file or standard output, and what opens that again if it was
    moved, or raises :class:`OSError`; raises :class:`ConfigError`."""
    if not config.logfile:
        yield sys.stdout, lambda: None
        return
    try:
        file = output.LogFile(config.logfile)
    except OSError as error:
        text = f"can't open the log file '{config.logfile}': {error.strerror}"
        raise ConfigError(text) from error
    with output.text_of(file) as stream:
        yield stream, file.follow


# --- running ---------------------------------------------------------------------------------


def serve(config: Config, log: Log, reopen: Callable[[], None]) -> None:
    """Serves until a signal or SHUTDOWN ends it; SIGHUP has ``reopen`` called. Raises
    :class:`ListenError`."""
    form = "" if BUILD == "compiled" else ", in plain Python at about half the speed"
    log.notice(f"Penstock {PENSTOCK_VERSION} is starting, pid {os.getpid()}{form}")
    _tell_of_settings(config, log)
    _fit_clients(config, log)
    server = Server(config, system_clock, log)
    runner = asyncio.Runner(loop_factory=new_event_loop)
    with owned(runner.get_loop(), partial(_signalled, server, reopen)), runner:
        runner.run(_serve(server, config, log))


async def _serve(server: Server, config: Config, log: Log) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, context: _report(log, context))
    if config.shutdown_on_stdin_eof:
        from penstock import parent

        parent.follow(log)
    await server.start()
    with pid_file(config, log):
        if not server.stopping.is_set():
            _announce(server)
            tell_supervisor(config, log, "READY=1")
            _tune_garbage_collection()
        await server.stopping.wait()
        tell_supervisor(config, log, "STOPPING=1")
        log.notice("Shutting down")
        await server.stop()
    log.notice("Bye")


def _tell_of_settings(config: Config, log: Log) -> None:
    """Names what was given and changes nothing, and what was given that the server cannot keep."""
    unused = [name for name in config.given if SETTINGS[name].unused]
    if unused:
        log.notice(f"Taken without effect: {', '.join(unused)}")
    ignored = list(config.unkept())
    if ignored:
        log.warning(f"Ignored, as ignore-unsupported says: {', '.join(ignored)}")


def _fit_clients(config: Config, log: Log) -> None:
    """Lowers maxclients to what the system allows, and refuses to raise it above that."""
    room = make_room(config.maxclients)
    if room < config.maxclients:
        log.warning(f"maxclients is {room}: the system does not allow more open files")
        config.set_text("maxclients", str(room))
    config.listen("maxclients", require_room)


def require_room(clients: int) -> None:
    """Makes room for ``clients``; raises :class:`BadSetting` if the system has less."""
    room = make_room(clients)
    if room < clients:
        raise BadSetting(
            "The operating system is not able to handle the specified number of clients,"
            f" try with {room}"
        )


def _announce(server: Server) -> None:
    """Logs where the server listens; prints it too if the system chose the port."""
    _warn_of_openness(server)
    _tell_what_is_kept(server)
    line = f"Ready to accept connections on {' and '.join(server.addresses())}"
    state = server.state
    state.log.notice(line)
    config = state.config
    if config.port == 0 and (config.logfile or not state.log.shows("notice")):
        print(line, flush=True)


def _tell_what_is_kept(server: Server) -> None:
    """Logs that nothing outlives the process, if that is so."""
    config = server.state.config
    if not config.appendonly and not config.save and not config.replicaof:
        server.state.log.notice(
            "Data is in memory only and gone when the server ends: appendonly yes keeps it"
        )


def _warn_of_openness(server: Server) -> None:
    """Logs a warning if other hosts can reach the server and no password is required."""
    reachable = server.listening.reachable()
    if not reachable or not server.state.users.default_is_open():
        return
    where = " and ".join(reachable)
    if server.state.config.protected_mode:
        text = f"clients on other hosts that reach {where} are turned away (protected-mode)"
    else:
        text = f"clients that can reach {where} can read and change all data"
    server.state.log.warning(f"No password is required: {text}")


def _signalled(server: Server, reopen: Callable[[], None], number: signal.Signals) -> None:
    """Ends the server; SIGHUP, which terminals that close send, too, only has the log file opened
    again."""
    log = server.state.log
    if number in ENDING:
        if not server.stopping.is_set():
            log.notice(f"Received {number.name}")
        server.stopping.set()
        return
    try:
        reopen()
        log.notice("Received SIGHUP: the log file is the one at its path")
    except OSError as error:
        path = server.state.config.logfile
        log.warning(f"Received SIGHUP: can't open the log file '{path}': {error.strerror}")


def _report(log: Log, context: dict[str, Any]) -> None:
    """Logs an exception of a callback of the event loop, which nothing else handles."""
    error = context.get("exception")
    log.warning(f"Unexpected error: {context['message']}: {error!r}")


def _tune_garbage_collection() -> None:
    """Turns the garbage collector on, which is to scan fewer objects, and less often.

    It is only needed for reference cycles. Objects that exist after the start live as long as the
    server, so they are frozen. Stored data has no cycles, so the thresholds are raised: with the
    defaults the whole keyspace would be scanned again and again while it grows. A pass of the
    second generation looks at 140,000 new objects at most, which takes some ten milliseconds.
    """
    gc.freeze()
    gc.set_threshold(20_000, 5, 1000)
    gc.enable()


# --- telling others that the process is there -------------------------------------------------


@contextlib.contextmanager
def pid_file(config: Config, log: Log) -> Iterator[None]:
    """Writes the file that ``pidfile`` names, if one is named, and removes it at the end. One that
    cannot be written is told of, and hinders nothing."""
    path = config.pidfile
    if not path:
        yield
        return
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:
        log.warning(f"The pid file '{path}' cannot be written: {error.strerror}")
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def tell_supervisor(config: Config, log: Log, message: str) -> None:
    """Sends systemd a message such as ``READY=1``, if ``supervised`` says so and the process was
    started by a unit that waits for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if config.supervised == "no" or not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            # A name that begins with @ is one of Linux's abstract namespace.
            sock.sendto(message.encode(), address.replace("@", "\0", 1))
    except OSError as error:
        log.warning(f"systemd cannot be told '{message}': {error.strerror}")
