"""A server for tests: starts, queries, resets and stops it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from penstock.testing.clock import ServerClock
from penstock.testing.control import Control
from penstock.testing.errors import PenstockError
from penstock.testing.process import Process, find_command

ARGUMENTS: Final = ("--port", "0", "--bind", "127.0.0.1", "--enable-debug-command", "yes")
"""Default arguments of the server."""

GRACE_S: Final = 1
"""How long to wait for the end of a server that no longer answers."""


class PenstockServer:
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
        self.clock = ServerClock(self.ask)
        """The server's clock, which tests may move."""

    # --- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when the server accepts connections; raises :class:`PenstockError`."""
        command = [*(self._command or find_command()), *ARGUMENTS, *self._args]
        with contextlib.ExitStack() as stack:
            folder = self._folder or Path(stack.enter_context(_temporary_folder()))
            process = self._process = Process(command, folder)
            stack.callback(process.stop)
            self._control = Control(process.host, process.port)
            stack.callback(self._control.close)
            self._settings = self._read_settings()
            self._cleaning = stack.pop_all()

    def stop(self) -> None:
        """Shuts the server down and returns when its process has ended."""
        self._cleaning.close()

    def __enter__(self) -> PenstockServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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

    def ask(self, *words: str | int) -> Any:
        """The server's reply to a command: ``None``, an integer, a string, or a list of them.

        Raises :class:`PenstockError` if the reply is an error, or if there is none.
        """
        process = self._running
        try:
            return self._control.ask(*words)
        except OSError as error:
            raise PenstockError(_why_silent(process, words, error)) from error

    def flush(self) -> None:
        """Deletes all data."""
        self.ask("FLUSHALL")

    def reset(self) -> None:
        """Resets the server to its state at the start: no data, the real time, its first settings.

        Connections stay open.
        """
        self.ask("CLIENT", "UNPAUSE")
        if self._settings["enable-debug-command"] != "no":
            self.clock.reset()
            self.ask("DEBUG", "SET-ACTIVE-EXPIRE", 1)
        self.flush()
        now = self._read_settings()
        changed = {name: old for name, old in self._settings.items() if now[name] != old}
        if changed:
            self.ask("CONFIG", "SET", *(word for pair in changed.items() for word in pair))

    def _read_settings(self) -> dict[str, str]:
        reply = self.ask("CONFIG", "GET", "*")
        return dict(zip(reply[::2], reply[1::2], strict=True))


@contextlib.contextmanager
def _temporary_folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="penstock-") as name:
        yield name


def _why_silent(process: Process, words: tuple[str | int, ...], error: OSError) -> str:
    status = process.status_if_ended(GRACE_S)
    if status is not None:
        return f"the server has ended, with exit status {status}\n{process.told_so_far()}"
    asked = " ".join(map(str, words))
    if isinstance(error, TimeoutError):
        return f"the server does not answer {asked}: is it held by CLIENT PAUSE or DEBUG SLEEP?"
    return f"the server does not answer {asked}: {error}"
