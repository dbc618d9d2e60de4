"""Channels, patterns, and the sessions that listen to them."""

from __future__ import annotations

from protocol.encoder import encode
from protocol.replies import Bulk, Push
from server.state.session import NOTHING, Session, Subscriptions
from storage.keyspace.glob import Matcher, matcher

Audience = dict[bytes, dict[Session, None]]
"""Names of channels, or patterns, each with those who listen."""


class PubSub:
    """Who listens to what, and the delivery of messages."""

    def __init__(self) -> None:
        self.channels: Audience = {}
        self.patterns: Audience = {}
        self._matchers: dict[bytes, Matcher] = {}
        """What tells for each pattern whether a channel fits."""
        self.shards: Audience = {}
        """Shard channels, which have names of their own and no patterns."""

    # --- listening ------------------------------------------------------------------------

    def subscribe(self, session: Session, channel: bytes) -> None:
        """Lets the session listen to a channel."""
        _listening(session).channels[channel] = None
        self.channels.setdefault(channel, {})[session] = None

    def subscribe_pattern(self, session: Session, pattern: bytes) -> None:
        """Lets the session listen to every channel that fits the pattern."""
        _listening(session).patterns[pattern] = None
        if pattern not in self.patterns:
            self.patterns[pattern] = {}
            self._matchers[pattern] = matcher(pattern)
        self.patterns[pattern][session] = None

    def subscribe_shard(self, session: Session, channel: bytes) -> None:
        """Lets the session listen to a shard channel."""
        _listening(session).shards[channel] = None
        self.shards.setdefault(channel, {})[session] = None

    def unsubscribe(self, session: Session, channel: bytes) -> None:
        """The session no longer listens to the channel, if it did."""
        listening = session.listening
        if channel in listening.channels:
            del listening.channels[channel]
            _leave(self.channels, channel, session)

    def unsubscribe_pattern(self, session: Session, pattern: bytes) -> None:
        """The session no longer listens to the pattern, if it did."""
        listening = session.listening
        if pattern in listening.patterns:
            del listening.patterns[pattern]
            _leave(self.patterns, pattern, session)
            if pattern not in self.patterns:
                del self._matchers[pattern]

    def unsubscribe_shard(self, session: Session, channel: bytes) -> None:
        """The session no longer listens to the shard channel, if it did."""
        listening = session.listening
        if channel in listening.shards:
            del listening.shards[channel]
            _leave(self.shards, channel, session)

    @property
    def clients(self) -> int:
        """How many sessions listen to anything."""
        audiences = (self.channels, self.patterns, self.shards)
        return len(set().union(*(who for audience in audiences for who in audience.values())))

    def leave_all(self, session: Session) -> None:
        """Ends every subscription of the session."""
        listening = session.listening
        for channel in list(listening.channels):
            self.unsubscribe(session, channel)
        for pattern in list(listening.patterns):
            self.unsubscribe_pattern(session, pattern)
        for channel in list(listening.shards):
            self.unsubscribe_shard(session, channel)
        session.update_reasons()

    # --- publishing -----------------------------------------------------------------------

    def publish(self, channel: bytes, message: bytes) -> int:
        """Delivers a message; returns how often it was delivered.

        Listeners of the channel come first, then those of each pattern that fits: a session that
        listens in two ways gets the message twice.
        """
        delivered = 0
        if channel in self.channels:
            delivered += self._deliver(
                self.channels[channel], Push(["message", Bulk(channel), Bulk(message)])
            )
        for pattern in [pattern for pattern, fits in self._matchers.items() if fits(channel)]:
            sessions = self.patterns.get(pattern, {})  # A listener may have gone meanwhile.
            push = Push(["pmessage", Bulk(pattern), Bulk(channel), Bulk(message)])
            delivered += self._deliver(sessions, push)
        return delivered

    def publish_shard(self, channel: bytes, message: bytes) -> int:
        """Delivers a message to those who listen to a shard channel; returns their number."""
        sessions = self.shards.get(channel)
        if sessions is None:
            return 0
        return self._deliver(sessions, Push(["smessage", Bulk(channel), Bulk(message)]))

    def _deliver(self, sessions: dict[Session, None], push: Push) -> int:
        """Sends the push to each session, encoded once for each protocol that is spoken."""
        encoded: dict[bool, bytes] = {}
        listeners = list(sessions)
        for session in listeners:
            data = encoded.get(session.resp3)
            if data is None:
                data = encoded[session.resp3] = encode(push, session.resp3)
            session.link.send(data)
        return len(listeners)


def _listening(session: Session) -> Subscriptions:
    """Return what the session listens to, for another subscription."""
    if session.listening is NOTHING:
        session.listening = Subscriptions()
    return session.listening


def _leave(audience: Audience, name: bytes, session: Session) -> None:
    """Takes the session out of an audience; with its last subscription all of it goes."""
    sessions = audience[name]
    del sessions[session]
    if not sessions:
        del audience[name]
    if not session.subscriptions:
        session.listening = NOTHING
