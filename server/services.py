# Compiled by mypyc.
"""The parts of a server, made and joined: what handlers and connections are given to work with.

There is no life cycle here (:mod:`server.app` has it): each part takes the state of the server and
the parts that it calls, by name, and none of them takes this object; the dispatcher only hands it
on to handlers.
"""

from __future__ import annotations

from protocol.requests import ChunkReader
from server.clients.access import AccessControl
from server.clients.blocking import BlockedClients
from server.clients.client_pause import ClientPause
from server.clients.keyspace_events import KeyspaceNotifier
from server.clients.pubsub import PubSub
from server.clients.reactions import Reactions
from server.clients.tracking import KeyTracking
from server.clients.user_limits import UserLimits
from server.clients.watch import WatchedKeys
from server.clients.working import SteppedCommands
from server.cron import Cron
from server.delivery.policies import Policies
from server.dispatcher import Dispatcher
from server.faults.disk import FaultyDisk
from server.faults.interception import Interception
from server.net.output_gate import OutputGate
from server.net.output_limits import OutputLimits
from server.net.tls import Tls
from server.net.turns import Turns
from server.persistence.manager import Persistence
from server.replication.primary import Primary
from server.scripting.engine import Scripting
from server.state import ServerState
from storage.aof.disk import Disk


class Services:
    """All parts of one server, and the ``state`` that they share."""

    __slots__ = (
        "access",
        "blocking",
        "chunk_reader",
        "cron",
        "dispatcher",
        "gate",
        "interception",
        "notifier",
        "output_limits",
        "pauses",
        "persistence",
        "policies",
        "pubsub",
        "reactions",
        "replication",
        "scripting",
        "state",
        "tls",
        "tracking",
        "turns",
        "user_limits",
        "watching",
        "working",
    )

    def __init__(self, state: ServerState, disk: Disk) -> None:
        self.state = state
        self.chunk_reader = ChunkReader()
        self.turns = Turns()
        self.tls = Tls(state.config, state.log)
        self.gate = OutputGate()
        self.output_limits = OutputLimits(lambda: state.clock())
        self.user_limits = UserLimits(state)
        self.access = AccessControl(state, self.user_limits)
        self.watching = WatchedKeys(state.keyspace)
        self.blocking = BlockedClients(state)
        self.pubsub = PubSub()
        self.notifier = KeyspaceNotifier(self.pubsub)
        self.pauses = ClientPause(state)
        self.interception = Interception(
            state, self.blocking, self.gate, disk if isinstance(disk, FaultyDisk) else None
        )
        self.tracking = KeyTracking(state)
        self.access.before_change = self.tracking.broadcast
        self.policies = Policies(state, self.blocking)
        self.policies.is_paused = lambda: self.pauses.active
        self.policies.require = self.access.require
        self.reactions = Reactions(
            state, self.watching, self.blocking, self.notifier, self.tracking, self.policies
        )
        self.working = SteppedCommands(state, self.reactions)
        self.dispatcher = Dispatcher(
            self,
            state,
            self.access,
            self.user_limits,
            self.watching,
            self.blocking,
            self.reactions,
            self.working,
        )
        self.persistence = Persistence(
            state,
            disk,
            self.dispatcher,
            self.gate,
            self.watching,
            self.blocking,
            self.reactions,
            self.pauses,
        )
        self.replication = Primary(state, disk, self.reactions, self.blocking, self.output_limits)
        self.reactions.units = (self.persistence.appender, self.replication.feed)
        self.scripting = Scripting(
            state, self.access, self.dispatcher, self.blocking, self.reactions
        )
        self.persistence.when_emptied = self.scripting.functions.forget
        self.persistence.when_loaded = self.policies.reload
        self.cron = Cron(
            state,
            self.turns,
            self.output_limits,
            self.blocking,
            self.reactions,
            self.pauses,
            self.persistence,
            self.replication,
            self.policies,
        )
