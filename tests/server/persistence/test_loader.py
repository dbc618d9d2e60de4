"""Applying the commands of files: what they do, what is refused, and that nobody notices."""

from __future__ import annotations

import pytest

from server.persistence.loader import Loader, LoadError
from storage.aof import extension_records as own
from storage.engine.ids import join
from storage.engine.pending import HIGHEST, PendingEntry
from storage.engine.stream import Stream
from storage.keyspace.databases import Database
from tests.support.direct import START_MS as T
from tests.support.direct import Direct
from tests.support.listening import Listener
from tests.support.recording import commands_of

A_STREAM = ("XADD k 1-1 a b", "XADD k 1-2 a b", "XADD k 2-1 a b")
A_GROUP = (*A_STREAM, "XGROUP CREATE k g 0")
OWN = commands_of(own.record(own.SETTINGS, b"100", b"4096", b"100", b"100"))[0]


def words(line: str | list[bytes]) -> list[bytes]:
    """A command from a line of words; ``''`` stands for an empty one."""
    if isinstance(line, list):
        return line
    return [b"" if word == "''" else word.encode() for word in line.split()]


def record(name: bytes, *arguments: str) -> list[bytes]:
    """A record as a command."""
    return commands_of(own.record(name, *map(str.encode, arguments)))[0]


class Loading:
    """A server that is loading a file."""

    def __init__(self, *lines: str | list[bytes], requirepass: str = "") -> None:
        self.direct = Direct(requirepass=requirepass)
        self.loader = Loader(self.direct.server.state, self.direct.server.services.dispatcher)
        self.loader.begin_file()
        self.apply(*lines)

    def apply(self, *lines: str | list[bytes]) -> None:
        """Applies commands."""
        for line in lines:
            self.loader.apply(words(line))

    @property
    def db(self) -> Database:
        """The first database."""
        return self.direct.server.state.keyspace.databases[0]

    @property
    def stream(self) -> Stream:
        """The stream at ``k``."""
        stream = self.db.values[b"k"]
        assert isinstance(stream, Stream)
        return stream

    def pending(self) -> list[tuple[str, str, int, int]]:
        """The pending entries of the group ``g``: ID, owner, delivery time, delivery count."""
        group = self.stream.groups[b"g"]
        group.check()
        return [_shown(entry) for entry in group.pending.scan(0)]

    def times(self, consumer: bytes) -> tuple[int, int]:
        """When a consumer of the group ``g`` was seen and active."""
        found = self.stream.groups[b"g"].consumers[consumer]
        return found.seen, found.active


def _shown(entry: PendingEntry) -> tuple[str, str, int, int]:
    owner = "-" if entry.owner is None else entry.owner.name.decode()
    entry_id = f"{entry.id >> 64}-{entry.id & (2**64 - 1)}"
    return entry_id, owner, entry.time, entry.deliveries


# --- what commands do ------------------------------------------------------------------------


def test_what_redis_writes_of_strings_is_done() -> None:
    loading = Loading(
        "SELECT 0", "SET a 1", "INCR a", "incrby a 40", "APPEND a x", "MSET b 1 c 2", "GETDEL b",
        "SET e v PXAT 5", "SET f v KEEPTTL", "PEXPIREAT f 7", "COPY f h", "PERSIST f",
        "RENAME c d", "SELECT 1", "SET a 3", "MOVE a 2", "SWAPDB 1 2",
    )  # fmt: skip
    assert loading.db.values == {
        b"a": b"42x", b"d": b"2", b"e": b"v", b"f": b"v", b"h": b"v",
    }  # fmt: skip
    assert loading.db.expires == {b"e": 5, b"h": 7}
    assert loading.direct.server.state.keyspace.databases[1].values == {b"a": b"3"}


def test_an_id_may_be_written_as_the_client_did() -> None:
    loading = Loading(*A_STREAM, "XADD k MAXLEN = 2 LIMIT 10 +3-1 a b", "XADD k +3-2 a b")
    assert list(loading.stream.log) == [join(2, 1), join(3, 1), join(3, 2)]


