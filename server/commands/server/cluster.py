"""CLUSTER and its kin, as a server answers them that is no node of a cluster: by one error.

The subcommands are known all the same. A client that asks for one with too few arguments, or for
one that does not exist, is told that instead.
"""

from __future__ import annotations

from typing import Final

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command, container
from server.commands.server import errors as server_errors
from server.core.table import Arguments
from server.services import Services
from server.state.session import Session

_RANGES: Final = "start-slot end-slot [start-slot end-slot ...]"
_STATE: Final = "<IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>"

SUBCOMMANDS: Final = (
    ("ADDSLOTS", "slot [slot ...]", "3.0.0", "Takes over hash slots."),
    ("ADDSLOTSRANGE", _RANGES, "7.0.0", "Takes over ranges of hash slots."),
    ("BUMPEPOCH", "", "3.0.0", "Advances the epoch of the configuration."),
    ("COUNT-FAILURE-REPORTS", "node-id", "3.0.0", "Counts the reports that a node has failed."),
    ("COUNTKEYSINSLOT", "slot", "3.0.0", "Counts the keys of a hash slot."),
    ("DELSLOTS", "slot [slot ...]", "3.0.0", "Gives up hash slots."),
    ("DELSLOTSRANGE", _RANGES, "7.0.0", "Gives up ranges of hash slots."),
    ("FAILOVER", "[FORCE | TAKEOVER]", "3.0.0", "Makes a replica the master of its slots."),
    ("FLUSHSLOTS", "", "3.0.0", "Gives up every hash slot."),
    ("FORGET", "node-id", "3.0.0", "Forgets a node."),
    ("GETKEYSINSLOT", "slot count", "3.0.0", "Lists keys of a hash slot."),
    ("HELP", "", "5.0.0", "Describes the subcommands."),
    ("INFO", "", "3.0.0", "Describes the state of the cluster."),
    ("KEYSLOT", "key", "3.0.0", "Tells the hash slot of a key."),
    ("LINKS", "", "7.0.0", "Lists the connections to other nodes."),
    ("MEET", "ip port [cluster-bus-port]", "3.0.0", "Makes another node known."),
    ("MYID", "", "3.0.0", "Tells the ID of the node."),
    ("MYSHARDID", "", "7.2.0", "Tells the ID of the node's shard."),
    ("NODES", "", "3.0.0", "Lists the nodes of the cluster."),
    ("REPLICAS", "node-id", "5.0.0", "Lists the replicas of a node."),
    ("REPLICATE", "node-id", "3.0.0", "Makes the node a replica of another."),
    ("RESET", "[HARD | SOFT]", "3.0.0", "Forgets the cluster."),
    ("SAVECONFIG", "", "3.0.0", "Writes the node's configuration to its file."),
    ("SET-CONFIG-EPOCH", "config-epoch", "3.0.0", "Sets the epoch of a new node."),
    ("SETSLOT", f"slot {_STATE}", "3.0.0", "Sets the state of a hash slot."),
    ("SHARDS", "", "7.0.0", "Lists the shards with their slots and nodes."),
    ("SLAVES", "node-id", "3.0.0", "Lists the replicas of a node."),
    ("SLOTS", "", "3.0.0", "Lists the slots with their nodes."),
)
"""The subcommands of CLUSTER: name, syntax, since when, and what each would do in a cluster."""

_FLAGS: Final = {
    "stale": "COUNTKEYSINSLOT GETKEYSINSLOT INFO KEYSLOT LINKS MYID MYSHARDID NODES",
    "loading stale": "HELP SHARDS SLOTS",
    "admin stale": "COUNT-FAILURE-REPORTS REPLICAS SLAVES",
    "admin noscript stale": "RESET",
}
"""The flags of those subcommands that do not have the usual ones."""

_VARYING: Final = frozenset(
    {
        *("BUMPEPOCH", "COUNT-FAILURE-REPORTS", "GETKEYSINSLOT", "INFO", "LINKS", "MYSHARDID"),
        *("NODES", "REPLICAS", "SHARDS", "SLAVES", "SLOTS"),
    }
)
"""The subcommands that would not always answer the same."""

_DEPRECATED: Final = {
    "SLAVES": ("5.0.0", "`CLUSTER REPLICAS`"),
    "SLOTS": ("7.0.0", "`CLUSTER SHARDS`"),
}

_OTHERS: Final = (
    ("ASKING", "fast", "Lets the next command reach a slot that is being imported."),
    ("READONLY", "loading stale fast", "Lets a replica in a cluster answer reads."),
    ("READWRITE", "loading stale fast", "Takes READONLY back."),
)
"""Other commands of a cluster: name, flags, and what each would do."""


def refuse(server: Services, session: Session, args: Arguments) -> Reply:
    """An error: the server is outside a cluster."""
    raise CommandError(server_errors.CLUSTER_DISABLED)


def _declare() -> None:
    container("CLUSTER", since="3.0.0", summary="Commands of Redis Cluster.")
    flags = {name: flags for flags, names in _FLAGS.items() for name in names.split()}
    for name, syntax, since, summary in SUBCOMMANDS:
        command(
            f"CLUSTER {name}",
            since=since,
            summary=summary,
            syntax=syntax,
            flags=flags.get(name, "admin stale no_async_loading"),
            tips=["nondeterministic_output"] * (name in _VARYING),
            deprecated=_DEPRECATED.get(name),
        )(refuse)
    for name, some, summary in _OTHERS:
        command(name, since="3.0.0", summary=summary, flags=some, categories="connection")(refuse)


_declare()
