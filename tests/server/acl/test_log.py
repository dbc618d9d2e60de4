"""The log of denials: what is merged, and for how long."""

from __future__ import annotations

from server.acl.log import MERGED_MS, AclLog, LogEntry


def entry(
    now_ms: int, subject: bytes = b"get", *, context: str = "toplevel", client: bytes = b"id=1"
) -> LogEntry:
    return LogEntry("command", context, subject, b"alice", client, now_ms)


def test_like_denials_are_merged_for_a_minute() -> None:
    log = AclLog()
    log.add(entry(0), 128)
    log.add(entry(MERGED_MS, client=b"id=2"), 128)
    assert [(e.count, e.created_ms, e.updated_ms, e.client) for e in log.entries] == [
        (2, 0, MERGED_MS, b"id=2")
    ]
    log.add(entry(2 * MERGED_MS + 1), 128)
    assert [(e.count, e.number) for e in log.entries] == [(1, 1), (2, 0)]


def test_others_are_not_and_the_newest_is_first() -> None:
    log = AclLog()
    for number, each in enumerate([entry(0), entry(0, b"set"), entry(0, context="multi")]):
        log.add(each, 128)
        assert each.number == number
    log.add(entry(1), 128)
    assert [(e.subject, e.context, e.count) for e in log.entries] == [
        (b"get", "toplevel", 2),
        (b"get", "multi", 1),
        (b"set", "toplevel", 1),
    ]


def test_only_so_many_are_kept_and_none_if_none_are_wanted() -> None:
    log = AclLog()
    for number in range(5):
        log.add(entry(0, b"%d" % number), 3)
    assert [e.subject for e in log.entries] == [b"4", b"3", b"2"]
    log.add(entry(0), 0)
    assert log.entries == []
    log.add(entry(0), 3)
    assert log.entries[0].number == 5
