"""INFO: the state of the server, for people and for programs that watch it."""

from __future__ import annotations

from protocol.replies import Reply, Verbatim
from server.command_table import Arguments, command
from server.info import render
from server.services import Services
from server.session import Session


@command(
    "INFO",
    -1,
    flags="loading stale",
    group="server",
    since="1.0.0",
    categories="dangerous",
    summary="Describes the server: its version, clients, memory, counters and databases.",
    syntax="[section [section ...]]",
    tips=["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    history=[("7.0.0", "Several sections may be asked for at once.")],
)
def info(server: Services, session: Session, args: Arguments) -> Reply:
    """The sections named, or the usual ones."""
    names = [arg.decode("utf-8", "replace") for arg in args[1:]]
    return Verbatim(render(server, names).encode("utf-8", "surrogateescape"))
