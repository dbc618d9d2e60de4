"""Client-side caching: the table of keys, what it costs, users, and the fast path for XADD. Replies
and notices in their order are in tests/conformance/scripts/tracking.txt."""

from __future__ import annotations

import asyncio

from server.clients.tracking import CHANGED
from server.core.table import Command, every
from server.dispatch.reactions import MODIFYING
from storage.engine import effects as e
from tests.support.direct import Direct, DirectClient
from tests.support.wire import Wire, packed


def invalid(*keys: str) -> bytes:
    """The notice about keys in RESP3."""
    listed = b"".join(b"$%d\r\n%b\r\n" % (len(key), key.encode()) for key in keys)
    return b">2\r\n$10\r\ninvalidate\r\n*%d\r\n%b" % (len(keys), listed)


def counts(direct: Direct) -> tuple[int, int, int, int]:
    """Clients that track, keys, pairs of both, and prefixes, as INFO tells them."""
    reply = direct.client().send("INFO", "clients", "stats")
    assert reply is not None
    lines = dict(line.split(":") for line in reply.decode().split("\r\n") if line.count(":") == 1)
    names = ("clients", "total_keys", "total_items", "total_prefixes")
    clients, keys, items, prefixes = (int(lines[f"tracking_{name}"]) for name in names)
    return clients, keys, items, prefixes


def tracker(direct: Direct, *options: str) -> DirectClient:
    """A client that tracks."""
    client = direct.client(resp3=True)
    assert client.send("CLIENT", "TRACKING", "ON", *options) == b"+OK\r\n"
    return client


def read(wire: Wire, *requests: str) -> bytes:
    """What the requests bring that come in one read; another client may have had more."""

    async def run() -> None:
        wire.read(packed(*requests))
        await asyncio.sleep(0)

    asyncio.run(run())
    return wire.take()


class TestWhatItCosts:
    def handlers(self, direct: Direct) -> dict[Command, object]:
        return {command: command.handler for command in every(direct.server.state.table)}

    def test_while_nobody_tracks_no_handler_is_replaced(self, direct: Direct) -> None:
        before = self.handlers(direct)
        first, second = tracker(direct), tracker(direct)
        replaced = {
            command.fullname
            for command, handler in self.handlers(direct).items()
            if handler != before[command]
        }
        assert {"get", "xread", "xinfo|stream", "object|encoding", "exists"} <= replaced
        assert not {"set", "xadd", "xreadgroup", "keys", "scan", "eval_ro", "ping"} & replaced
        first.send("CLIENT", "TRACKING", "OFF")
        assert self.handlers(direct) != before
        second.disconnect()
        assert self.handlers(direct) == before

    def test_clients_with_prefixes_replace_none(self, direct: Direct) -> None:
        before = self.handlers(direct)
        tracker(direct, "BCAST")
        assert self.handlers(direct) == before

    def test_the_reads_of_others_are_not_noted(self, direct: Direct) -> None:
        tracker(direct)
        direct.client().send("GET", "k")
        assert counts(direct) == (1, 0, 0, 0)

    def test_changes_are_not_looked_at_when_nobody_is_left(self, direct: Direct) -> None:
        tracking = direct.server.services.tracking
        assert not tracking.active
        client = tracker(direct)
        client.send("GET", "k")
        client.send("CLIENT", "TRACKING", "OFF")
        assert tracking.active  # It may turn tracking on again, and has read k.
        client.disconnect()
        assert not tracking.active

    def test_effects_that_touch_watched_keys_are_those_that_are_told(self) -> None:
        # What changes a key other than its own is not among those of WATCH.
        assert set(CHANGED) == {*MODIFYING, e.Changed, e.KeyCopied}


