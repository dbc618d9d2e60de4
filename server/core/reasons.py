"""Why a request may not run plainly: the bits of one word a server and one a session.

Most requests meet nothing between the parser and their handler. What may come between is noted as a
bit where it begins and ends, in the words ``reasons`` of :class:`.ServerState` and of
:class:`.Session`; a command's own is ``special``. So whoever wants the quick way reads two words,
however many features there are:

- the connection, for each request: :data:`HOLDING` lets it look at pauses and faults first;
- the dispatcher, for each request: with none of :data:`CLOSELY` the handler runs at once, with
  ``LIMITED`` or ``MULTI`` alone little has to be asked, and with any other all checks are made, in
  the order of Redis's refusals (:meth:`.Dispatcher.resolve`);
- what adds many entries as one run, from a read or from a transaction: that needs none of the
  words' bits at all, or none of :data:`EACH` where EXEC has been let through already.

A bit that is left standing costs time, and one that is missing is a way around ACL or MULTI: the
word of a session is computed from its state as a whole (:meth:`.Session.update_reasons`), and
:meth:`.Services.check` compares all words with what they stand for.
"""

from __future__ import annotations

from typing import Final

# --- the server's ----------------------------------------------------------------------------

LOADING: Final = 1 << 0
"""It starts, loads or ends: only a few commands run."""
BUSY: Final = 1 << 1
"""A script takes long: only a few commands run."""
MEMORY: Final = 1 << 2
"""There is more than ``maxmemory``: what takes more is refused."""
DISK: Final = 1 << 3
"""The append-only file cannot be written: what writes is refused."""
SAVES: Final = 1 << 4
"""A save point could not be kept: what writes is refused."""
REPLICAS: Final = 1 << 5
"""There are fewer than ``min-replicas-to-write``: what writes is refused."""
PAUSE: Final = 1 << 6
"""Clients are paused, or the disk is stuck: writes wait, or everything does."""
FAULTS: Final = 1 << 7
"""Requests are traced, or faults may strike them."""
EVENTS: Final = 1 << 8
"""Keyspace events are published."""
WATCHED: Final = 1 << 9
"""MONITOR shows each command, or the slow log wants to know how long each took."""

# --- the session's ---------------------------------------------------------------------------

STRANGER: Final = 1 << 10
"""The client has not logged in."""
MULTI: Final = 1 << 11
"""Its commands are queued."""
SUBSCRIBED: Final = 1 << 12
"""It speaks RESP2 and has subscriptions: few commands may be told from messages."""
MONITORING: Final = 1 << 13
"""It is shown all commands, and may use no data itself."""
REPLICA: Final = 1 << 14
"""It is sent the stream of replication, and says only how far it is."""
LIMITED: Final = 1 << 15
"""Its user may not do everything."""
RATED: Final = 1 << 16
"""Its user may run so many commands a second."""
MUTED: Final = 1 << 17
"""CLIENT REPLY is OFF or SKIP."""
CACHING: Final = 1 << 18
"""CLIENT CACHING has said something of its next command."""
TRACKING: Final = 1 << 19
"""It is told which keys have changed."""
READING: Final = 1 << 20
"""It is a script's, which only reads."""
FRUGAL: Final = 1 << 21
"""It is a script's, which began when there was more than ``maxmemory``."""

# --- who asks for which ----------------------------------------------------------------------

REFUSING: Final = LOADING | BUSY | MEMORY | DISK | SAVES | REPLICAS
"""The server refuses some commands."""
HOLDING: Final = PAUSE | FAULTS
"""Something is done to requests before they are executed."""
EACH: Final = EVENTS | WATCHED | TRACKING
"""Somebody is told of each command, or of each entry: nothing runs as one with others."""
OF_CLIENT: Final = STRANGER | SUBSCRIBED | MONITORING | REPLICA | RATED | MUTED | CACHING
"""The client is in a state that few are in."""
CLOSELY: Final = REFUSING | OF_CLIENT | MULTI | LIMITED
"""The dispatcher looks closely at the request."""
