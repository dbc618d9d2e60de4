"""INFO: the state of the server, for people and for programs that watch it."""

from __future__ import annotations

from collections.abc import Generator

from protocol.replies import Reply, Verbatim
from server.commands.declare import command
from server.commands.server.info_sections import SIZES_AT_ONCE, key_sizes, render
from server.road.outcomes import Steps, reply_of
from server.road.session import Session
from server.road.table import Arguments
from server.services import Services


@command(
    "INFO",
    flags="loading stale",
    since="1.0.0",
    categories="dangerous",
    summary="Describes the server: its version, clients, memory, counters and databases.",
    syntax="[section [section ...]]",
    tips=["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    history=[("7.0.0", "Several sections may be asked for at once.")],
)
def info(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """The sections named, or the usual ones; that of key sizes only by its own name, since every
    key has to be looked at for it."""
    names = [arg.decode("utf-8", "replace").lower() for arg in args[1:]]
    if "keysizes" not in names:
        return _text(render(server, names))
    keys = sum(map(len, server.state.keyspace.databases))
    return reply_of(_with_key_sizes(server, names), session.resp3, long=keys > SIZES_AT_ONCE)


def _with_key_sizes(server: Services, names: list[str]) -> Generator[None, None, Reply]:
    found = yield from key_sizes(server.state.keyspace)
    return _text(render(server, names, found))


def _text(text: str) -> Verbatim:
    return Verbatim(text.encode("utf-8", "surrogateescape"))
