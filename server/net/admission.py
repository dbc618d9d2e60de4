"""The coming and going of clients."""

from __future__ import annotations

import asyncio
import socket
import sys

from server.config.registry import Config
from server.runtime.addresses import address_text, is_loopback
from server.services import Services
from server.state.server_state import ServerState
from server.state.session import Session, Waiter


def is_forbidden(state: ServerState, transport: asyncio.Transport) -> bool:
    """Whether protected mode keeps a client out: one on another host, when the default user needs
    no password."""
    if not state.config.protected_mode or not state.users.default_is_open():
        return False
    peer = transport.get_extra_info("peername")
    return isinstance(peer, tuple) and not is_loopback(peer[0])


def welcome(server: Services, transport: asyncio.Transport) -> Session:
    """A session for a client that has just connected."""
    state = server.state
    sock = transport.get_extra_info("socket")
    if sock.family != socket.AF_UNIX:
        _tune(state.config, sock)
    state.last_id += 1
    peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    # The own address is the same for most clients: one copy of it is enough.
    laddr = sys.intern(address_text(own, own))
    session = state.new_session(state.last_id, address_text(peer, own), laddr)
    state.sessions[session.id] = session
    return session


def _tune(config: Config, sock: socket.socket) -> None:
    keepalive = config.tcp_keepalive
    if keepalive:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, keepalive)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, keepalive // 3))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def farewell(server: Services, session: Session) -> None:
    """Forgets a client that is gone, and everything it waits for and listens to. What is left of
    it is the link, where a consumer has read over it."""
    session.link.closed_ms = server.state.clock()
    server.state.sessions.pop(session.id, None)
    if isinstance(session.parked, Waiter):
        server.blocking.abandon(session.parked)
    elif session.parked is not None:
        server.stepped.abandon(session.parked)
    server.watching.end_transaction(session)
    server.pubsub.leave_all(session)
    server.tracking.forget(session)
    server.state.timings.stop_monitoring(session)
    server.pauses.release(session)
    server.interception.forget(session)
    server.replication.detach(session)
    session.link.wire = None
