"""The sockets on which HTTP is served."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Final

from server.net.listener import ADDRESS_MISSING, ANY_ADDRESS, ListenError

BACKLOG: Final = 64


async def listen(addresses: str, port: int) -> list[socket.socket]:
    """Sockets that listen on each of these addresses, which are written like those of ``bind``;
    raises :class:`ListenError`."""
    found: list[socket.socket] = []
    try:
        for address in addresses.split():
            found += await _listen(address, port)
        if not found:
            raise ListenError("none of the addresses of metrics-bind exists on this host")
    except ListenError:
        for sock in found:
            sock.close()
        raise
    return found


async def _listen(address: str, port: int) -> list[socket.socket]:
    """One that begins with ``-`` is left out if the host lacks it."""
    host = address.removeprefix("-")
    host = ANY_ADDRESS.get(host, host)
    try:
        return [_bind(family, where) for family, where in await _resolve(host, port)]
    except UnicodeError:
        raise ListenError(_refusal(host, port, "this is no name of a host")) from None
    except OSError as error:
        if address.startswith("-") and error.errno in ADDRESS_MISSING:
            return []
        raise ListenError(_refusal(host, port, _reason(error))) from error


async def _resolve(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return list(dict.fromkeys((family, where) for family, _, _, _, where in found))


def _bind(family: int, where: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _refusal(host: str, port: int, reason: str) -> str:
    return f"cannot serve metrics on {host}:{port}: {reason}"


def _reason(error: OSError) -> str:
    if error.errno is None or isinstance(error, socket.gaierror):
        return str(error.strerror or error)
    return os.strerror(error.errno)