def test_entries_may_come_with_a_trimming_and_its_old_limit() -> None:
    loading = Loading(*A_STREAM, "XADD k MAXLEN = 3 LIMIT 10 3-1 a b")
    assert list(loading.stream.log) == [join(1, 2), join(2, 1), join(3, 1)]
    loading.apply("XADD k NOMKSTREAM MINID = 3-0 4-1 a b")
    assert list(loading.stream.log) == [join(3, 1), join(4, 1)]
    loading.apply("xadd k maxlen 1 5 a b")
    assert list(loading.stream.log) == [join(5, 0)]
    loading.apply("XTRIM k MAXLEN = 0 LIMIT 7")
    assert loading.stream.log.length == 0
    assert (loading.stream.last_id, loading.stream.entries_added) == (join(5, 0), 6)


def test_no_stream_is_made_where_that_was_not_wanted() -> None:
    assert not Loading("XADD k NOMKSTREAM 1-1 a b").db.values


def test_options_that_only_the_command_knows_are_left_to_it() -> None:
    loading = Loading(*A_GROUP, "XADD k ACKED MAXLEN = 1 3-1 a b", "XADD k MAXLEN ~ 1 4-1 a b")
    assert loading.stream.log.length == 5
    loading.apply("XTRIM k DELREF MAXLEN 2", "XTRIM k MAXLEN ~ 1")
    assert loading.stream.log.length == 2


def test_deletions_move_the_highest_deleted_id() -> None:
    loading = Loading(*A_STREAM, "XDEL k 1-2 9-9")
    assert list(loading.stream.log) == [join(1, 1), join(2, 1)]
    assert loading.stream.max_deleted_id == join(1, 2)


def test_groups_are_made_and_moved() -> None:
    loading = Loading(
        "XGROUP CREATE k g $ MKSTREAM", *A_STREAM, "XGROUP CREATE k h $ ENTRIESREAD 2",
        "xgroup create k i 1 mkstream entriesread 9",
    )  # fmt: skip
    groups = loading.stream.groups
    positions = [(name, group.last_id, group.entries_read) for name, group in groups.items()]
    assert positions == [(b"g", 0, None), (b"h", join(2, 1), 2), (b"i", join(1, 0), 3)]
    loading.apply(
        "XGROUP SETID k g $",
        "XGROUP SETID k h 1-2 ENTRIESREAD -1",
        "XGROUP SETID k i 0 entriesread 1",
    )
    positions = [(name, group.last_id, group.entries_read) for name, group in groups.items()]
    assert positions == [(b"g", join(2, 1), None), (b"h", join(1, 2), None), (b"i", 0, 1)]
    loading.apply(
        "XGROUP DESTROY k g", "XGROUP CREATECONSUMER k h ann", "XGROUP DELCONSUMER k h ann"
    )
    assert list(groups) == [b"h", b"i"]
    assert not groups[b"h"].consumers


def test_claims_give_owner_time_and_count() -> None:
    loading = Loading(
        *A_GROUP,
        "XCLAIM k g ann 0 1-1 TIME 100 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
        "XCLAIM k g ann 0 2-1 TIME 100 RETRYCOUNT 3 FORCE JUSTID LASTID 2-1",
        "XCLAIM k g bob 0 1-2 TIME 50 RETRYCOUNT 1 JUSTID FORCE",
        "XGROUP SETID k g 2-1 ENTRIESREAD 3",
    )
    assert loading.pending() == [
        ("1-1", "ann", 100, 1), ("1-2", "bob", 50, 1), ("2-1", "ann", 100, 3),
    ]  # fmt: skip
    assert loading.stream.groups[b"g"].last_id == join(2, 1)
    loading.apply("XCLAIM k g bob 0 1-1 TIME 60 RETRYCOUNT 8 FORCE JUSTID LASTID 1-1")
    loading.apply("XACK k g 2-1 7-7")
    assert loading.pending() == [("1-1", "bob", 60, 8), ("1-2", "bob", 50, 1)]
    assert loading.stream.groups[b"g"].last_id == join(2, 1)


