"""A client as CLIENT LIST and CLIENT INFO show it: one line of ``name=value`` fields; how much
memory it takes, and who goes when all take too much (``maxmemory-clients``).
"""

from __future__ import annotations

import re
from typing import Final

from server.state.server_state import ServerState
from server.state.session import Session

OWN_OVERHEAD: Final = 2048
"""What a connection takes apart from its buffers, in bytes: session, parser and transport."""

QUERY_BUFFER: Final = 20474
"""Bytes of the buffer that Redis reads into."""

KNOWN_FLAGS: Final = frozenset("AbBcdeEiIMNOPrRStTuUx")
"""The letters that may stand among the flags of a client, of Redis or of Valkey."""

_PRINTABLE: Final = re.compile(rb"[!-~]*")


def is_printable(text: bytes) -> bool:
    """Whether the text can stand in a client's line: no blanks, newlines or special characters."""
    return _PRINTABLE.fullmatch(text) is not None


def client_line(session: Session, now: int) -> bytes:
    """The client's line, with its end; ``now`` is Unix time in milliseconds."""
    fields = {
        **_identity(session, now),
        **_state(session),
        **_memory(session),
        **_protocol(session),
    }
    text = " ".join(f"{name}={value}" for name, value in fields.items())
    return text.encode("utf-8", "surrogateescape") + b"\n"


def client_type(session: Session) -> str:
    """``normal``, ``pubsub`` or ``replica``; there is no master."""
    if session.follower is not None:
        return "replica"
    return "pubsub" if session.subscriptions else "normal"


def _identity(session: Session, now: int) -> dict[str, object]:
    return {
        "id": session.id,
        "addr": session.link.addr,
        "laddr": session.link.laddr,
        "fd": session.link.traffic().get("fd", -1),
        "name": session.name.decode(),
        "age": max(0, now - session.link.created_ms) // 1000,
        "idle": max(0, now - session.seen_ms) // 1000,
        "flags": client_flags(session),
    }


def client_flags(session: Session) -> str:
    """A letter for each thing that is special about the client; ``N`` if nothing is."""
    tracking, watching = session.tracking, session.watching
    marks = {
        "S": session.follower is not None,
        "P": session.subscriptions > 0,
        "x": session.transaction is not None,
        "b": session.is_blocked,
        "t": tracking is not None,
        "R": tracking is not None and tracking.broken,
        "B": tracking is not None and tracking.bcast,
        "d": watching is not None and watching.dirty,
        "c": session.closing,
        "O": session.monitoring,
        "U": session.link.addr.startswith("/"),
        "e": session.no_evict,
        "T": session.no_touch,
    }
    return "".join(mark for mark, applies in marks.items() if applies) or "N"


def _state(session: Session) -> dict[str, object]:
    watching = session.watching
    return {
        "db": session.db.index,
        "sub": len(session.listening.channels),
        "psub": len(session.listening.patterns),
        "ssub": len(session.listening.shards),
        "multi": -1 if session.transaction is None else len(session.queue),
        "watch": 0 if watching is None or watching.dirty else len(watching.keys),
    }


def _memory(session: Session) -> dict[str, object]:
    """Return the fields about memory; what is zero has no client: replies are gathered in no buffer
    of a fixed size."""
    traffic = session.link.traffic()
    arguments, unsent = (traffic.get(name, 0) for name in ("argv-mem", "omem"))
    used, free = _query_buffer(session, traffic)
    return {
        "qbuf": used,
        "qbuf-free": free,
        "argv-mem": arguments,
        "multi-mem": session.queue_bytes,
        "rbs": 0,
        "rbp": 0,
        "obl": 0,
        "oll": traffic.get("oll", 0),
        "omem": unsent,
        "tot-mem": client_memory(session),
    }


def _query_buffer(session: Session, traffic: dict[str, int]) -> tuple[int, int]:
    """Return what the client has sent and what is left of the buffer that it was read into, as in
    Redis: whoever's request runs has the buffer of all clients, with what the last read brought."""
    waiting = traffic.get("qbuf", 0)
    if not traffic.get("running"):
        return waiting, 0
    used = max(waiting, session.link.bytes_read)
    return used, max(0, QUERY_BUFFER - used)


def client_memory(session: Session) -> int:
    """The bytes that a client takes with what it has sent and what waits for it."""
    traffic = session.link.traffic()
    buffers = sum(_query_buffer(session, traffic))
    buffers += sum(traffic.get(name, 0) for name in ("argv-mem", "omem"))
    return OWN_OVERHEAD + session.queue_bytes + buffers


def _protocol(session: Session) -> dict[str, object]:
    return {
        "events": "rw" if session.link.traffic().get("omem") else "r",
        "cmd": "NULL" if session.command is None else session.command.fullname,
        "user": session.user.decode("utf-8", "surrogateescape"),
        "redir": -1 if session.tracking is None else session.tracking.redirect,
        "resp": 3 if session.resp3 else 2,
        "lib-name": session.library[0].decode(),
        "lib-ver": session.library[1].decode(),
        "io-thread": 0,
        "tot-net-in": session.link.bytes_in,
        "tot-net-out": session.link.bytes_out,
        "tot-cmds": session.commands,
        "read-events": session.link.reads,
        "parse-batch-cmd-sum": session.link.batched,
        "parse-batch-cnt": session.link.batches,
    }


class ClientEviction:
    """Closes clients, those with the largest buffers first, until the others fit."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def limit(self) -> int:
        """How many bytes clients may take together; 0 for any number."""
        size, percent = self._state.config.maxmemory_clients
        return int(size or self._state.config.maxmemory * percent // 100)

    def run(self) -> None:
        """Do one round; clients with CLIENT NO-EVICT stay, and count.

        Replicas have a limit of their own."""
        limit = self.limit()
        if not limit:
            return
        clients = [one for one in self._state.sessions.values() if one.follower is None]
        sizes = {session: client_memory(session) for session in clients}
        total = sum(sizes.values())
        for session in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if total <= limit:
                return
            if not session.no_evict:
                total -= sizes[session]
                self._evict(session)

    def _evict(self, session: Session) -> None:
        state = self._state
        state.log.notice(f"Evicting client: {_logged(session, state)}")
        state.stats.evicted_clients += 1
        session.link.close()


def tell_of_query_limit(session: Session | None, state: ServerState) -> None:
    """Count and log that a client is about to be closed, as it has sent too much."""
    state.stats.query_limit_disconnections += 1
    if session is not None:
        line = _logged(session, state)
        state.log.warning(f"Closing client that reached max query buffer length: {line}")


def tell_of_output_limit(session: Session | None, state: ServerState) -> None:
    """Count and log that a client is about to be closed, as too much waits for it."""
    state.stats.output_limit_disconnections += 1
    if session is not None:
        line = _logged(session, state)
        state.log.warning(f"Client {line} is closed for overcoming of output buffer limits")


def _logged(session: Session, state: ServerState) -> str:
    """A client's line for the log."""
    return client_line(session, state.clock()).decode("utf-8", "replace").rstrip()
