"""Requests of clients while they are traced, or while there are faults."""

from __future__ import annotations

from protocol.requests import Request
from server.command_table import find
from server.services import Services
from server.session import Session


def execute_intercepted(server: Services, session: Session, request: Request) -> bytes | None:
    """Does what :meth:`.Dispatcher.execute` does, with all that is to happen to the request."""
    trace = server.interception.trace
    if trace.running and session.follower is None:
        trace.note(session, find(server.state.table, request), request)
    return server.dispatcher.execute(session, request)
