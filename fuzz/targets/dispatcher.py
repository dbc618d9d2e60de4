"""Conversations of three clients with a server without sockets.

Invariants:

- Each request gets exactly one reply of well-formed RESP, unless its client has to wait, has asked
  not to be answered, or is closed.
- Nothing is written of a command that ends in an error, unless that is a transaction or a script,
  or keys have expired, which are deleted when a command looks for them.
- ``check()`` of the data holds after each request.
- What is written to the append-only file leads to the same data when it is loaded.
- No exception leaves the server.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from fuzz.requests import Requests, commands
from fuzz.sequences import CLIENTS, Step, read, write
from fuzz.targets.base import Broken, require
from tests.conformance.resp import Incomplete, parse
from tests.support.direct import Direct, DirectClient
from tests.support.pictures import picture
from tests.support.recording import Recording, load

LENGTH = 30
"""How many steps a sequence has at most."""

MAY_HAVE_CHANGED = ("exec", "eval", "evalsha", "fcall", "eval_ro", "evalsha_ro", "fcall_ro")
"""Commands whose errors may follow what they have done already."""

UNANSWERED: Final = frozenset({b"client", b"monitor", b"psync", b"replconf", b"sync"})
"""Commands without a reply in some cases."""


class Dispatcher:
    """Plays sequences of requests."""

    name = "dispatcher"
    mutable = False

    def __init__(self) -> None:
        self._commands = commands()

    def make(self, random: Random) -> bytes:
        """A sequence."""
        requests = Requests(random, self._commands)
        steps: list[Step] = []
        for _ in range(random.randrange(1, LENGTH)):
            if random.random() < 0.05:
                steps.append((random.choice((1, 100, 10_000)), []))
            else:
                steps.append((random.randrange(CLIENTS), requests.one()))
        return write(steps)

    def run(self, data: bytes) -> None:
        """Plays a sequence, and loads what was written of it."""
        recording = Recording(Direct(enable_debug_command="yes"))
        play = _Play(recording)
        try:
            for number, words in read(data):
                if words:
                    play.send(number, words)
                else:
                    recording.pass_time(number)
            play.compare()
        finally:
            # A client that has become a replica may wait for a snapshot.
            recording.direct.server.services.replication.close()

    def close(self) -> None:
        """There is nothing to end."""


class _Play:
    """The clients of a sequence."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._keyspace = recording.keyspace
        self._clients = [recording.direct.client(resp3=number == 1) for number in range(CLIENTS)]

    def send(self, number: int, words: list[bytes]) -> None:
        """Sends a request, unless the client waits or has gone; then another takes its place."""
        client = self._clients[number]
        if client.closed or client.session.closing:
            client = self._clients[number] = self._recording.direct.client(resp3=number == 1)
        if client.parked:
            return
        before, muted = len(self._recording.out), client.session.muting
        expired = self._has_expired_keys()
        reply = client.send(*words)
        self._recording.close_unit()
        where = b" ".join(words)[:200]
        if not muted:
            self._check_reply(client, reply, where)
        command = client.session.command
        name = "" if command is None else command.fullname
        if reply is not None and reply.startswith(b"-") and name not in MAY_HAVE_CHANGED:
            same = expired or len(self._recording.out) == before
            require(same, f"something was written of an error: {where!r}")
        self._keyspace.check()

    def _has_expired_keys(self) -> bool:
        now = self._recording.direct.now_ms
        return any(when <= now for db in self._keyspace.databases for when in db.expires.values())

    def _check_reply(self, client: DirectClient, reply: bytes | None, where: bytes) -> None:
        if reply is None and client.parked:
            return
        if reply is None:  # It was parked for a moment only, as by a flush of one who is tracking.
            reply = client.reply_when_woken
        if reply is None:
            raise Broken(f"no reply: {where!r}")
        if not reply:
            quiet = client.session.muting is not None or client.session.closing or client.closed
            require(quiet or _needs_none(where), f"an empty reply: {where!r}")
            return
        end = 0
        try:
            while end < len(reply):
                _, end = parse(reply, end)
        except (Incomplete, ValueError):
            require(False, f"a malformed reply: {where!r}: {reply[:200]!r}")

    def compare(self) -> None:
        """Loads what was written, and compares it."""
        # At the same time: a key that has expired is still there while writes are paused.
        loaded = Direct(now_ms=self._recording.direct.now_ms)
        load(loaded, self._recording.contents())
        require(
            _lasting(loaded) == _lasting(self._recording.direct),
            "what was loaded is not what was written",
        )


def _needs_none(where: bytes) -> bool:
    """Whether all of the replies to a command are pushes, those to subscriptions; MONITOR, which is
    not answered where the client monitors already; and what only replicas say."""
    name = where.split(b" ")[0].lower()
    return name.endswith(b"subscribe") or name in UNANSWERED


def _lasting(direct: Direct) -> dict[int, Any]:
    """The data that are in a file: all but keys that have expired and are still there."""
    keyspace = direct.server.state.keyspace
    now = direct.server.state.clock()
    found = picture(keyspace)
    for values in found.values():
        for key in [key for key, (_, expiry) in values.items() if expiry and expiry <= now]:
            del values[key]
    return {index: values for index, values in found.items() if values}