def test_claims_without_a_count_add_a_delivery_unless_they_want_ids_alone() -> None:
    loading = Loading(
        *A_GROUP,
        "XCLAIM k g ann 0 1-1 1-2 2-1 TIME 100 RETRYCOUNT 4 FORCE JUSTID",
        "xclaim k g ann 0 1-2 2-1 time 200",
        "XCLAIM k g bob 0 2-1 TIME 300 JUSTID LASTID 2-1",
    )
    assert loading.pending() == [
        ("1-1", "ann", 100, 4), ("1-2", "ann", 200, 5), ("2-1", "bob", 300, 5),
    ]  # fmt: skip
    assert loading.stream.groups[b"g"].last_id == join(2, 1)
    loading.apply("XCLAIM k g bob 0 1-1 TIME 1 RETRYCOUNT 9223372036854775807 FORCE JUSTID")
    loading.apply("XCLAIM k g bob 0 1-1 TIME 1", "XACK k g 2-1", "XCLAIM k g bob 0 2-1 FORCE")
    assert loading.pending()[0] == ("1-1", "bob", 1, HIGHEST)
    assert loading.pending()[2] == ("2-1", "bob", T, 2)


def test_a_claim_in_a_file_of_redis_drops_what_is_gone_and_forces_nothing_else() -> None:
    loading = Loading(
        *A_GROUP,
        "XCLAIM k g ann 0 1-1 1-2 TIME 100 RETRYCOUNT 1 FORCE JUSTID",
        "XDEL k 1-1",
        "XCLAIM k g ann 0 1-1 TIME 100 RETRYCOUNT 1 FORCE JUSTID LASTID 0-0",
        "XCLAIM k g ann 0 2-1 TIME 100 RETRYCOUNT 1 JUSTID",
    )
    assert loading.pending() == [("1-2", "ann", 100, 1)]


def test_a_claim_in_a_file_of_penstock_is_taken_as_it_is() -> None:
    loading = Loading(
        OWN, *A_GROUP, "XDEL k 1-1", "XCLAIM k g ann 0 1-1 TIME 100 RETRYCOUNT 1 JUSTID FORCE"
    )
    assert loading.pending() == [("1-1", "ann", 100, 1)]


def test_idempotent_ids_of_redis_are_noted_at_the_time_of_loading() -> None:
    loading = Loading(*A_STREAM, "XIDMPRECORD k p x 1-1", "XCFGSET k IDMP-MAXSIZE 3")
    assert loading.stream.idempotency.maxsize == 3
    loading.apply("XIDMPRECORD k p x 1-1")
    assert loading.stream.idempotency.records() == {b"p": {b"x": (join(1, 1), T)}}


# --- when consumers were seen ----------------------------------------------------------------


def test_in_a_file_of_redis_consumers_were_seen_when_it_is_loaded() -> None:
    loading = Loading(
        *A_GROUP,
        "XGROUP CREATECONSUMER k g abe",
        "XGROUP CREATECONSUMER k g abe",
        "XCLAIM k g ann 0 1-1 TIME 100 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
        "XCLAIM k g bob 0 9-9 TIME 100 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
    )
    assert loading.times(b"abe") == (T, -1)
    assert loading.times(b"ann") == (T, T)
    assert loading.times(b"bob") == (T, -1)


def test_in_a_file_of_penstock_they_were_seen_when_they_were_given_something() -> None:
    loading = Loading(
        OWN,
        *A_GROUP,
        "XGROUP CREATECONSUMER k g abe",
        "XCLAIM k g ann 0 1-1 TIME 100 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
        "XCLAIM k g ann 0 1-1 TIME 200",
    )
    assert loading.times(b"abe") == (T, -1)
    assert loading.times(b"ann") == (100, 100)
    assert loading.pending() == [("1-1", "ann", 200, 2)]
    loading.apply(record(own.SEEN, "k", "g", "ann", "300", "200", "eve", "1", "1"))
    assert loading.times(b"ann") == (300, 200)


def test_times_of_consumers_that_have_gone_are_passed_over() -> None:
    loading = Loading(*A_GROUP, "SET s v")
    for key, group in (("q", "g"), ("s", "g"), ("k", "h")):
        loading.apply(record(own.SEEN, key, group, "ann", "1", "1"))
    assert not loading.stream.groups[b"g"].consumers


def test_the_next_file_may_be_of_redis_again() -> None:
    loading = Loading(
        record(own.SETTINGS, "1", "4096", "100", "100"), "SELECT 3", record(own.SKIP, "9")
    )
    loading.loader.begin_file()
    loading.apply(*A_GROUP, "XCLAIM k g ann 0 9-9 TIME 1 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1")
    assert loading.stream.log.block_count == 1
    assert loading.pending() == []


# --- records ---------------------------------------------------------------------------------


