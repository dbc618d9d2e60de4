"""Publishing and subscribing, to channels, patterns and shard channels.

Shard channels are for a cluster, where a channel has a shard. Without one they are channels whose
names have nothing to do with those of the others. There are no patterns for them, and they are
counted by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Bulk, Many, Push, Reply
from server.clients.pubsub import Audience
from server.commands.connection import errors as connection_errors
from server.commands.declare import command, container, help_command
from server.core.table import Arguments, Channels, KeySpec
from server.services import Services
from server.state.session import Session
from storage.keyspace.glob import matches

_INQUIRY: Final = "pubsub loading stale"

_listening = partial(
    command,
    flags="pubsub noscript loading stale",
    since="2.0.0",
    complexity="O(N) in the number of channels.",
)


@_listening(
    "SUBSCRIBE",
    summary="Listens to channels.",
    syntax="channel [channel ...]",
    channels=Channels(many=True),
)
def subscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """For each channel its name, and how many subscriptions the client has; messages follow."""
    return _each(session, "subscribe", server.pubsub.subscribe, args[1:])


@_listening(
    "PSUBSCRIBE",
    summary="Listens to all channels whose names fit patterns.",
    complexity="O(N) in the number of patterns.",
    syntax="pattern [pattern ...]",
    channels=Channels(many=True, patterns=True),
)
def psubscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """For each pattern its name, and how many subscriptions the client has; messages follow."""
    return _each(session, "psubscribe", server.pubsub.subscribe_pattern, args[1:])


@_listening(
    "UNSUBSCRIBE",
    summary="Stops listening to channels, or to every channel.",
    syntax="[channel [channel ...]]",
)
def unsubscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """For each channel left its name, and how many subscriptions the client still has."""
    leaving = args[1:] or list(session.listening.channels)
    return _each(session, "unsubscribe", server.pubsub.unsubscribe, leaving)


@_listening(
    "PUNSUBSCRIBE",
    summary="Stops listening to patterns, or to every pattern.",
    complexity="O(N) in the number of patterns.",
    syntax="[pattern [pattern ...]]",
)
def punsubscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """For each pattern left its name, and how many subscriptions the client still has."""
    leaving = args[1:] or list(session.listening.patterns)
    return _each(session, "punsubscribe", server.pubsub.unsubscribe_pattern, leaving)


def _each(
    session: Session, event: str, change: Callable[[Session, bytes], None], names: list[bytes]
) -> Reply:
    """The confirmations of such a change, each with the number of channels and patterns left."""

    def count() -> int:
        return len(session.listening.channels) + len(session.listening.patterns)

    return confirm_each(session, event, change, names, count)


def confirm_each(
    session: Session,
    event: str,
    change: Callable[[Session, bytes], None],
    names: list[bytes],
    count: Callable[[], int],
) -> Reply:
    """Makes the change for each name and confirms it; without a name there is one confirmation."""
    confirmations: list[Reply] = []
    for name in names:
        change(session, name)
        confirmations.append(Push([event, Bulk(name), count()]))
    if not names:
        confirmations.append(Push([event, None, count()]))
    session.update_reasons()
    return Many(confirmations)


@command(
    "PUBLISH",
    flags="pubsub loading stale fast",
    since="2.0.0",
    summary="Sends a message to those who listen to a channel.",
    complexity="O(N+M) with N listeners of the channel and M patterns in use.",
    syntax="channel message",
    channels=Channels(),
)
def publish(server: Services, session: Session, args: Arguments) -> Reply:
    """How often it was delivered: once for each subscription that fits."""
    server.replication.publish(*args)
    return server.pubsub.publish(args[1], args[2])


container("PUBSUB", summary="Tells who listens to what.", since="2.8.0", flags=_INQUIRY)


@command(
    "PUBSUB CHANNELS",
    summary="Lists the channels that somebody listens to.",
    complexity="O(N) in the number of channels in use.",
    syntax="[pattern]",
)
def pubsub_channels(server: Services, session: Session, args: Arguments) -> Reply:
    """The channels with listeners, all or those that fit a pattern."""
    return names_in_use(server.pubsub.channels, args)


def names_in_use(audience: Audience, args: Arguments) -> Reply:
    """The names that somebody listens to, all or those that fit the pattern in ``args``."""
    if len(args) > 3:
        raise CommandError(errors.bad_subcommand("pubsub", args[1]))
    return [Bulk(name) for name in audience if len(args) == 2 or matches(args[2], name)]


@command(
    "PUBSUB NUMSUB",
    summary="Counts the listeners of channels.",
    complexity="O(N) in the number of channels named.",
    syntax="[channel [channel ...]]",
)
def pubsub_numsub(server: Services, session: Session, args: Arguments) -> Reply:
    """Each channel named and how many listen to it, patterns left aside."""
    return listener_counts(server.pubsub.channels, args[2:])


def listener_counts(audience: Audience, names: list[bytes]) -> Reply:
    """Each name and how many listen to it."""
    counts: list[Reply] = []
    for name in names:
        counts += [Bulk(name), len(audience.get(name, ()))]
    return counts


@command("PUBSUB NUMPAT", summary="Counts the different patterns that somebody listens to.")
def pubsub_numpat(server: Services, session: Session, args: Arguments) -> Reply:
    """How many different patterns are in use."""
    return len(server.pubsub.patterns)


_HELP: Final = """\
CHANNELS [<pattern>]
    Return the currently active channels matching a <pattern> (default: '*').
