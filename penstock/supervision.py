"""What tells others that the process is there: its pid file, and the messages to a supervisor."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

from server.config.registry import Config
from server.runtime.log import Log


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
