"""A stream with a consumer group and policies, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from server.delivery.agenda import Agenda
from server.delivery.group_ref import existing_group
from server.delivery.retention import StreamAgenda
from storage.engine.group_counts import GroupCounts
from storage.engine.groups import Group
from storage.engine.stream import Stream
from tests.support.direct import Argument, Direct, DirectClient, parsed

KEY = "orders"
GROUP = "kitchen"
DEAD = "orders:dead"


class Kitchen:
    """A server with the stream ``orders`` and the group ``kitchen``, whose policies are given."""

    def __init__(self, *policies: Argument, direct: Direct | None = None, **settings: Any) -> None:
        self.direct = direct or Direct(**settings)
        self.client = self.direct.client()
        if direct is None:
            assert self.ask("XGROUP", "CREATE", KEY, GROUP, "0", "MKSTREAM") == b"OK"
        if policies:
            self.set(*policies)

    # --- commands -------------------------------------------------------------------------

    def ask(self, *words: Argument, client: DirectClient | None = None) -> Any:
        """The reply to a command, as hiredis reads it; ``None`` for null and for no reply."""
        reply = (client or self.client).send(*words)
        return None if reply is None else parsed(reply)

    def set(self, *policies: Argument) -> None:
        """Sets policies of the group."""
        assert self.ask("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP, *policies) == b"OK"

    def set_stream(self, *policies: Argument) -> None:
        """Sets policies of the stream."""
        assert self.ask("PENSTOCK", "POLICY", "SET", KEY, *policies) == b"OK"

    def add(self, number: int, *fields: Argument) -> None:
        """Adds the entry ``number-1``."""
        self.ask("XADD", KEY, f"{number}-1", *(fields or ("n", number)))

    def add_all(self, numbers: range) -> None:
        """Adds several."""
        for number in numbers:
            self.add(number)

    def read(self, consumer: str = "ann", *options: Argument) -> list[int]:
        """The numbers of the entries that a consumer is given."""
        reply = self.ask("XREADGROUP", "GROUP", GROUP, consumer, *options, "STREAMS", KEY, ">")
        return numbers_in(reply)

    def wait(self, consumer: str = "ann", block_ms: int = 0) -> DirectClient:
        """A client that waits for entries as this consumer."""
        client = self.direct.client()
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "BLOCK", block_ms, "STREAMS", KEY, ">")
        assert client.send(*words) is None
        return client

    def ack(self, *numbers: int) -> int:
        """Acknowledges entries."""
        acknowledged: int = self.ask("XACK", KEY, GROUP, *(f"{number}-1" for number in numbers))
        return acknowledged

    # --- what there is --------------------------------------------------------------------

    def pending(self) -> list[tuple[int, str, int]]:
        """The pending entries: number, owner ("" for none), delivery count."""
        rows = self.ask("XPENDING", KEY, GROUP, "-", "+", 10_000)
        return [(int(row[0].split(b"-")[0]), row[1].decode(), row[3]) for row in rows]

    def letters(self, key: str = DEAD) -> list[dict[str, str]]:
        """The dead letters, without their IDs."""
        entries = self.ask("XRANGE", key, "-", "+")
        return [_texts(fields) for _, fields in entries]

    def length(self) -> int:
        """How many entries the stream has."""
        length: int = self.ask("XLEN", KEY)
        return length

    @property
    def of_stream(self) -> tuple[Stream, StreamAgenda]:
        """The stream, and what the server keeps of its policies."""
        services = self.direct.server.services
        db = services.state.keyspace.databases[0]
        stream = db.stream(KEY.encode())
        assert stream is not None
        agenda = services.policies.of_stream(db, KEY.encode(), stream)
        assert agenda is not None
        return stream, agenda

    @property
    def group(self) -> Group:
        """The group."""
        db = self.direct.server.services.state.keyspace.databases[0]
        return existing_group(db, KEY.encode(), GROUP.encode()).group

    @property
    def counts(self) -> GroupCounts:
        """What is counted of the group."""
        return self.group.counts

    @property
    def happened(self) -> list[tuple[str, bytes, bytes, int]]:
        """What happened lately to the group: what, to which group, by which user, how many."""
        happenings = self.direct.server.services.policies.happenings
        return [(each.kind, each.group, each.user, each.number) for each in happenings]

    @property
    def agenda(self) -> Agenda:
        """What the server keeps of the group."""
        services = self.direct.server.services
        db = services.state.keyspace.databases[0]
        ref = existing_group(db, KEY.encode(), GROUP.encode())
        ruled = services.policies.ruled(ref)
        assert ruled is not None
        return ruled.agenda


def numbers_in(reply: Any) -> list[int]:
    """The numbers of the entries in a reply of XREADGROUP."""
    return [int(entry[0].split(b"-")[0]) for entry in reply[0][1]] if reply else []


def woken_with(client: DirectClient) -> list[int] | None:
    """The numbers that a waiting client was given; ``None`` if it still waits."""
    reply = client.reply_when_woken
    return None if reply is None else numbers_in(parsed(reply))


def _texts(fields: list[bytes]) -> dict[str, str]:
    words = [word.decode() for word in fields]
    return dict(zip(words[::2], words[1::2], strict=True))
