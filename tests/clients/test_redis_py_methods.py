"""Every stream method that redis-py has, with all its options, and what is asked around streams."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis
from redis.commands.core import DataPersistOptions
from redis.exceptions import ResponseError

from tests.clients.conftest import START_MS, Clock, Connect
from tests.clients.orders import add, pending, take

pytestmark = pytest.mark.usefixtures("clock")


def ids(client: Redis) -> list[str]:
    """The IDs of the stream's entries."""
    entries: Any = client.xrange("orders")
    return [entry_id for entry_id, _ in entries]


class TestAdding:
    def test_ids_are_automatic_partly_automatic_or_given(self, client: Redis) -> None:
        assert client.xadd("orders", {"n": 1}, id="5-5") == "5-5"
        assert client.xadd("orders", {"n": 2}, id="5-*") == "5-6"
        assert client.xadd("orders", {"n": 3}) == f"{START_MS}-0"
        assert client.xadd("orders", {"n": 4}) == f"{START_MS}-1"
        with pytest.raises(ResponseError, match="equal or smaller than the target stream top item"):
            client.xadd("orders", {"n": 5}, id="5-5")

    def test_fields_keep_their_order_and_their_bytes(self, connect: Connect) -> None:
        client = connect(decode_responses=False)
        fields: Any = {b"z": b"\x00\r\n", "a": 1.5, b"": b""}
        client.xadd("orders", fields, id="1-0")
        assert client.xrange("orders") == [(b"1-0", {b"z": b"\x00\r\n", b"a": b"1.5", b"": b""})]

    def test_no_stream_is_made_when_it_must_not_be(self, client: Redis) -> None:
        assert client.xadd("nothing", {"n": 1}, nomkstream=True) is None
        assert client.exists("nothing") == 0

    def test_a_stream_is_trimmed_while_it_grows(self, client: Redis) -> None:
        add(client, 4)
        client.xadd("orders", {"n": 5}, id="5-0", maxlen=3, approximate=False)
        assert ids(client) == ["3-0", "4-0", "5-0"]
        client.xadd("orders", {"n": 6}, id="6-0", minid="5-0", approximate=False)
        assert ids(client) == ["5-0", "6-0"]
        client.xadd("orders", {"n": 7}, id="7-0", maxlen=1, limit=1)
        assert ids(client) == ["5-0", "6-0", "7-0"]

    @pytest.mark.parametrize(
        ("policy", "left", "owned"),
        [
            ("KEEPREF", ["4-0"], ["2-0", "3-0"]),
            ("DELREF", ["4-0"], []),
            ("ACKED", ["2-0", "3-0", "4-0"], ["2-0", "3-0"]),
        ],
    )
    def test_the_policy_says_what_becomes_of_references(
        self, client: Redis, policy: Any, left: list[str], owned: list[str]
    ) -> None:
        add(client, 3)
        take(client, "ann")
        client.xack("orders", "packers", "1-0")
        fields: Any = {"n": 4}
        client.xadd("orders", fields, id="4-0", maxlen=1, approximate=False, ref_policy=policy)
        assert ids(client) == left
        assert [row[0] for row in pending(client)] == owned

    def test_a_producer_that_repeats_itself_adds_nothing(self, client: Redis) -> None:
        first = client.xadd("orders", {"n": 1}, idmp=("producer", b"attempt"))
        assert client.xadd("orders", {"n": 1}, idmp=("producer", b"attempt")) == first
        assert client.xadd("orders", {"n": 1}, idmp=("producer", b"another")) != first
        automatic = client.xadd("orders", {"a": 1, "b": 2}, idmpauto="robot")
        assert client.xadd("orders", {"b": 2, "a": 1}, idmpauto="robot") == automatic
        assert client.xlen("orders") == 3
        info = client.xinfo_stream("orders")
        assert (info["pids-tracked"], info["iids-tracked"]) == (2, 3)
        assert (info["iids-added"], info["iids-duplicates"]) == (3, 2)

    def test_how_long_repetitions_are_recognized_is_configured(
        self, client: Redis, clock: Clock
    ) -> None:
        assert client.xcfgset("orders", idmp_duration=10, idmp_maxsize=5)
        info = client.xinfo_stream("orders")
        assert (info["idmp-duration"], info["idmp-maxsize"]) == (10, 5)
        first = client.xadd("orders", {"n": 1}, idmp=("producer", b"attempt"))
        clock.advance(10_001)
        assert client.xadd("orders", {"n": 1}, idmp=("producer", b"attempt")) != first