class TestTheTable:
    def test_keys_and_readers_are_counted(self, direct: Direct) -> None:
        clients = [tracker(direct) for _ in range(3)]
        for client in clients:
            client.send("MGET", "a", "b")
            client.send("GET", "a")
        clients[0].send("GET", "c")
        assert counts(direct) == (3, 3, 7, 0)
        direct.client().send("SET", "a", 1)
        assert counts(direct) == (3, 2, 4, 0)
        assert [client.take_pushed() for client in clients] == [invalid("a")] * 3

    def test_a_full_table_gives_up_what_was_noted_first(self, direct: Direct) -> None:
        direct.client().send("CONFIG", "SET", "tracking-table-max-keys", 2)
        one, other = tracker(direct), tracker(direct)
        one.send("MGET", "a", "b")
        other.send("GET", "a")
        assert one.take_pushed() == other.take_pushed() == b""
        one.send("GET", "c")
        assert one.take_pushed() == other.take_pushed() == invalid("a")
        assert counts(direct) == (2, 2, 2, 0)

    def test_a_smaller_bound_counts_at_once(self, direct: Direct) -> None:
        client = tracker(direct)
        client.send("MGET", "a", "b", "c")
        direct.client().send("CONFIG", "SET", "tracking-table-max-keys", 1)
        assert client.take_pushed() == invalid("a") + invalid("b")
        direct.client().send("CONFIG", "SET", "tracking-table-max-keys", 0)
        client.send("MGET", "a", "b", "c", "d")
        assert client.take_pushed() == b""
        assert counts(direct) == (1, 4, 4, 0)

    def test_clients_that_are_gone_stay_until_the_key_changes(self, direct: Direct) -> None:
        gone, there = tracker(direct), tracker(direct)
        gone.send("MGET", "a", "b")
        there.send("GET", "a")
        gone.disconnect()
        assert counts(direct) == (1, 2, 3, 0)
        direct.client().send("MSET", "a", 1, "b", 2)
        assert counts(direct) == (1, 0, 0, 0)
        assert there.take_pushed() == invalid("a")
        assert gone.take_pushed() == b""

    def test_with_the_last_client_that_has_tracked_the_table_goes(self, direct: Direct) -> None:
        clients = [tracker(direct), tracker(direct)]
        for client in clients:
            client.send("GET", "k")
        clients[0].send("CLIENT", "TRACKING", "OFF")
        clients[1].disconnect()
        assert counts(direct) == (0, 1, 2, 0)
        clients[0].disconnect()
        assert counts(direct) == (0, 0, 0, 0)

    def test_a_client_that_now_has_prefixes_is_not_told_of_what_it_read(
        self, direct: Direct
    ) -> None:
        client = tracker(direct)
        client.send("GET", "k")
        client.send("CLIENT", "TRACKING", "OFF")
        client.send("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "other")
        direct.client().send("SET", "k", 1)
        assert client.take_pushed() == b""

    def test_a_flush_empties_it(self, direct: Direct) -> None:
        client = tracker(direct)
        client.send("GET", "k")
        direct.client().send("FLUSHALL")
        assert counts(direct) == (1, 0, 0, 0)

    def test_a_long_table_is_freed_in_portions(self, direct: Direct) -> None:
        client = tracker(direct)
        client.send("MGET", *(f"k{number}" for number in range(1000)))
        client.disconnect()
        disposal = direct.server.state.keyspace.limits.disposal
        assert len(disposal) == 1000
        disposal.free(400)
        assert len(disposal) == 600
        disposal.free(600)
        assert len(disposal) == 0

    def test_keys_that_expire_unread_are_told(self, direct: Direct) -> None:
        client = tracker(direct, "NOLOOP")
        direct.client().send("SET", "k", 1, "PX", 10)
        client.send("GET", "k")
        direct.now_ms += 10
        direct.cron()
        assert client.take_pushed() == invalid("k")

    def test_a_read_that_fails_is_noted(self, direct: Direct) -> None:
        client = tracker(direct)
        direct.client().send("XADD", "s", "1-1", "f", "v")
        reply = client.send("GET", "s")
        assert reply is not None
        assert reply.startswith(b"-WRONGTYPE")
        direct.client().send("DEL", "s")
        assert client.take_pushed() == invalid("s")


class TestPrefixes:
    def test_each_prefix_has_its_notice_in_order(self, direct: Direct) -> None:
        client = tracker(direct, "BCAST", "PREFIX", "b", "PREFIX", "aa")
        assert counts(direct) == (1, 0, 0, 2)
        direct.client().send("MSET", "b2", 1, "aa", 1, "b1", 1, "a", 1, "", 1)
        assert client.take_pushed() == invalid("aa") + invalid("b1", "b2")

    def test_clients_share_them(self, direct: Direct) -> None:
        clients = [tracker(direct, "BCAST", "PREFIX", "a") for _ in range(3)]
        assert counts(direct) == (3, 0, 0, 1)
        clients[0].disconnect()
        direct.client().send("SET", "a", 1)
        assert [client.take_pushed() for client in clients] == [b"", invalid("a"), invalid("a")]
        for client in clients[1:]:
            client.send("CLIENT", "TRACKING", "OFF")
        assert counts(direct) == (0, 0, 0, 0)
        direct.client().send("SET", "a", 1)
        assert clients[1].take_pushed() == b""

    def test_who_leaves_before_the_notice_is_not_told(self, direct: Direct) -> None:
        tracking = direct.server.services.tracking
        client = tracker(direct, "BCAST")
        tracking.prefixes[b""].changed[b"k"] = None
        tracking._pending[b""] = tracking.prefixes[b""]
        client.send("RESET")
        tracking.broadcast()
        assert client.take_pushed() == b""

    def test_the_last_to_change_a_key_counts_for_noloop(self, direct: Direct) -> None:
        tracking = direct.server.services.tracking
        client = tracker(direct, "BCAST", "NOLOOP")
        other = tracker(direct, "BCAST")

        def change(*writers: DirectClient) -> list[bytes]:
            effect = e.Changed(0, (b"k",), (b"SET", b"k", b"v"), (), True)

            async def run() -> None:
                for writer in writers:
                    tracking.follow([effect], writer.session)
                await asyncio.sleep(0)

            asyncio.run(run())
            return [each.take_pushed() for each in (client, other)]

        assert change(client) == [b"", invalid("k")]
        assert change(other, client) == [b"", invalid("k")]
        assert change(client, other) == [invalid("k"), invalid("k")]


class TestUsers:
    def test_keys_without_the_right_to_read_are_left_out(self, direct: Direct) -> None:
        admin = direct.client()
        admin.send(
            "ACL", "SETUSER", "ann", "on", "nopass", "+@all", "%R~a*", "%W~b*", "(%R~c* +get)"
        )
        client = direct.client(resp3=True)
        client.send("AUTH", "ann", "x")
        client.send("CLIENT", "TRACKING", "ON", "BCAST")
        admin.send("MSET", "a", 1, "b", 1, "c", 1, "d", 1)
        assert client.take_pushed() == invalid("a", "c")
        admin.send("SET", "b", 1)
        assert client.take_pushed() == b""

    def test_what_has_changed_before_is_told_with_the_rights_of_before(
        self, direct: Direct
    ) -> None:
        admin = direct.client()
        for name, pattern in (("ann", "~a*"), ("bob", "~b*")):
            admin.send("ACL", "SETUSER", name, "on", "nopass", "+@all", pattern)
        requests = [
            "HELLO 3 AUTH ann x",
            "CLIENT TRACKING ON BCAST",
            "CLIENT REPLY SKIP",
            "SET a 1",
            "AUTH bob x",
            "SET b 1",
            "ACL SETUSER bob resetkeys ~c*",
            "SET c 1",
        ]
        assert read(Wire(direct), *requests).endswith(
            b"+OK\r\n" + invalid("a") + b"+OK\r\n+OK\r\n" + invalid("b") + b"+OK\r\n" + invalid("c")
        )


class TestTheFastPathForXadd:
    ADD = "XADD s * f v"

    def test_runs_are_told_once(self, direct: Direct) -> None:
        reader, lister, writer = Wire(direct), Wire(direct), Wire(direct)
        read(writer, self.ADD)
        read(lister, "HELLO 3", "CLIENT TRACKING ON BCAST PREFIX s")
        read(reader, "HELLO 3", "CLIENT TRACKING ON", "XLEN s")
        read(writer, *[self.ADD] * 20)
        assert reader.take() == lister.take() == invalid("s")

    def test_a_client_that_tracks_hears_between_its_replies(self, direct: Direct) -> None:
        wire = Wire(direct)
        read(wire, "HELLO 3", "CLIENT TRACKING ON", self.ADD, "XLEN s")
        replies = [b"$15\r\n%d-%d\r\n" % (direct.now_ms, number) for number in (1, 2, 3)]
        written = read(wire, *[self.ADD] * 3)
        assert written == replies[0] + invalid("s") + replies[1] + replies[2]

    def test_a_client_that_others_redirect_to_hears_behind_the_run(self, direct: Direct) -> None:
        writer, reader = Wire(direct), Wire(direct)
        read(writer, "HELLO 3", self.ADD)
        read(reader, "CLIENT TRACKING ON REDIRECT 1", "XLEN s")
        assert read(writer, *[self.ADD] * 3).endswith(b"-3\r\n" + invalid("s"))