def test_settings_hold_for_what_follows_but_not_for_the_server() -> None:
    loading = Loading(record(own.SETTINGS, "1", "4096", "7", "8"), *A_STREAM)
    assert loading.stream.log.block_count == 3
    assert (loading.stream.idempotency.duration, loading.stream.idempotency.maxsize) == (7, 8)
    loading.loader.finish()
    limits = loading.direct.server.state.keyspace.limits
    assert (limits.max_entries, limits.max_bytes) == (100, 4096)
    assert (limits.idmp_duration, limits.idmp_maxsize) == (100, 100)


def test_commands_for_others_are_passed_over() -> None:
    loading = Loading(OWN, record(own.SKIP, "2"), "XADD k 1-1 a b", "LPUSH l 1", "XADD k 2-1 a b")
    assert list(loading.stream.log) == [join(2, 1)]


def test_entries_trimmed_from_in_between_do_not_count_as_deleted() -> None:
    loading = Loading(OWN, *A_STREAM, record(own.TRIMMED, "k", "1-2"))
    assert list(loading.stream.log) == [join(1, 1), join(2, 1)]
    assert loading.stream.max_deleted_id == 0


def test_what_is_known_of_idempotent_producing_comes_back() -> None:
    loading = Loading(
        OWN,
        *A_STREAM,
        record(own.RETENTION, "k", "9", "3"),
        record(own.IIDS, "k", "p", "x", "1-1", "5", "p", "y", "1-2", "6"),
        record(own.LIFETIME, "k", "12", "4"),
        record(own.DUPLICATE, "k"),
    )
    table = loading.stream.idempotency
    assert (table.duration, table.maxsize, table.added, table.duplicates) == (9, 3, 12, 5)
    assert table.records() == {b"p": {b"x": (join(1, 1), 5), b"y": (join(1, 2), 6)}}


def test_an_echo_that_is_no_record_is_passed_over() -> None:
    assert not Loading("ECHO hello").db.values


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (record(b"what"), "a record of the unknown kind 'what'"),
        (record(own.SKIP), "the arguments are not as they must be"),
        (record(own.SKIP, "x"), "the arguments are not as they must be"),
        (record(own.SETTINGS, "1"), "the arguments are not as they must be"),
        (record(own.SEEN, "k", "g", "ann", "1"), "the arguments are not as they must be"),
        (record(own.RELEASED, "k", "g", "1-1"), "the arguments are not as they must be"),
        (record(own.RELEASED, "k", "h", "1-1", "1"), "the stream 'k' has no consumer group 'h'"),
        (record(own.TRIMMED, "q", "1-1"), "there is no stream at the key 'q'"),
        (record(own.BLOCKS, "k"), "the blocks of the stream 'k' do not fit its entries"),
        (record(own.BLOCKS, "k", "x"), "the blocks of the stream 'k' do not fit its entries"),
        (record(own.BLOCKS, "k", ":1\r\n"), "the blocks of the stream 'k' do not fit its entries"),
        (record(own.IIDS, "k", "p"), "the arguments are not as they must be"),
        (record(own.LIFETIME, "k", "1"), "the arguments are not as they must be"),
        ([b"ECHO", b"*1\r\n$10\r\npenstock:1\r\n"], "a damaged record"),
        ([b"ECHO"], "the arguments are not as they must be"),
    ],
)
def test_a_record_that_cannot_be_right_is_refused(command: list[bytes], text: str) -> None:
    loading = Loading(OWN, *A_GROUP)
    with pytest.raises(LoadError, match=f": {text}$"):
        loading.loader.apply(command)


def test_what_real_servers_write_of_edited_strings_is_applied() -> None:
    loading = Loading(
        "SET s Hello",
        "SETRANGE s 4 w",
        "APPEND s World",
        "PEXPIREAT s 33177117420123",
        "SETBIT s 2 0",
        "BITFIELD t SET u8 #1 65 OVERFLOW FAIL INCRBY i4 0 100",
        "BITOP NOT u t",
        "SETRANGE v 2 x",
    )
    assert {key: loading.db.string(key) for key in loading.db.values} == {
        b"s": b"HellwWorld",
        b"t": b"\0A",
        b"u": b"\xff\xbe",
        b"v": b"\0\0x",
    }
    assert loading.db.expires == {b"s": 33177117420123}


# --- groups of commands ----------------------------------------------------------------------