class TestRemoving:
    def test_xtrim_by_length_and_by_id(self, client: Redis) -> None:
        add(client, 10)
        assert client.xtrim("orders", maxlen=8, approximate=False) == 2
        assert client.xtrim("orders", minid="6-0", approximate=False) == 3
        assert client.xtrim("orders", maxlen=1) == 0
        assert client.xtrim("orders", maxlen=1, limit=1000) == 0
        assert client.xtrim("orders", minid="9", ref_policy="DELREF", approximate=False) == 3
        assert ids(client) == ["9-0", "10-0"]

    def test_xtrim_leaves_what_a_group_still_needs(self, client: Redis) -> None:
        add(client, 3)
        take(client, "ann", count=2)
        client.xack("orders", "packers", "1-0")
        trimmed = client.xtrim("orders", maxlen=0, approximate=False, ref_policy="ACKED")
        assert trimmed == 1
        assert ids(client) == ["2-0", "3-0"]

    def test_xdel_counts_what_was_there(self, client: Redis) -> None:
        add(client, 2)
        assert client.xdel("orders", "1-0", "7-0") == 1
        assert client.xlen("orders") == 1

    def test_xdelex_answers_for_each_id(self, client: Redis) -> None:
        add(client, 3)
        take(client, "ann", count=2)
        answers: list[Any] = [
            client.xdelex("orders", "1-0", "9-0", ref_policy="ACKED"),
            client.xdelex("orders", "1-0", ref_policy="DELREF"),
            client.xdelex("orders", "2-0"),
        ]
        assert answers == [[2, -1], [1], [1]]
        assert [row[0] for row in pending(client)] == ["2-0"]
        assert ids(client) == ["3-0"]

    def test_xackdel_acknowledges_and_deletes(self, client: Redis) -> None:
        client.xgroup_create("orders", "auditors", id="0")
        add(client, 3)
        take(client, "ann")
        client.xreadgroup("auditors", "zoe", {"orders": ">"}, count=1)
        answers: list[Any] = [
            client.xackdel("orders", "packers", "1-0", ref_policy="ACKED"),
            client.xackdel("orders", "packers", "2-0", "9-0", ref_policy="DELREF"),
            client.xackdel("orders", "packers", "3-0"),
        ]
        assert answers == [[2], [1, -1], [1]]
        assert ids(client) == ["1-0"]


class TestReading:
    def test_ranges_both_ways(self, client: Redis) -> None:
        add(client, 3)
        entries = [(f"{n}-0", {"n": f"{n}"}) for n in (1, 2, 3)]
        assert client.xrange("orders") == entries
        assert client.xrange("orders", min="(1-0", max="3", count=1) == entries[1:2]
        assert client.xrevrange("orders") == entries[::-1]
        assert client.xrevrange("orders", max="2", min="-", count=5) == entries[1::-1]
        assert client.execute_command("XRANGE", "orders", "-", "+", "COUNT", 0) is None
        assert client.xrange("nothing") == []

    def test_xread_of_several_streams(self, client: Redis) -> None:
        add(client, 2)
        client.xadd("others", {"n": 9}, id="9-0")
        everything: Any = {"orders": "0", "others": "0", "nothing": "0"}
        assert client.xread(everything, count=1) == {
            "orders": [("1-0", {"n": "1"})],
            "others": [("9-0", {"n": "9"})],
        }
        assert client.xread({"orders": "+"}) == {"orders": [("2-0", {"n": "2"})]}
        assert client.xread({"orders": "$"}) == {}

    def test_xread_with_limits_over_all_streams(self, client: Redis) -> None:
        add(client, 3)
        client.xadd("others", {"n": 9}, id="9-0")
        everything: Any = {"orders": "0", "others": "0"}
        two = {"orders": [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]}
        assert client.xread(everything, count=2, max_count=2) == two
        assert client.xread(everything, max_size=1) == {"orders": [("1-0", {"n": "1"})]}

    def test_xreadgroup_with_limits_delivers_no_more_than_it_answers(self, client: Redis) -> None:
        add(client, 3)
        read = client.xreadgroup("packers", "ann", {"orders": ">"}, max_count=1, max_size=10_000)
        assert read == {"orders": [("1-0", {"n": "1"})]}
        assert len(take(client, "ann", max_size=1)) == 1
        assert len(pending(client)) == 2

    def test_xreadgroup_claims_what_others_left(self, client: Redis, clock: Clock) -> None:
        add(client, 2)
        take(client, "ann", count=1)
        clock.advance(5000)
        assert take(client, "bob", claim_min_idle_time=5000) == [
            ("1-0", {"n": "1"}, 5000, 1),
            ("2-0", {"n": "2"}, 0, 0),
        ]
        assert [row[1:] for row in pending(client)] == [("bob", 0, 2), ("bob", 0, 1)]


