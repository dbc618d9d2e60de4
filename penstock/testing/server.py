"""Servers for tests: one that is started here, and one that something else has started."""

from __future__ import annotations

import contextlib
import logging
import re
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import unquote, urlsplit

from penstock.testing import process as processes
from penstock.testing.conditions import Faults, ServerClock
from penstock.testing.control import RESET, Ask, Control, PenstockError, as_dict
from penstock.testing.process import DataFiles, Loss, Mark, Process, find_command
from penstock.testing.tools import LocalTools, Snapshot, Tools
from penstock.testing.waiting import TIMEOUT_S, until_flushed, until_saved

ARGUMENTS: Final = (
    *("--port", "0", "--bind", "127.0.0.1"),
    *("--shutdown-on-stdin-eof", "yes", "--enable-debug-command", "yes"),
)
"""Default arguments of the server."""

RESET_TIMEOUT_S: Final = 3
"""How long the server may take to be reset, until a new one takes its place."""

GRACE_S: Final = 1
"""How long to wait for the end of a server that no longer answers."""


_log: Final = logging.getLogger(__name__)


class PenstockServer(LocalTools):
    """A Penstock server on a free port, which runs during the ``with`` block.

    ``args`` are options of the command ``penstock``; they take precedence over :data:`ARGUMENTS`.
    ``command`` is the command itself, by default the one of the running Python's environment.
    ``folder`` is where the server keeps its files, by default a temporary one.
    """

    def __init__(self, *args: str, command: Sequence[str] = (), folder: Path | None = None) -> None:
        self._args = args
        self._command = list(command)
        self._folder = folder
        self._cleaning = contextlib.ExitStack()
        self._process: Process | None = None
        self._control: Control
        self._settings: dict[str, str] = {}
        self._users: list[str] = []
        self._leaving: list[Snapshot] = []
        self._mark = Mark("", False, {})
        self._promises = 0
        self.clock = ServerClock(self.ask)
        self.faults = Faults(self.ask)

    # --- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when the server accepts connections; raises :class:`PenstockError`."""
        with contextlib.ExitStack() as stack:
            if self._folder is None:
                name = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-"))
                self._folder = Path(name)
                stack.callback(setattr, self, "_folder", None)
            process = self._run(None)
            stack.callback(lambda: self._running.stop())
            self._control = Control(process.host, process.port)
            stack.callback(self._control.close)
            self._settings, self._users = self._read_settings(), self.ask("ACL", "LIST")
            self._set_mark(safe=True)
            self._cleaning = stack.pop_all()

    def _run(self, before: Process | None, *more: str) -> Process:
        command = [*(self._command or find_command()), *ARGUMENTS, *self._args, *more]
        assert self._folder is not None
        self._process = Process(command, self._folder, before)
        return self._process

    def stop(self) -> None:
        """Shuts the server down and returns when its process has ended."""
        self._cleaning.close()

    def __enter__(self) -> PenstockServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise PenstockError("the server has not been started")
        return self._process

    # --- what it is -----------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address to connect to."""
        return self._running.host

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._running.port

    @property
    def url(self) -> str:
        """``redis://host:port``, as client libraries take it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"redis://{host}:{self.port}"

    @property
    def output(self) -> list[str]:
        """The last lines that the server has printed."""
        return list(self._running.lines)

    # --- what it does ---------------------------------------------------------------------

    def ask(self, *words: str | int, db: int | None = None) -> Any:
        """Return the server's reply to a command; see :meth:`Tools.ask`."""
        process = self._running
        try:
            return self._control.ask(*words, db=db)
        except OSError as error:
            raise PenstockError(_why_silent(process, words, error)) from error

    def reset(self) -> None:
        """Resets the server to its state at the start: no data, the real time, its first settings
        and users, nothing counted or logged, no pause, script, function, fault or trace.

        Connections and snapshots stay. A server that has ended, or cannot be reset, is replaced by
        a new one at the same port, and ``output`` says why; then they do not. Raises
        :class:`PenstockError` if it cannot be started.
        """
        _ = self._running
        try:
            self._put_back()
        except PenstockError as error:
            self._replace(str(error))
        self.clock.forget()
        self._set_mark(safe=False)

    def drop_at_reset(self, snapshot: Snapshot) -> None:
        """Lets a snapshot go when the server is reset next: now it may answer nobody."""
        self._leaving.append(snapshot)

    def _put_back(self) -> None:
        if self._settings["enable-debug-command"] == "no":
            self._put_back_without_debug()
        else:
            self._reset_all()
            while self._leaving:
                self._leaving.pop().drop()
        self._reset_settings()
        until_flushed(self.ask, TIMEOUT_S)
        _forget_counts(self.ask)

    def _reset_all(self) -> None:
        process = self._running
        try:
            self._control.reset(RESET_TIMEOUT_S)
        except OSError as error:
            raise PenstockError(_why_silent(process, RESET, error)) from error

    def _put_back_without_debug(self) -> None:
        """Does what the commands of clients can."""
        for words in ("CLIENT UNPAUSE", "FUNCTION FLUSH", "SCRIPT FLUSH", "ACL LOG RESET"):
            self.ask(*words.split())
        if self.ask("ACL", "LIST") != self._users:
            raise PenstockError("its users are others, and it has no DEBUG")

    def _replace(self, reason: str) -> None:
        """Starts a new server in place of this one."""
        told = f"the server is started anew: {reason.splitlines()[0]}"
        _log.warning(told)
        self._running.lines.append(told)
        self._running.kill()
        DataFiles(self._settings).remove()
        self._control.close()
        self._start_again(self._settings)

    def _reset_settings(self) -> None:
        now = self._read_settings()
        changed = {name: old for name, old in self._settings.items() if now[name] != old}
        if changed:
            self.ask("CONFIG", "SET", *(word for pair in changed.items() for word in pair))

    # --- restarting -----------------------------------------------------------------------

    def sync(self) -> None:
        """Makes all data safe as it is now: what comes later is what a loss of power may lose."""
        until_saved(self.ask, TIMEOUT_S)
        self._set_mark(safe=True)

    def _set_mark(self, *, safe: bool) -> None:
        """Notes what the files hold now, which is safe or worthless."""
        self._mark = DataFiles(self._settings).mark(safe=safe)
        self._promises = self._count_promises()

    def _count_promises(self) -> int:
        """How often WAITAOF was called."""
        found = re.search(r"cmdstat_waitaof:calls=(\d+)", self.ask("INFO", "commandstats"))
        return int(found[1]) if found else 0

    def restart(self, lose: Loss = "nothing") -> None:
        """Ends the server and starts it again; see :meth:`LocalTools.restart`."""
        if lose not in get_args(Loss):
            raise ValueError(f"lose is one of {', '.join(get_args(Loss))}, and not {lose!r}")
        set_clock = self.clock.reading()
        settings = self._read_settings()
        if lose == "nothing":
            self._shut_down(save=settings["appendonly"] == "no")
        elif lose == "unsynced":
            self._fail_power(settings)
        else:
            self._running.kill()
            DataFiles(settings).remove()
        self._control.close()
        self._start_again(settings)
        set_clock()

    def _shut_down(self, *, save: bool) -> None:
        process = self._running
        with contextlib.suppress(ConnectionError):  # If it does so, there is no reply.
            self._control.ask("SHUTDOWN", *(["SAVE"] if save else []))
        if process.status_if_ended(processes.STOP_TIMEOUT_S) is None:
            raise PenstockError(
                f"the server does not shut down within {processes.STOP_TIMEOUT_S} seconds\n"
                f"{process.told_so_far()}"
            )

    def _fail_power(self, settings: dict[str, str]) -> None:
        """Nobody knows which bytes WAITAOF was answered for, so that is refused, not broken."""
        always = settings["appendonly"] == "yes" and settings["appendfsync"] == "always"
        if not always and self._count_promises() != self._promises:
            raise PenstockError(
                "a client has called WAITAOF since the last sync(), and was promised that its data"
                " is safe: call sync() after it"
            )
        self._running.kill()
        if not always:
            DataFiles(settings).cut(self._mark)

    def _start_again(self, settings: dict[str, str]) -> None:
        """The file that was turned on while the server ran is loaded, and goes on."""
        port = str(self.port)
        self._run(self._running, "--port", port, "--appendonly", settings["appendonly"])
        self._settings["port"] = port
        self._set_mark(safe=True)

    def _read_settings(self) -> dict[str, str]:
        return as_dict(self.ask("CONFIG", "GET", "*"))