def test_a_group_counts_when_its_end_has_come() -> None:
    loading = Loading("MULTI", "SET a 1", "SELECT 1", "SET b 2")
    assert not loading.db.values
    assert loading.loader.open_group == 4
    loading.apply("EXEC")
    assert loading.db.values == {b"a": b"1"}
    assert loading.direct.server.state.keyspace.databases[1].values == {b"b": b"2"}
    assert loading.loader.open_group == 0


def test_a_group_without_an_end_does_not_count() -> None:
    loading = Loading("SET a 0", "MULTI", "SET a 1")
    loading.loader.drop_group()
    loading.apply("APPEND a x")
    assert loading.db.values == {b"a": b"0x"}


# --- what is refused -------------------------------------------------------------------------

WRONG = "the arguments are not as they must be"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("GEOADD l 1 2 3", "'GEOADD' 'l' '1': Penstock does not know this command"),
        ("FUNCTION LOAD x", "'FUNCTION' 'LOAD' 'x': ERR Missing library metadata"),
        ("XGROUP FOO k g", "'XGROUP' 'FOO' 'k': Penstock does not know this command"),
        (f"GEOADD {'l' * 65}", f"'GEOADD' '{'l' * 64}...': Penstock does not know this command"),
        ("GET s", "'GET' 's': a command that changes nothing does not belong in the file"),
        ("DISCARD", "'DISCARD': a command that changes nothing does not belong in the file"),
        ("SET s", "'SET' 's': ERR wrong number of arguments for 'set' command"),
        ("INCR t", "'INCR' 't': ERR value is not an integer or out of range"),
        (
            "APPEND k x",
            "'APPEND' 'k' 'x': WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("EXEC", "'EXEC': there is no MULTI before it"),
        ("SELECT 16", "'SELECT' '16': there is no database 16: there are 16"),
        ("SELECT x", f"'SELECT' 'x': {WRONG}"),
        ("SELECT", f"'SELECT': {WRONG}"),
        ("XADD k 2-1 a b", "'XADD' 'k' '2-1': the ID is not above that of the newest entry"),
        ("XADD t 2-1 a b", "'XADD' 't' '2-1': the key 't' holds a string"),
        ("XADD k 9-1 a", f"'XADD' 'k' '9-1': {WRONG}"),
        ("XADD k 9-1", f"'XADD' 'k' '9-1': {WRONG}"),
        ("XADD k 9-x a b", "'XADD' 'k' '9-x': ERR Invalid stream ID specified as stream command"
                           " argument"),
        ("XADD k MAXLEN", f"'XADD' 'k' 'MAXLEN': {WRONG}"),
        ("XTRIM k LIMIT 1", f"'XTRIM' 'k' 'LIMIT': {WRONG}"),
        ("XTRIM q MAXLEN 1", "'XTRIM' 'q' 'MAXLEN': there is no stream at the key 'q'"),
        ("XDEL t 1-1", "'XDEL' 't' '1-1': there is no stream at the key 't'"),
        ("XACK k h 1-1", "'XACK' 'k' 'h': the stream 'k' has no consumer group 'h'"),
        ("XCLAIM k g ann 5 1-1", "'XCLAIM' 'k' 'g': a minimal idle time other than 0 does not say"
                                 " what was claimed"),
        ("XCLAIM k g ann 0 1-1 IDLE 5", f"'XCLAIM' 'k' 'g': {WRONG}"),
        ("XCLAIM k g ann 0 1-1 TIME", f"'XCLAIM' 'k' 'g': {WRONG}"),
        ("XCLAIM k g ann 0 TIME 5", "'XCLAIM' 'k' 'g': ERR Invalid stream ID specified as stream"
                                    " command argument"),
        ("XGROUP CREATE k g 0", "'XGROUP' 'CREATE' 'k': the stream 'k' has a consumer group 'g'"
                                " already"),
        ("XGROUP CREATE k h 0 FOO", f"'XGROUP' 'CREATE' 'k': {WRONG}"),
        ("XGROUP CREATE q h 0", "'XGROUP' 'CREATE' 'q': there is no stream at the key 'q'"),
        ("XGROUP SETID k g 0 FOO 1", f"'XGROUP' 'SETID' 'k': {WRONG}"),
        ("XGROUP SETID k g 0 ENTRIESREAD", f"'XGROUP' 'SETID' 'k': {WRONG}"),
    ],
)  # fmt: skip
def test_what_cannot_be_applied_is_named(line: str, text: str) -> None:
    loading = Loading(*A_GROUP, "SET t text")
    with pytest.raises(LoadError) as caught:
        loading.apply(line)
    assert str(caught.value) == text