class TestPendingEntries:
    def test_xclaim_sets_idle_time_time_and_deliveries(self, client: Redis) -> None:
        add(client, 3)
        take(client, "ann", count=2)

        def claim(entry_id: str, **options: Any) -> Any:
            return client.xclaim("orders", "packers", "bob", 0, [entry_id], **options)

        assert claim("1-0", idle=700, retrycount=9) == [("1-0", {"n": "1"})]
        assert claim("2-0", time=START_MS - 300, justid=True) == ["2-0"]
        assert claim("3-0") == []
        assert claim("3-0", force=True) == [("3-0", {"n": "3"})]
        assert pending(client) == [
            ("1-0", "bob", 700, 9),
            ("2-0", "bob", 300, 1),
            ("3-0", "bob", 0, 2),
        ]

    def test_xpending_of_a_part(self, client: Redis) -> None:
        add(client, 4)
        take(client, "ann", count=2)
        take(client, "bob")

        def part(start: str, end: str, count: int, **options: Any) -> list[str]:
            rows: Any = client.xpending_range("orders", "packers", start, end, count, **options)
            return [row["message_id"] for row in rows]

        assert part("(1-0", "3-0", 10) == ["2-0", "3-0"]
        assert part("-", "+", 1, consumername="bob") == ["3-0"]
        assert part("-", "+", 10, consumername="nobody") == []

    def test_xnack_gives_entries_back(self, client: Redis, clock: Clock) -> None:
        add(client, 4)
        take(client, "ann")
        assert client.xnack("orders", "packers", "SILENT", "1-0") == 1
        assert client.xnack("orders", "packers", "FAIL", "2-0", "9-0") == 1
        assert client.xnack("orders", "packers", "FATAL", "3-0", retrycount=7) == 1
        assert client.xnack("orders", "packers", "FAIL", "4-0", force=True) == 1
        assert pending(client) == [
            ("1-0", "", -1, 0),
            ("2-0", "", -1, 1),
            ("3-0", "", -1, 7),
            ("4-0", "", -1, 1),
        ]
        [group] = client.xinfo_stream("orders", full=True)["groups"]
        assert group["nacked-count"] == 4
        taken = take(client, "bob", count=1, claim_min_idle_time=60_000)
        assert [entry[0] for entry in taken] == ["1-0"]


