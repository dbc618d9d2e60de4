"""Shard channels: publishing and subscribing as in a cluster, where a channel has a shard.

Without a cluster they are channels whose names have nothing to do with those of the others. There
are no patterns for them, and they are counted by themselves.
"""

from __future__ import annotations

from typing import Final

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.connection import errors as connection_errors
from server.commands.connection.pubsub import confirm_each, listener_counts, names_in_use
from server.commands.declare import command
from server.road.session import Session
from server.road.table import Arguments, Channels, KeySpec
from server.services import Services

_FLAGS: Final = "pubsub noscript loading stale"
_INQUIRY: Final = "pubsub loading stale"
_CHANNELS: Final = [KeySpec("not_key", last=-1)]


@command(
    "SSUBSCRIBE",
    flags=_FLAGS,
    since="7.0.0",
    summary="Listens to shard channels.",
    complexity="O(N) in the number of channels.",
    syntax="shardchannel [shardchannel ...]",
    keys=_CHANNELS,
    channels=Channels(many=True),
)
def ssubscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """Listens to each shard channel and confirms each; not within a transaction."""
    if session.executing:
        raise CommandError(connection_errors.SSUBSCRIBE_INSIDE_MULTI)
    listen = server.pubsub.subscribe_shard
    return confirm_each(session, "ssubscribe", listen, args[1:], lambda: len(session.shards))


@command(
    "SUNSUBSCRIBE",
    flags=_FLAGS,
    since="7.0.0",
    summary="Stops listening to shard channels, or to every shard channel.",
    complexity="O(N) in the number of channels.",
    syntax="[shardchannel [shardchannel ...]]",
    keys=_CHANNELS,
)
def sunsubscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """Leaves the shard channels named, or all, and confirms each."""
    leaving = args[1:] or list(session.shards)
    leave = server.pubsub.unsubscribe_shard
    return confirm_each(session, "sunsubscribe", leave, leaving, lambda: len(session.shards))


@command(
    "SPUBLISH",
    flags="pubsub loading stale fast",
    since="7.0.0",
    summary="Sends a message to those who listen to a shard channel.",
    complexity="O(N) in the number of listeners.",
    syntax="shardchannel message",
    keys=[KeySpec("not_key")],
    channels=Channels(),
)
def spublish(server: Services, session: Session, args: Arguments) -> Reply:
    """Delivers a message; answers how often."""
    server.replication.publish(*args)
    return server.pubsub.publish_shard(args[1], args[2])


@command(
    "PUBSUB SHARDCHANNELS",
    flags=_INQUIRY,
    since="7.0.0",
    summary="Lists the shard channels that somebody listens to.",
    complexity="O(N) in the number of shard channels in use.",
    syntax="[pattern]",
)
def pubsub_shardchannels(server: Services, session: Session, args: Arguments) -> Reply:
    """The shard channels with listeners, all or those that fit a pattern."""
    return names_in_use(server.pubsub.shards, args)


@command(
    "PUBSUB SHARDNUMSUB",
    flags=_INQUIRY,
    since="7.0.0",
    summary="Counts the listeners of shard channels.",
    complexity="O(N) in the number of channels named.",
    syntax="[shardchannel [shardchannel ...]]",
)
def pubsub_shardnumsub(server: Services, session: Session, args: Arguments) -> Reply:
    """Each shard channel named and how many listen to it."""
    return listener_counts(server.pubsub.shards, args[2:])