NUMPAT
    Return number of subscriptions to patterns.
NUMSUB [<channel> ...]
    Return the number of subscribers for the specified channels, excluding
    pattern subscriptions(default: no channels).
SHARDCHANNELS [<pattern>]
    Return the currently active shard level channels matching a <pattern> (default: '*').
SHARDNUMSUB [<shardchannel> ...]
    Return the number of subscribers for the specified shard level channel(s)
"""

help_command("PUBSUB", since="6.2.0", categories="-pubsub", text=_HELP)


# --- shard channels ----------------------------------------------------------------------------


_SHARD_CHANNELS: Final = [KeySpec("not_key", last=-1)]


@_listening(
    "SSUBSCRIBE",
    since="7.0.0",
    summary="Listens to shard channels.",
    syntax="shardchannel [shardchannel ...]",
    keys=_SHARD_CHANNELS,
    channels=Channels(many=True),
)
def ssubscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """For each shard channel its name, and how many of these the client listens to; messages
    follow. An error within a transaction."""
    if session.executing:
        raise CommandError(connection_errors.SSUBSCRIBE_INSIDE_MULTI)
    listen = server.pubsub.subscribe_shard
    return confirm_each(session, "ssubscribe", listen, args[1:], lambda: _shards_of(session))


@_listening(
    "SUNSUBSCRIBE",
    since="7.0.0",
    summary="Stops listening to shard channels, or to every shard channel.",
    syntax="[shardchannel [shardchannel ...]]",
    keys=_SHARD_CHANNELS,
)
def sunsubscribe(server: Services, session: Session, args: Arguments) -> Reply:
    """For each shard channel left its name, and to how many the client still listens."""
    leaving = args[1:] or list(session.listening.shards)
    leave = server.pubsub.unsubscribe_shard
    return confirm_each(session, "sunsubscribe", leave, leaving, lambda: _shards_of(session))


def _shards_of(session: Session) -> int:
    """Return how many shard channels the client listens to."""
    return len(session.listening.shards)


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
    """How many clients it was delivered to."""
    server.replication.publish(*args)
    return server.pubsub.publish_shard(args[1], args[2])


@command(
    "PUBSUB SHARDCHANNELS",
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
    since="7.0.0",
    summary="Counts the listeners of shard channels.",
    complexity="O(N) in the number of channels named.",
    syntax="[shardchannel [shardchannel ...]]",
)
def pubsub_shardnumsub(server: Services, session: Session, args: Arguments) -> Reply:
    """Each shard channel named and how many listen to it."""
    return listener_counts(server.pubsub.shards, args[2:])