class TestGroupsAndInformation:
    def test_groups_are_made_moved_and_destroyed(self, client: Redis) -> None:
        add(client, 3)
        assert client.xgroup_create("orders", "late", id="$")
        assert client.xgroup_create("orders", "told", id="2-0", entries_read=2)
        assert client.xgroup_create("fresh", "first", mkstream=True)
        with pytest.raises(ResponseError, match="Consumer Group name already exists"):
            client.xgroup_create("orders", "late")
        with pytest.raises(ResponseError, match="requires the key to exist"):
            client.xgroup_create("nothing", "late")
        assert client.xgroup_setid("orders", "late", "1-0", entries_read=1)
        groups = {one["name"]: one for one in client.xinfo_groups("orders")}
        assert list(groups) == ["late", "packers", "told"]
        assert groups["late"] == {
            "name": "late",
            "consumers": 0,
            "pending": 0,
            "last-delivered-id": "1-0",
            "entries-read": 1,
            "lag": 2,
        }
        assert groups["told"]["lag"] == 1
        assert client.xgroup_destroy("orders", "late")
        assert not client.xgroup_destroy("orders", "late")

    def test_consumers_are_made_and_deleted_with_what_they_own(self, client: Redis) -> None:
        add(client, 2)
        assert client.xgroup_createconsumer("orders", "packers", "ann") == 1
        assert client.xgroup_createconsumer("orders", "packers", "ann") == 0
        assert client.xinfo_consumers("orders", "packers") == [
            {"name": "ann", "pending": 0, "idle": 0, "inactive": -1}
        ]
        take(client, "ann")
        assert client.xgroup_delconsumer("orders", "packers", "ann") == 2
        assert pending(client) == []

    def test_xinfo_stream(self, client: Redis) -> None:
        add(client, 2)
        assert client.xinfo_stream("orders") == {
            "length": 2,
            "radix-tree-keys": 1,
            "radix-tree-nodes": 2,
            "last-generated-id": "2-0",
            "max-deleted-entry-id": "0-0",
            "entries-added": 2,
            "recorded-first-entry-id": "1-0",
            "idmp-duration": 100,
            "idmp-maxsize": 100,
            "pids-tracked": 0,
            "iids-tracked": 0,
            "iids-added": 0,
            "iids-duplicates": 0,
            "groups": 1,
            "first-entry": ("1-0", {"n": "1"}),
            "last-entry": ("2-0", {"n": "2"}),
        }
        with pytest.raises(ResponseError, match="no such key"):
            client.xinfo_stream("nothing")

    def test_xinfo_stream_of_an_empty_stream(self, client: Redis) -> None:
        info = client.xinfo_stream("orders")
        assert (info["first-entry"], info["last-entry"], info["length"]) == (None, None, 0)
        assert client.xinfo_stream("orders", full=True)["entries"] == {}

    def test_xinfo_stream_in_full(self, client: Redis) -> None:
        add(client, 2)
        take(client, "ann", count=1)
        info = client.xinfo_stream("orders", full=True)
        assert info["entries"] == {"1-0": {"n": "1"}, "2-0": {"n": "2"}}
        assert info["groups"] == [
            {
                "name": "packers",
                "last-delivered-id": "1-0",
                "entries-read": 1,
                "lag": 1,
                "pel-count": 1,
                "pending": [["1-0", "ann", START_MS, 1]],
                "consumers": [
                    {
                        "name": "ann",
                        "seen-time": START_MS,
                        "active-time": START_MS,
                        "pel-count": 1,
                        "pending": [["1-0", START_MS, 1]],
                    }
                ],
                "nacked-count": 0,
            }
        ]


class TestKeys:
    def test_scan_finds_streams_among_other_keys(self, client: Redis) -> None:
        for n in range(50):
            client.set(f"text:{n}", n)
            client.xadd(f"stream:{n}", {"n": n})
        streams = set(client.scan_iter(_type="stream", count=7))
        assert streams == {"orders", *(f"stream:{n}" for n in range(50))}
        assert set(client.scan_iter(match="stream:1?")) == {f"stream:{n}" for n in range(10, 20)}
        assert set(client.scan_iter(match="text:*", _type="stream")) == set()

    def test_a_stream_expires_and_is_kept_by_persist(self, client: Redis, clock: Clock) -> None:
        assert client.expire("orders", 100)
        add(client, 1)
        assert client.ttl("orders") == 100
        assert client.pexpireat("orders", START_MS + 5000, gt=True) is False
        assert client.persist("orders")
        assert client.ttl("orders") == -1
        assert client.pexpire("orders", 5000)
        assert client.pexpiretime("orders") == START_MS + 5000
        clock.advance(4999)
        assert client.xlen("orders") == 1
        clock.advance(1)
        assert client.xlen("orders") == 0
        assert client.ttl("orders") == -2

    def test_a_copy_has_groups_and_pending_entries_of_its_own(self, client: Redis) -> None:
        add(client, 2)
        take(client, "ann", count=1)
        assert client.copy("orders", "twin")
        assert client.xack("twin", "packers", "1-0") == 1
        assert len(pending(client)) == 1
        assert client.rename("twin", "renamed")
        assert client.xpending("renamed", "packers")["pending"] == 0

    def test_what_a_key_is(self, client: Redis) -> None:
        assert client.type("orders") == "stream"
        assert client.object("encoding", "orders") == "stream"
        assert client.memory_usage("orders")
        assert client.randomkey() == "orders"
        assert client.keys() == ["orders"]
        assert client.dbsize() == 1
        assert client.touch("orders", "nothing") == 1
        assert client.move("orders", 1)
        assert client.swapdb(0, 1)
        assert client.unlink("orders") == 1

    def test_locks_and_counters_around_streams(self, client: Redis) -> None:
        assert client.set("lock", "me", nx=True, px=1000)
        assert client.set("lock", "you", nx=True) is None
        assert client.incr("count", 5) == 5
        assert client.mget("lock", "count", "nothing") == ["me", "5", None]
        assert client.getdel("lock") == "me"
        assert client.set("count", 6, get=True) == "5"


