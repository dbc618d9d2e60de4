"""One client's socket: bytes to requests, replies to bytes, with back-pressure in both directions.

**The idea.** All requests that one read completes are executed in one go, and their replies leave
in one write. That is why pipelining pays: system calls, which cost as much as a simple command, are
shared. Everything else here is about when not to do that.

**A client may have to wait**, for any of five reasons at a time, which are bits of ``_waits``::

    PARKED   its command is blocked, or runs in steps    until its future is done: _woken
    HELD     its request must not run yet: pause, fault  until its holder calls resume
    CHOKED   it does not read its replies (unread)       until resume_writing
    SWAMPED  too much waits for the disk (unread)        until release
    YIELDED  its share of time is used up (unread)       until go_on, in its next turn

While any of them holds, requests stay in ``_backlog`` in their order. Whatever ends one of these
states runs requests only if no other is left (``_run_waiting``).

**Turns.** Requests run for a share of time (:mod:`server.traffic.turns`), which may end between two
requests and between two steps of the parser. Each turn begins with a look at the clocks, and each
command ends with one (:class:`.Stopwatch`). A command itself is never interrupted by this; long
ones return steps.

**Order.** Replies leave in the order of their requests. What a command pushes to its own client
waits in ``_pushed`` for that command's reply; a message for a client whose parked command has
already been answered goes behind that answer. Output that may report changes which are not in the
append-only file yet is held back, even the end of the connection. Small output may be kept until
the round of the loop ends (``_kept``, see :mod:`server.traffic.output`); all else goes behind it.

**Back-pressure.** A client that does not read is not read from, and neither is one with much
held-back output. Reading and writing have limits besides: unfinished and waiting requests count
towards ``client-query-buffer-limit``, unsent output towards ``client-output-buffer-limit``, with
the reply that is about to be written included.

**Invariants.**

- ``session`` is ``None`` before the client is accepted and after it has left; nothing runs then.
- At most one command of a client is parked: ``_parked`` is the future of its reply.
- ``_answering`` is true only while requests run, so a push knows whether a reply is still due.
- Input is paused exactly while one of ``UNREAD`` holds; while one of ``FULL`` does nobody writes.

Decisions 14 and 16 have what was rejected.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from protocol import errors
from protocol.additions import may_begin
from protocol.encoder import error_line
from protocol.requests import ProtocolError, QueryTooLong, Request, RequestParser, memory_of
from server.clients.client_line import tell_of_output_limit, tell_of_query_limit
from server.core.reasons import HOLDING, LIMITED
from server.net.adding import LEAST
from server.net.admission import farewell, is_forbidden, welcome
from server.net.intercepted import close, execute_held
from server.net.peers import Connections
from server.services import Services
from server.state.server_state import Phase
from server.state.session import Parked, Session
from server.traffic.output import LARGEST
from server.traffic.tls import common_name
from server.traffic.turns import FULL_READ, SMALL_SHARE_NS

UNRELEASED: Final = 4 * 1024 * 1024
"""A client is not served further while more than so many bytes wait for the disk to go to it."""

UNRELEASED_TO_STRANGERS: Final = 64 * 1024
"""The same for one that has not logged in."""

WRITE_CHUNK: Final = 1024 * 1024
"""Replies are written at the latest when this many bytes have been gathered."""

NO_REQUESTS: Final[list[Request]] = []
NOTHING_PUSHED: Final[list[bytes]] = []
"""What a client begins with. They are never added to: most clients need no list of their own."""

PARKED: Final = 1
HELD: Final = 2
CHOKED: Final = 4
SWAMPED: Final = 8
YIELDED: Final = 16
FULL: Final = CHOKED | SWAMPED
UNREAD: Final = FULL | YIELDED


class Connection(asyncio.Protocol):
    """Feeds a session's requests to the dispatcher and writes the replies of a turn at once."""

    __slots__ = (
        "_answering",
        "_backlog",
        "_backlog_size",
        "_kept",
        "_parked",
        "_parser",
        "_peers",
        "_pushed",
        "_reading",
        "_request",
        "_resets",
        "_server",
        "_state",
        "_unreleased",
        "_waits",
        "session",
        "transport",
    )

    def __init__(self, server: Services, peers: Connections) -> None:
        self._server = server
        self._state = server.state
        self._peers = peers
        self._parser = RequestParser(reader=peers.reader)
        self.limit_arguments()
        self._backlog = NO_REQUESTS
        self._backlog_size: int | None = 0
        self._pushed = NOTHING_PUSHED
        self._answering = False
        self._parked: Parked | None = None
        self._waits = 0
        """Why the client has to wait: bits, none of them if it does not."""
        self._reading = True
        self._request: Request | None = None
        """The request that runs, or that the client waits with."""
        self._kept = b""
        """What is sent at the end of the round."""
        self._resets = False
        self._unreleased = 0
        """How many bytes are held back until what they speak of is safe."""
        self.session: Session | None = None
        self.transport: asyncio.Transport

    def limit_arguments(self) -> None:
        """Accepts arguments as long as the settings allow from now on."""
        config = self._state.config
        self._parser.limit(config.proto_max_bulk_len, config.client_query_buffer_limit)

    # --- the transport's side -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Welcomes a client, or turns it away when there are too many."""
        self.transport = cast(asyncio.Transport, transport)
        if self._state.phase is Phase.STOPPED:
            self.transport.abort()
            return
        self._peers.open[self] = None
        if len(self._state.sessions) >= self._state.config.maxclients:
            self._turn_away(errors.TOO_MANY_CLIENTS)
            return
        self._state.stats.connections += 1
        if is_forbidden(self._state, self.transport):
            self._turn_away(errors.PROTECTED_MODE)
            return
        self.session = session = welcome(self._server, self.transport)
        session.link.wire = self
        if self._state.config.tls_auth_clients_user == "CN":
            name = common_name(self.transport.get_extra_info("peercert"))
            if name is not None:
                self._server.access.log_in_by_certificate(session, name)
        self._parser.restricted = not session.authenticated
        if session.authenticated:
            refusal = self._server.access.limits.refuse_connection(session, session.account)
            if refusal is not None:
                self._leave()
                self._turn_away(refusal)

    def _turn_away(self, text: str) -> None:
        """Says why, and ends the connection."""
        self._state.stats.rejected_connections += 1
        self.transport.write(error_line(text))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Takes what one read brought and answers every request that it completed."""
        session = self.session
        if session is None:
            return
        size = len(data)
        stats = self._state.stats
        stats.reads += 1
        stats.bytes_in += size
        link = session.link
        link.reads += 1
        link.bytes_in += size
        link.bytes_read = size
        session.seen_ms = self._state.stopwatch.begin()
        parser = self._parser
        parser.feed(data)
        if not self._waits:
            self._process(session, self._server.traffic.turns.share_ns)
        if parser.buffer or session.transaction is not None:
            self._check_query(session)

    def _check_query(self, session: Session) -> None:
        """Cuts the client off if what it has sent and what has not run yet takes too much."""
        waiting = self._parser.memory + self._backlog_memory() + session.queue_bytes
        if waiting > self._state.config.client_query_buffer_limit and not session.closing:
            self._cut()

    def _backlog_memory(self) -> int:
        """How much memory the requests take that wait; they are looked at once."""
        if self._backlog_size is None:
            self._backlog_size = sum(map(memory_of, self._backlog))
        return self._backlog_size

    def _cut(self) -> None:
        tell_of_query_limit(self.session, self._state)
        self.close()

    def eof_received(self) -> bool:
        """The client has closed its side: there is nobody to answer."""
        return False

    def pause_writing(self) -> None:
        """The client does not read its replies: it is not read from either, or cut off if it has
        not logged in: nobody may fill the memory who is not let in."""
        if self.session is not None and not self.session.authenticated:
            tell_of_output_limit(self.session, self._state)
            self.close()
            return
        if self.session is not None and self.session.follower is not None:
            self.session.follower.pause()  # It goes on saying how far it is.
            return
        self._waits |= CHOKED
        self._follow_reading()

    def resume_writing(self) -> None:
        """The client has read what was sent: its requests go on."""
        if self.session is not None and self.session.follower is not None:
            self.session.follower.resume()
        self._waits &= ~CHOKED
        self._read_on()

    def _read_on(self) -> None:
        """Goes on with requests that have come, and with reading."""
        self.resume()
        self._follow_reading()

    def _follow_reading(self) -> None:
        """Reads from the client unless it has sent enough for now."""
        wanted = not self._waits & UNREAD
        if wanted != self._reading and not self.transport.is_closing():
            self._reading = wanted
            if wanted:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the client and everything it waits for."""
        self._peers.open.pop(self, None)
        self._leave()
        self._server.interception.stir()

    # --- requests and replies -------------------------------------------------------------

    def resume(self) -> None:
        """Goes on with requests that were held back."""
        self._waits &= ~HELD
        self._run_waiting(self._server.traffic.turns.share_ns)

    def go_on(self, share_ns: int) -> None:
        """Resumes the client for ``share_ns`` nanoseconds: it is its turn again."""
        self._waits &= ~YIELDED
        self._run_waiting(share_ns)
        if self.session is not None:
            self._follow_reading()

    def _run_waiting(self, share_ns: int) -> None:
        """Runs the requests that have come, unless there is a reason to wait left."""
        session = self.session
        if session is None or not (self._backlog or self._parser.ready):
            return
        if not self._waits and not self.transport.is_closing():
            self._state.stopwatch.begin()
            self._process(session, share_ns)

    def _process(self, session: Session, share_ns: int) -> None:
        """Runs requests until none are left, one has to wait, or the share of time is used up,
        which begins now."""
        watch = self._state.stopwatch
        started, commands = watch.ns, session.commands
        out: list[bytes] = []
        self._answering = True
        try:
            self._answer(session, out, started + share_ns)
        except ProtocolError as error:
            self._state.stats.count_error(error.text)
            out.append(error_line(error.text))
            session.closing = True
        except QueryTooLong:
            self._write(out)
            self._cut()
        finally:
            self._answering = False
            if not self._waits & (PARKED | HELD):
                self._request = None
        self._write(out)
        if session.closing:
            self._end(session)
        turns, spent = self._server.traffic.turns, watch.ns - started
        turns.cycles, turns.nanoseconds = turns.cycles + 1, turns.nanoseconds + spent
        if spent > SMALL_SHARE_NS and session.link.bytes_read >= FULL_READ and not self._waits:
            self._yield(NO_REQUESTS, 0)  # There is more to be read, before others have their turn.
        count = session.commands - commands
        if count:
            stats, link = self._state.stats, session.link
            stats.batches, stats.batched = stats.batches + 1, stats.batched + count
            link.batches, link.batched = link.batches + 1, link.batched + count

    def _answer(self, session: Session, out: list[bytes], end: int) -> None:
        """Runs requests until there are none, or until one has to wait."""
        parser, state, dispatcher = self._parser, self._state, self._server.dispatcher
        watch = state.stopwatch
        size = 0
        while True:
            if self._backlog:
                requests, self._backlog = self._backlog, []
                self._backlog_size = 0
            else:
                adder = self._peers.adder
                why = state.reasons | session.reasons
                adds = parser.peek(LEAST) and adder is not None and why | LIMITED == LIMITED
                if adds and may_begin(parser.buffer, parser.position):
                    size += self._add(session, out, end)
                    if size > WRITE_CHUNK:
                        self._write(out)
                        size = 0
                    if not parser.ready or self._waits & FULL or session.closing:
                        return
                requests = parser.batch(adds) if watch.ns <= end else NO_REQUESTS
            for index, request in enumerate(requests):
                if watch.ns > end:
                    self._yield(requests, index)
                    return
                self._request = request
                if state.reasons & HOLDING:
                    reply = execute_held(self._server, session, request, self.resume)
                else:
                    reply = dispatcher.execute(session, request)
                if reply is not None:
                    if len(reply) > WRITE_CHUNK:
                        self._write(out)
                    out.append(reply)
                    size += len(reply)
                if self._pushed:
                    if session.ending is None:
                        out += self._pushed
                    self._pushed.clear()
                if reply is None:
                    self._wait(session, requests, index)
                    return
                if session.closing:
                    return
                if size > WRITE_CHUNK:
                    self._write(out)
                    size = 0
                    if self._waits & FULL or session.closing:
                        self._keep(requests, index + 1)
                        return
            parser.restricted = not session.authenticated
            if not parser.ready:
                return
            if watch.tick() > end:
                self._yield(requests, len(requests))
                return

    def _add(self, session: Session, out: list[bytes], until_ns: int) -> int:
        """Lets XADDs take the fast path; returns about how many bytes of replies came of it."""
        parser, adder = self._parser, self._peers.adder
        assert adder is not None
        replies, end = adder.take(session, parser.buffer, parser.position, until_ns)
        if not replies:
            return 0
        parser.skip(end)
        out += replies
        if self._pushed:  # Another client may redirect to this one what it tracks.
            out += self._pushed
            self._pushed.clear()
        return len(replies) * len(replies[-1])

    def _yield(self, requests: list[Request], first: int) -> None:
        """Lets others have their turn; the requests from ``first`` on come in the next one."""
        self._keep(requests, first)
        self._waits |= YIELDED
        self._server.traffic.turns.add(self.go_on)
        self._follow_reading()

    def _keep(self, requests: list[Request], first: int) -> None:
        self._backlog = requests[first:]
        self._backlog_size = None

    def _wait(self, session: Session, requests: list[Request], index: int) -> None:
        """The request waits for its reply or, where there is none to wait for, to run at all."""
        parked = self._parked = session.parked
        if parked is None:
            self._waits |= HELD
            self._keep(requests, index)
        else:
            self._waits |= PARKED
            self._keep(requests, index + 1)
            parked.add_done_callback(self._woken)

    def _woken(self) -> None:
        """A parked command has its reply: it is sent, and later requests go on. These are not part
        of what has woken the client, most likely a command of another one."""
        session = self.session
        if session is not None:
            self._write_parked_reply(session)
            if session.closing:
                self._end(session)
            elif self._backlog or self._parser.ready:
                asyncio.get_running_loop().call_soon(self._go_on_woken)

    def _go_on_woken(self) -> None:
        self._run_waiting(self._server.traffic.turns.share_ns)

    def _write_parked_reply(self, session: Session) -> None:
        """Sends the reply of the command that was parked, if it is there and not sent yet."""
        if self._parked is not None and self._parked.result is not None:
            pieces, self._parked = self._parked.result, None
            self._waits &= ~PARKED
            self._request = None
            if session.muting is not None:
                session.swallow_reply()
                pieces = [b""]
            if session.ending is not None:
                session.closing = True
                pieces = [b"".join(pieces)[: session.ending.reply_bytes]]
            for piece in pieces:
                self._write([piece])

    def _write(self, out: list[bytes], is_message: bool = False) -> None:
        """Sends replies, or what is none; later, if they may speak of changes that are not safe
        yet, or if others are sent to in this round and they are small."""
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        if not data:
            return
        server, stats = self._server, self._state.stats
        if not is_message:
            stats.writes += 1
        stats.bytes_out += len(data)
        if self.session is not None:
            self.session.link.bytes_out += len(data)
        if (is_message or server.traffic.limits.normal) and self.check_output(len(data)):
            return
        if server.commit.holding or server.traffic.gate.frozen:
            self._hold(data)
        elif self._kept or not self._peers.output.direct:
            self._keep_output(data, is_message)
        else:
            self._peers.output.direct -= 1
            self.transport.write(data)

    def send(self, data: bytes) -> None:
        """Sends what is no reply; a subscriber that lets too much pile up is cut off.

        It goes behind the reply of the command that is running, and behind that of a parked command
        which has been answered already.
        """
        if self._answering:
            if self._pushed:
                self._pushed.append(data)
            else:
                self._pushed = [data]
            return
        session = self.session
        if self._parked is not None and session is not None:
            self._write_parked_reply(session)
            if session.closing:
                return
        self._write([data], is_message=True)

    def _hold(self, data: bytes) -> None:
        """Lets output wait until what it may speak of is safe."""
        self._unreleased += len(data)
        session = self.session
        is_stranger = session is not None and not session.authenticated
        most = UNRELEASED_TO_STRANGERS if is_stranger else UNRELEASED
        if self._unreleased > most and not self._waits & SWAMPED:
            self._waits |= SWAMPED
            self._follow_reading()
        self._server.commit.hold(self, data)

    def _keep_output(self, data: bytes, is_message: bool) -> None:
        """Lets output wait for the end of the round if it is small."""
        if len(self._kept) + len(data) > LARGEST:
            self.send_kept()
            self.transport.write(data)
        elif self._kept:
            self._kept += data
        else:
            self._kept = data
            self._peers.output.add(self, is_message)

    def send_kept(self) -> None:
        """Sends what was kept until now, if anything was and the connection is still open."""
        data, self._kept = self._kept, b""
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def release(self, data: bytes | None) -> None:
        """Sends what was held back; ``None`` is the end."""
        if self._kept:
            self.send_kept()
        if data is None:
            close(self.transport, self._resets)
        elif not self.transport.is_closing():
            self._unreleased -= len(data)
            self.transport.write(data)
            session = self.session
            if session is not None and session.is_pushed_to:
                self.check_output()
            if session is not None and session.follower is not None:
                session.follower.resume_soon()  # Behind what else was held back.
            if self._waits & SWAMPED and self._unreleased <= UNRELEASED:
                self._waits &= ~SWAMPED
                # Not at once: what else was held back goes first.
                asyncio.get_running_loop().call_soon(self._read_on)

    @property
    def ended(self) -> bool:
        """Whether it is to end when everything has been sent."""
        return self.session is None

    @property
    def is_debugging(self) -> bool:
        """Whether what is sent answers DEBUG."""
        return self.session is not None and self.session.is_debugging

    def abandon(self) -> None:
        """Ends the connection without what was held back, which may not be said."""
        self.close()

    def check_output(self, more: int = 0) -> bool:
        """Cuts the client off if what waits for it, with so many bytes more, is more than
        client-output-buffer-limit allows; whether it is."""
        session = self.session
        if session is not None and session.follower is not None:
            return False  # It knows itself how much waits for it.
        # Whoever monitors is a normal client by name, but asks for nothing of what is sent to it.
        kind = "pubsub" if session is not None and session.is_pushed_to else "normal"
        over = self._server.traffic.limits.exceeded(self, kind, self._unsent() + more)
        if over:
            tell_of_output_limit(session, self._state)
            self.close()
        return over

    def _unsent(self) -> int:
        return self.transport.get_write_buffer_size() + len(self._kept) + self._unreleased

    def waiting_bytes(self) -> tuple[int, int]:
        """Return how many bytes of requests and of replies wait."""
        return self._parser.held + self._backlog_memory(), self._unsent()

    def traffic(self) -> dict[str, int]:
        """Return the buffers and the file descriptor, for CLIENT LIST."""
        waiting, pending = self.waiting_bytes()
        return {
            "running": self._answering,
            "qbuf": waiting,
            "argv-mem": sum(map(len, self._request or ())) + self._parser.argument_bytes,
            "oll": 1 if pending else 0,
            "omem": pending,
            "fd": self.transport.get_extra_info("socket").fileno(),
        }

    # --- the end --------------------------------------------------------------------------

    def _end(self, session: Session) -> None:
        """Closes the connection when everything written has been sent."""
        self._leave()
        self._resets = session.ending is not None and session.ending.resets
        self._server.commit.hold(self, None)

    def dismiss(self) -> None:
        """Answers nothing any more: the server ends. What has been written may still be sent."""
        self._leave()

    def close(self) -> None:
        """Closes the connection at once; what has not been sent is lost."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        """Lets the server forget the client; requests that are left are not answered."""
        self.send_kept()
        self._backlog.clear()
        session, self.session = self.session, None
        if session is not None:
            session.closing = True
            self._server.traffic.limits.forget(self)
            farewell(self._server, session)