def test_a_group_inside_a_group_is_refused() -> None:
    loading = Loading("MULTI", "SET a 1")
    with pytest.raises(LoadError, match=r"^'MULTI': it stands inside another MULTI$"):
        loading.apply("multi")


# --- what nobody notices ---------------------------------------------------------------------


def test_nothing_expires_while_files_are_loaded() -> None:
    loading = Loading("SET s v PXAT 5", "APPEND s w", "PEXPIREAT s 6", "COPY s t", "GETDEL s")
    assert loading.db.values == {b"t": b"vw"}
    loading.loader.finish()
    client = loading.direct.client()
    assert client.send("DBSIZE") == b":1\r\n"
    assert client.send("GET", "t") == b"$-1\r\n"


def test_nobody_hears_of_it_and_nothing_is_counted(direct: Direct) -> None:
    listener = Listener(direct)
    on_miss = direct.server.state.keyspace.on_miss
    assert on_miss is not None
    loader = Loader(direct.server.state, direct.server.services.dispatcher)
    for line in (*A_GROUP, "SET s v", "GETDEL s", "COPY nothing t", "DEL k"):
        loader.apply(words(line))
    assert not direct.server.state.keyspace.effects
    loader.finish()
    keyspace = direct.server.state.keyspace
    assert (keyspace.hits, keyspace.misses, keyspace.expired) == (0, 0, 0)
    assert keyspace.on_miss is on_miss
    assert listener.heard() == []
    assert direct.server.state.table[b"set"].calls == 0


def test_it_counts_as_the_last_use_of_every_key() -> None:
    loading = Loading("SET s v", *A_STREAM, "SELECT 1", "SET t v")
    loading.loader.finish()
    assert [db.used for db in loading.direct.server.state.keyspace.databases[:2]] == [
        {b"s": T, b"k": T},
        {b"t": T},
    ]
    assert loading.direct.server.state.keyspace.now_ms == T


def test_no_password_is_asked_for_and_no_permission() -> None:
    loading = Loading(requirepass="sesame")
    loading.direct.server.services.access.set_user(
        loading.direct.client().session, b"default", [b"reset", b"on", b">sesame"]
    )
    loading.apply("SET s v", "MULTI", "SET t v", "EXEC")
    assert loading.db.values == {b"s": b"v", b"t": b"v"}


# --- counters --------------------------------------------------------------------------------


def test_counters_that_have_wrapped_are_taken_for_what_they_count() -> None:
    loading = Loading(
        *A_STREAM,
        "XSETID k 5-0 ENTRIESADDED -9223372036854775808 MAXDELETEDID 3-0",
        "XGROUP CREATE k g 2-1 ENTRIESREAD -9223372036854775808",
        "XGROUP CREATE k h 2-1 ENTRIESREAD -1",
    )
    stream = loading.stream
    assert (stream.last_id, stream.max_deleted_id) == (join(5, 0), join(3, 0))
    assert stream.entries_added == stream.groups[b"g"].entries_read == 2**63
    assert stream.groups[b"h"].entries_read is None


def test_counters_that_contradict_the_entries_are_refused() -> None:
    with pytest.raises(LoadError, match="the counters do not fit the entries"):
        Loading(*A_STREAM, "XSETID k 2-0 ENTRIESADDED 3 MAXDELETEDID 0-0")


def test_counters_that_xsetid_refuses_and_restore_takes_are_loaded() -> None:
    stream = Loading(*A_STREAM, "XSETID k 3-0 ENTRIESADDED 2 MAXDELETEDID 4-0").stream
    assert (stream.last_id, stream.entries_added, stream.max_deleted_id) == (
        join(3, 0),
        2,
        join(4, 0),
    )


def test_an_xsetid_of_fewer_counters_is_the_command_itself() -> None:
    loading = Loading(*A_STREAM, "XSETID k 9-0", "XSETID k 9-0 MAXDELETEDID 8-0")
    stream = loading.stream
    assert (stream.last_id, stream.entries_added, stream.max_deleted_id) == (
        join(9, 0),
        3,
        join(8, 0),
    )