class TestTheServer:
    def test_parts_of_strings(self, client: Redis) -> None:
        client.set("s", "ohmytext")
        client.set("t", "mynewtext")
        assert client.getrange("s", 2, -1) == client.substr("s", 2) == "mytext"
        assert client.setrange("s", 8, "!") == client.append("t", "") == 9
        assert client.lcs("s", "t") == "mytext"
        assert client.lcs("s", "t", len=True) == 6
        found: Any = client.lcs("s", "t", idx=True, minmatchlen=4, withmatchlen=True)
        pairs = (
            found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
        )
        assert pairs == {"matches": [[[4, 7], [5, 8], 4]], "len": 6}

    def test_bits_of_strings(self, client: Redis) -> None:
        assert [client.setbit("b", place, 1) for place in (1, 7, 100)] == [0, 0, 0]
        assert (client.getbit("b", 7), client.getbit("b", 8)) == (1, 0)
        assert (client.bitcount("b"), client.bitcount("b", 0, 7, "BIT")) == (3, 2)
        assert (client.bitpos("b", 1), client.bitpos("b", 1, 1), client.bitpos("b", 0)) == (
            1,
            100,
            0,
        )
        assert client.bitop("NOT", "n", "b") == 13
        assert client.bitop("ONE", "all", "b", "n") == 13
        assert client.bitcount("all") == 13 * 8
        fields: Any = client.bitfield("f", default_overflow="SAT")
        assert fields.incrby("u8", "#1", 300).get("u8", 8).set("i4", 0, -1).execute() == [
            255,
            255,
            0,
        ]
        assert client.bitfield_ro("f", "u8", 0) == [240]

    @pytest.mark.filterwarnings("ignore:Call to experimental method")
    def test_strings_are_set_and_removed_on_conditions(self, client: Redis, clock: Clock) -> None:
        if_new: Any = DataPersistOptions.NX
        assert client.msetex({"a": "1", "b": "2"}, if_new, ex=10) == 1
        assert client.msetex({"b": "3", "c": "3"}, if_new) == 0
        digest: Any = client.digest("a")
        assert client.delex("a", ifdne=digest) == 0
        assert client.delex("a", ifdeq=digest) == 1
        assert client.delex("b", ifeq="3") == 0
        clock.advance(10_000)
        assert client.exists("a", "b") == 0

    def test_counters_with_bounds(self, client: Redis, clock: Clock) -> None:
        window: Any = {"ubound": 2, "ex": 60, "enx": True}
        assert [client.increx("n", **window) for _ in range(3)] == [[1, 1], [2, 1], [2, 0]]
        clock.advance(60_000)
        assert client.increx("n", **window) == [1, 1]
        assert client.increx("n", byint=5, ubound=3, saturate=True) == [3, 2]
        floats: Any = client.increx("n", byfloat=0.5)
        assert [float(number) for number in floats] == [3.5, 0.5]

    def test_info_is_understood(self, client: Redis) -> None:
        add(client, 1)
        info = client.info()
        expected = {
            "redis_version": "8.10.0",
            "redis_mode": "standalone",
            "cluster_enabled": 0,
            "loading": 0,
            "role": "master",
            "connected_slaves": 0,
            "maxclients": 10_000,
        }
        assert {name: info[name] for name in expected} == expected
        assert info["penstock_version"]
        assert info["db0"] == {"keys": 1, "expires": 0, "avg_ttl": 0, "subexpiry": 0}
        assert info["used_memory"] > 0
        assert client.info("nonsense") == {}

    def test_statistics_of_commands_are_understood(self, client: Redis) -> None:
        client.config_resetstat()
        add(client, 3)
        with pytest.raises(ResponseError):
            client.xadd("orders", {"n": 1}, id="1-0")
        calls = client.info("commandstats")["cmdstat_xadd"]
        assert (calls["calls"], calls["failed_calls"], calls["rejected_calls"]) == (4, 1, 0)
        assert client.info("errorstats") == {"errorstat_ERR": {"count": 1}}

    def test_clients_are_listed(self, client: Redis, connect: Connect, protocol: int) -> None:
        named = connect(client_name="worker", db=2)
        named.ping()
        listed = {one["name"]: one for one in client.client_list()}
        worker = listed["worker"]
        assert int(worker["id"]) == named.client_id()
        assert (worker["db"], worker["resp"], worker["cmd"]) == ("2", str(protocol), "ping")
        assert worker["lib-name"] == "redis-py"
        assert len(client.client_list(client_id=[worker["id"]])) == 1
        assert client.client_list(_type="pubsub") == []
        assert client.client_kill(worker["addr"]) is True
        with pytest.raises(ResponseError, match="No such client"):
            client.client_kill("127.0.0.1:1")

    def test_a_client_describes_itself(self, client: Redis) -> None:
        assert client.client_setname("ann")
        assert client.client_getname() == "ann"
        assert client.client_setinfo("LIB-NAME", "tests")
        info: Any = client.client_info()
        assert (info["name"], info["lib-name"]) == ("ann", "tests")
        assert client.client_getredir() == -1
        assert client.client_no_evict("ON") == "OK"
        assert client.client_no_touch("OFF") == "OK"
        tracking: Any = client.client_trackinginfo()
        assert tracking["flags"] == ["off"]

    def test_writers_are_paused(self, client: Redis) -> None:
        assert client.client_pause(100_000, all=False)
        assert client.xlen("orders") == 0
        assert client.client_unpause()
        add(client, 1)

    def test_the_command_table_is_understood(self, client: Redis) -> None:
        table: Any = client.command()
        assert len(table) == client.command_count()
        xadd = table["xadd"]
        assert (xadd["name"], xadd["arity"], xadd["first_key_pos"]) == ("xadd", -5, 1)
        assert set(xadd["flags"]) == {"write", "denyoom", "fast"}
        assert "@stream" in xadd["acl_categories"]
        assert table["xreadgroup"]["step_count"] == 0

    def test_commands_are_listed_and_their_keys_found(self, client: Redis) -> None:
        listed: Any = client.command_list(category="stream")
        assert {"xadd", "xreadgroup", "xgroup|create", "xinfo|stream"} <= set(listed)
        assert "get" not in listed
        assert client.command_list(pattern="xa*") != []
        read = "XREADGROUP GROUP g c STREAMS a b > >"
        assert client.command_getkeys(*read.split()) == ["a", "b"]
        flagged: Any = client.command_getkeysandflags("XADD", "orders", "*", "f", "v")
        assert [[key, set(flags)] for key, flags in flagged] == [["orders", {"RW", "update"}]]

    def test_the_documentation_of_a_command_can_be_asked_for(self, client: Redis) -> None:
        docs: Any = client.execute_command("COMMAND DOCS", "xlen")
        name, about = next(iter(docs.items())) if isinstance(docs, dict) else docs
        assert name == "xlen"
        assert "summary" in about

    def test_settings_are_read_and_changed(self, client: Redis) -> None:
        assert client.config_get("stream-node-*") == {
            "stream-node-max-bytes": "4096",
            "stream-node-max-entries": "100",
        }
        assert client.config_set("stream-node-max-entries", 10)
        assert client.config_get("stream-node-max-entries") == {"stream-node-max-entries": "10"}
        with pytest.raises(ResponseError, match="argument must be between 0 and"):
            client.config_set("stream-node-max-entries", -1)

    def test_what_is_not_there_says_so(self, client: Redis) -> None:
        assert client.script_exists("0" * 40) == [False]
        assert client.script_flush()
        assert client.function_list() == []
        assert client.module_list() == []

    def test_time_echo_and_flush(self, client: Redis) -> None:
        assert client.time() == (START_MS // 1000, 0)
        assert client.echo("hello") == "hello"
        assert client.ping()
        assert client.wait(0, 0) == 0
        assert client.flushdb()
        assert client.flushall(asynchronous=True)
        assert client.dbsize() == 0

    def test_databases_are_apart(self, client: Redis, connect: Connect) -> None:
        other = connect(db=5)
        assert other.exists("orders") == 0
        other.xadd("orders", {"n": 1}, id="1-0")
        assert client.xlen("orders") == 0
        assert client.info("keyspace")["db5"]["keys"] == 1
