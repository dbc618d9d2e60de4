"""One client's socket: bytes to requests, replies to bytes, with back-pressure both ways."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from protocol import errors
from protocol.encoder import error_line
from protocol.requests import ProtocolError, Request, RequestParser
from server.phase import Phase
from server.session import Session

if TYPE_CHECKING:
    from server.app import Server

WRITE_CHUNK: Final = 1024 * 1024
"""Replies are written at the latest when this many bytes have been gathered."""


class Connection(asyncio.Protocol):
    """Feeds a session's requests to the dispatcher and writes the replies of a read at once.

    Requests wait in ``_backlog`` while the client is parked, while CLIENT PAUSE holds it, and while
    it does not read its replies. What is pushed to a client by its own command waits in ``_pushed``
    until that command's reply is in its place.
    """

    __slots__ = (
        "_answering",
        "_backlog",
        "_choked",
        "_held",
        "_parked",
        "_parser",
        "_pushed",
        "_server",
        "session",
        "transport",
    )

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = RequestParser(server.config.proto_max_bulk_len, server.chunk_reader)
        self._backlog: list[Request] = []
        self._pushed: list[bytes] = []
        self._answering = False
        self._parked: asyncio.Future[bytes] | asyncio.Future[list[bytes]] | None = None
        self._choked = False
        self._held = False
        self.session: Session | None = None
        self.transport: asyncio.Transport

    def limit_arguments(self, length: int) -> None:
        """Accepts arguments of up to ``length`` bytes from now on."""
        self._parser.max_bulk = length

    # --- the transport's side -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Welcomes a client, or turns it away when there are too many."""
        self.transport = cast(asyncio.Transport, transport)
        if self._server.phase is Phase.STOPPED:
            self.transport.abort()
            return
        self._server.transports.add(self.transport)
        if len(self._server.sessions) >= self._server.config.maxclients:
            self._server.stats.rejected_connections += 1
            self.transport.write(error_line(errors.TOO_MANY_CLIENTS))
            self.transport.close()
            return
        self._server.stats.connections += 1
        self.session = session = self._server.welcome(self)
        session.send = self._send
        session.close = self._abort
        session.traffic = self._traffic
        self._parser.restricted = not session.authenticated

    def data_received(self, data: bytes) -> None:
        """Takes what one read brought and answers every request that it completed."""
        session = self.session
        if session is None:
            return
        stats = self._server.stats
        stats.reads += 1
        stats.bytes_in += len(data)
        session.seen_ms = self._server.clock()
        self._parser.feed(data)
        if self._parked is None and not self._held and not self._choked:
            self._process(session)
        elif self._parser.held > self._server.config.client_query_buffer_limit:
            stats.query_limit_disconnections += 1
            self._abort()

    def eof_received(self) -> bool:
        """The client has closed its side: there is nobody to answer."""
        return False

    def pause_writing(self) -> None:
        """The client does not read its replies: it is not read from either."""
        self._choked = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """The client has read what was sent: its requests go on."""
        self._choked = False
        self.transport.resume_reading()
        self.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the client and everything it waits for."""
        self._server.transports.discard(self.transport)
        self._leave()

    # --- requests and replies -------------------------------------------------------------

    def resume(self) -> None:
        """Goes on with requests that were held back."""
        self._held = False
        session = self.session
        waits = self._parked is not None or self._choked or self.transport.is_closing()
        if session is not None and not waits:
            self._process(session)

    def _process(self, session: Session) -> None:
        out: list[bytes] = []
        self._answering = True
        try:
            self._answer(session, out)
        except ProtocolError as error:
            self._server.stats.count_error(error.text)
            out.append(error_line(error.text))
            session.closing = True
        finally:
            self._answering = False
        self._write(out)
        if session.closing:
            self._end()

    def _answer(self, session: Session, out: list[bytes]) -> None:
        """Runs requests until there are none, or until one has to wait."""
        server = self._server
        dispatcher = server.dispatcher
        size = 0
        while requests := self._next_requests():
            for index, request in enumerate(requests):
                if server.pausing and server.hold(self, session, request):
                    self._held = True
                    self._keep(requests, index)
                    return
                reply = dispatcher.execute(session, request)
                if reply is not None:
                    out.append(reply)
                    size += len(reply)
                if self._pushed:
                    out += self._pushed
                    self._pushed.clear()
                if reply is None:
                    self._keep(requests, index + 1)
                    self._await_waiter(session)
                    return
                if session.closing:
                    return
                if size > WRITE_CHUNK:
                    self._write(out)
                    size = 0
                    if self._choked or session.closing:
                        self._keep(requests, index + 1)
                        return
            self._parser.restricted = not session.authenticated

    def _next_requests(self) -> list[Request]:
        if self._backlog:
            requests, self._backlog = self._backlog, []
            return requests
        return self._parser.batch()

    def _keep(self, requests: list[Request], first: int) -> None:
        self._backlog.extend(requests[first:])

    def _await_waiter(self, session: Session) -> None:
        self._parked = session.awaited
        assert self._parked is not None
        self._parked.add_done_callback(self._woken)

    def _woken(self, future: asyncio.Future[Any]) -> None:
        """A parked command has its reply: it is sent, and later requests go on."""
        if self.session is not None:
            self._write_parked_reply(self.session)
            self.resume()

    def _write_parked_reply(self, session: Session) -> None:
        """Sends the reply of the command that was parked, if it is there and not sent yet."""
        if self._parked is not None and self._parked.done():
            reply, self._parked = self._parked.result(), None
            if session.muting is not None:
                self._write([session.mute(b"")])
                return
            for piece in [reply] if isinstance(reply, bytes) else reply:
                self._write([piece])

    def _write(self, out: list[bytes]) -> None:
        if out:
            data = out[0] if len(out) == 1 else b"".join(out)
            out.clear()
            if data:
                stats = self._server.stats
                stats.writes += 1
                stats.bytes_out += len(data)
                self._emit(data)
                if self._server.output_limits.normal:
                    self.check_output()

    def _send(self, data: bytes) -> None:
        """Sends what is no reply; a subscriber that lets too much pile up is cut off.

        It goes behind the reply of the command that is running, and behind that of a parked command
        which has been answered already.
        """
        if self._answering:
            self._pushed.append(data)
            return
        if self._parked is not None and self.session is not None:
            self._write_parked_reply(self.session)
        self._server.stats.bytes_out += len(data)
        self._emit(data)
        self.check_output()

    def _emit(self, data: bytes) -> None:
        """Sends bytes; later, if they may speak of changes that are not safe yet."""
        if self._server.holding:
            self._server.persistence.appender.hold(self, data)
        else:
            self.transport.write(data)

    def release(self, data: bytes | None) -> None:
        """Sends what was held back; ``None`` is the end."""
        if data is None:
            self.transport.close()
        elif not self.transport.is_closing():
            self.transport.write(data)
            if self.session is not None and self.session.subscriptions:
                self.check_output()

    def abandon(self) -> None:
        """Ends the connection without what was held back, which may not be said."""
        self._abort()

    def check_output(self) -> None:
        """Cuts the client off if more waits for it than client-output-buffer-limit allows."""
        session = self.session
        kind = "pubsub" if session is not None and session.subscriptions else "normal"
        pending = self.transport.get_write_buffer_size()
        if self._server.output_limits.exceeded(self, kind, pending):
            self._server.stats.output_limit_disconnections += 1
            self._abort()

    def _traffic(self) -> dict[str, int]:
        pending = self.transport.get_write_buffer_size()
        return {
            "qbuf": self._parser.held,
            "oll": 1 if pending else 0,
            "omem": pending,
            "fd": self.transport.get_extra_info("socket").fileno(),
        }

    # --- the end --------------------------------------------------------------------------

    def _end(self) -> None:
        """Closes the connection when everything written has been sent."""
        self._leave()
        if self._server.holding:
            self._server.persistence.appender.hold(self, None)
        else:
            self.transport.close()

    def dismiss(self) -> None:
        """Answers nothing any more: the server ends. What has been written may still be sent."""
        self._leave()

    def _abort(self) -> None:
        """Closes the connection at once; what has not been sent is lost."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        """Lets the server forget the client; requests that are left are not answered."""
        self._backlog.clear()
        session, self.session = self.session, None
        if session is not None:
            session.closing = True
            self._server.farewell(session)
