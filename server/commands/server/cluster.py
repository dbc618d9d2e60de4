"""CLUSTER and its kin, as a server answers them that is no node of a cluster: by one error.

The subcommands are known all the same. A client that asks for one with too few arguments, or for
one that does not exist, is told that instead.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.server import errors as server_errors
from server.road.session import Session
from server.road.table import Arguments, command, container
from server.services import Services

_ADMIN: Final = "admin stale no_async_loading"
_VARIES: Final = ("nondeterministic_output",)

container("CLUSTER", group="cluster", since="3.0.0", summary="Commands of Redis Cluster.")


class Subcommand(NamedTuple):
    """A subcommand of CLUSTER: its arity and flags, and what it would do in a cluster."""

    name: str
    arity: int
    flags: str
    summary: str
    syntax: str = ""
    since: str = "3.0.0"
    tips: tuple[str, ...] = ()
    deprecated: tuple[str, str] | None = None


SUBCOMMANDS: Final = (
    Subcommand("ADDSLOTS", -3, _ADMIN, "Takes over hash slots.", "slot [slot ...]"),
    Subcommand(
        "ADDSLOTSRANGE",
        -4,
        _ADMIN,
        "Takes over ranges of hash slots.",
        "start-slot end-slot [start-slot end-slot ...]",
        "7.0.0",
    ),
    Subcommand("BUMPEPOCH", 2, _ADMIN, "Advances the epoch of the configuration.", tips=_VARIES),
    Subcommand(
        "COUNT-FAILURE-REPORTS",
        3,
        "admin stale",
        "Counts the reports that a node has failed.",
        "node-id",
        tips=_VARIES,
    ),
    Subcommand("COUNTKEYSINSLOT", 3, "stale", "Counts the keys of a hash slot.", "slot"),
    Subcommand("DELSLOTS", -3, _ADMIN, "Gives up hash slots.", "slot [slot ...]"),
    Subcommand(
        "DELSLOTSRANGE",
        -4,
        _ADMIN,
        "Gives up ranges of hash slots.",
        "start-slot end-slot [start-slot end-slot ...]",
        "7.0.0",
    ),
    Subcommand(
        "FAILOVER", -2, _ADMIN, "Makes a replica the master of its slots.", "[FORCE | TAKEOVER]"
    ),
    Subcommand("FLUSHSLOTS", 2, _ADMIN, "Gives up every hash slot."),
    Subcommand("FORGET", 3, _ADMIN, "Forgets a node.", "node-id"),
    Subcommand(
        "GETKEYSINSLOT", 4, "stale", "Lists keys of a hash slot.", "slot count", tips=_VARIES
    ),
    Subcommand("HELP", 2, "loading stale", "Describes the subcommands.", since="5.0.0"),
    Subcommand("INFO", 2, "stale", "Describes the state of the cluster.", tips=_VARIES),
    Subcommand("KEYSLOT", 3, "stale", "Tells the hash slot of a key.", "key"),
    Subcommand(
        "LINKS", 2, "stale", "Lists the connections to other nodes.", since="7.0.0", tips=_VARIES
    ),
    Subcommand("MEET", -4, _ADMIN, "Makes another node known.", "ip port [cluster-bus-port]"),
    Subcommand("MYID", 2, "stale", "Tells the ID of the node."),
    Subcommand(
        "MYSHARDID", 2, "stale", "Tells the ID of the node's shard.", since="7.2.0", tips=_VARIES
    ),
    Subcommand("NODES", 2, "stale", "Lists the nodes of the cluster.", tips=_VARIES),
    Subcommand(
        "REPLICAS",
        3,
        "admin stale",
        "Lists the replicas of a node.",
        "node-id",
        "5.0.0",
        _VARIES,
    ),
    Subcommand("REPLICATE", 3, _ADMIN, "Makes the node a replica of another.", "node-id"),
    Subcommand("RESET", -2, "admin noscript stale", "Forgets the cluster.", "[HARD | SOFT]"),
    Subcommand("SAVECONFIG", 2, _ADMIN, "Writes the node's configuration to its file."),
    Subcommand("SET-CONFIG-EPOCH", 3, _ADMIN, "Sets the epoch of a new node.", "config-epoch"),
    Subcommand(
        "SETSLOT",
        -4,
        _ADMIN,
        "Sets the state of a hash slot.",
        "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>",
    ),
    Subcommand(
        "SHARDS",
        2,
        "loading stale",
        "Lists the shards with their slots and nodes.",
        since="7.0.0",
        tips=_VARIES,
    ),
    Subcommand(
        "SLAVES",
        3,
        "admin stale",
        "Lists the replicas of a node.",
        "node-id",
        tips=_VARIES,
        deprecated=("5.0.0", "`CLUSTER REPLICAS`"),
    ),
    Subcommand(
        "SLOTS",
        2,
        "loading stale",
        "Lists the slots with their nodes.",
        tips=_VARIES,
        deprecated=("7.0.0", "`CLUSTER SHARDS`"),
    ),
)


def refuse(server: Services, session: Session, args: Arguments) -> Reply:
    """The error of a server outside a cluster."""
    raise CommandError(server_errors.CLUSTER_DISABLED)


for _entry in SUBCOMMANDS:
    command(
        f"CLUSTER {_entry.name}",
        _entry.arity,
        flags=_entry.flags,
        group="cluster",
        since=_entry.since,
        summary=_entry.summary,
        syntax=_entry.syntax,
        tips=_entry.tips,
        deprecated=_entry.deprecated,
    )(refuse)

for _name, _flags, _summary in (
    ("ASKING", "fast", "Lets the next command reach a slot that is being imported."),
    ("READONLY", "loading stale fast", "Lets a replica in a cluster answer reads."),
    ("READWRITE", "loading stale fast", "Takes READONLY back."),
):
    command(
        _name,
        1,
        flags=_flags,
        group="cluster",
        since="3.0.0",
        categories="connection",
        summary=_summary,
    )(refuse)