def _forget_counts(ask: Ask) -> None:
    """Forgets what has been done since the server was reset: deleting the data may take long."""
    for words in ("SLOWLOG RESET", "LATENCY RESET", "CONFIG RESETSTAT"):
        ask(*words.split())


def _why_silent(process: Process, words: tuple[str | int, ...], error: OSError) -> str:
    status = process.status_if_ended(GRACE_S)
    if status is not None:
        return f"the server has ended, with exit status {status}\n{process.told_so_far()}"
    asked = " ".join(map(str, words))
    if isinstance(error, TimeoutError):
        return f"the server does not answer {asked}: is it held by CLIENT PAUSE or DEBUG SLEEP?"
    return f"the server does not answer {asked}: {error}"


# --- a server in a container, on another host --------------------------------------------------


DEFAULT_PORT: Final = 6379

ALLOWED: Final = "redis://[user:password@]host[:port], rediss:// for TLS"


class RemoteServer(Tools):
    """Does what tests want with a server at a URL, ``redis://host:port``, ``rediss://`` for TLS.

    It must allow DEBUG to this host (``--enable-debug-command``). Raises :class:`ValueError` for
    another kind of URL, and nothing else before the first command. Also a context manager.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._control = _control(url)
        self.clock = ServerClock(self.ask)
        self.faults = Faults(self.ask)

    def __enter__(self) -> RemoteServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The URL of the server, with the password if it has one."""
        return self._url

    def ask(self, *words: str | int, db: int | None = None) -> Any:
        """Return the server's reply to a command; see :meth:`Tools.ask`."""
        try:
            return self._control.ask(*words, db=db)
        except OSError as error:
            raise self._silent(error) from error

    def _silent(self, error: OSError) -> PenstockError:
        return PenstockError(f"the server at {self._control.place} does not answer: {error}")

    def reset(self) -> None:
        """Resets the server to its state at the start: no data, the real time, its first settings
        and users, nothing counted or logged, no pause, script, function, fault or trace.

        Connections and snapshots stay. Raises :class:`PenstockError` if the server has ended.
        """
        try:
            self._control.reset(TIMEOUT_S)
        except OSError as error:
            raise self._silent(error) from error
        self.clock.forget()
        until_flushed(self.ask, TIMEOUT_S)
        _forget_counts(self.ask)

    def close(self) -> None:
        """Ends the connection."""
        self._control.close()


def _control(url: str) -> Control:
    """The connection for a URL; the texts of errors do not show it, it may have a password."""
    parts = urlsplit(url)
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise ValueError(f"the URL has no valid port; allowed: {ALLOWED}") from None
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ValueError(f"the URL is not one of a server; allowed: {ALLOWED}")
    if parts.path.strip("/") or parts.query:
        raise ValueError(f"the URL has more than user, host and port; allowed: {ALLOWED}")
    tls = ssl.create_default_context() if parts.scheme == "rediss" else None
    login = [unquote(word) for word in (parts.username, parts.password) if word]
    return Control(parts.hostname, port, login=login, tls=tls)
