"""Commands of workers, for tests of what is planned and told from them."""

from __future__ import annotations

from penstock.explore.traces import Call

READING = ("XREADGROUP", "GROUP", "kitchen", "alice", "COUNT", "1", "STREAMS", "orders")


def write(text: str) -> Call:
    return Call(tuple(text.split()))


def read(text: str) -> Call:
    return Call(tuple(text.split()), reads=True)


def queued(text: str) -> Call:
    return Call(tuple(text.split()), queued=True)


WORKER = [
    Call((*READING, ">")),
    write("INCRBY total 5"),
    write("XACK orders kitchen 1700000000000-0"),
    Call((*READING, ">")),
]
"""A worker that counts before it acknowledges."""

TRANSACTION = [
    read("MULTI"),
    queued("INCRBY total 5"),
    queued("XACK orders kitchen 1700000000000-0"),
    write("EXEC"),
]
