"""The parts of a server, made and joined: what handlers and connections are given to work with.

There is no life cycle here (:mod:`server.app` has it): each part takes the state of the server and
the parts that it calls, by name, and none of them takes this object; the dispatcher only hands it
on to handlers. Where a call goes the other way, from a part that was made earlier to one that was
made later, it is a *wire*: an attribute of the earlier one, set here and nowhere else, in
:meth:`Services._wire`. Time runs to the right, from what a timer, the disk or a command begins::

    blocking.when_due ----------> reactions.pass_time     the time of a parked client has come
    reactions.rerun, recheck ---> dispatcher              its command runs again, if it still may
    policies.when_due ----------> due_work.run_slice      a stream has something to do by itself
    due_work.settle ------------> reactions.settle        what was due has its consequences
    due_work.is_paused ---------> pauses.active           and waits while clients are paused
    policies.require -----------> access.require          a reader may make its group
    tracking.apply -------------> reactions.apply         what a read has changed comes before it
    access.before_change -------> tracking.broadcast      notices go out with the former rights
    users.new_rate -------------> access.limits.new_rate  a user that is made gets its budget
    reactions.units ------------> journal                 effects of a transaction stay together
    persistence.when_emptied ---> scripting.functions     libraries go with the data
    persistence.when_loaded ----> policies.reload         deadlines follow from what was loaded
    interception.wake ----------> reactions.drain         who waits for workers to be at rest looks

One switch of :class:`.Reactions` is not set here: ``record`` is turned on by the journal as long as
the append-only file or replication reads it.
"""

from __future__ import annotations

from server.clients.access import AccessControl
from server.clients.blocking import BlockedClients
from server.clients.client_pause import ClientPause
from server.clients.keyspace_events import KeyspaceNotifier
from server.clients.pubsub import PubSub
from server.clients.tracking import KeyTracking
from server.clients.watch import WatchedKeys
from server.core import reasons
from server.cron import Cron
from server.delivery.due_work import DueWork
from server.delivery.policies import PolicyState
from server.dispatch.dispatcher import Dispatcher
from server.dispatch.reactions import Reactions
from server.dispatch.stepped import SteppedCommands
from server.faults.disk import FaultyDisk
from server.faults.interception import Interception
from server.persistence.commit import Commit
from server.persistence.disk_thread import DiskThread
from server.persistence.journal import Journal
from server.persistence.manager import Persistence
from server.replication.primary import Primary
from server.scripting.engine import Scripting
from server.state.server_state import Phase, ServerState
from server.traffic.output import OutputLimits
from server.traffic.output_gate import OutputGate
from server.traffic.tls import Tls
from server.traffic.turns import Turns
from storage.aof.disk import Disk


class Traffic:
    """What all connections share: whose turn it is, what may wait in their output and until when,
    and how they are encrypted."""

    __slots__ = ("gate", "limits", "tls", "turns")

    def __init__(self, state: ServerState) -> None:
        self.turns = Turns()
        self.gate = OutputGate()
        self.limits = OutputLimits(lambda: state.clock())
        self.tls = Tls(state.config, state.log)


class Services:
    """All parts of one server, and the ``state`` that they share."""

    __slots__ = (
        "access",
        "blocking",
        "commit",
        "cron",
        "dispatcher",
        "due_work",
        "interception",
        "pauses",
        "persistence",
        "policies",
        "pubsub",
        "reactions",
        "replication",
        "scripting",
        "state",
        "stepped",
        "tracking",
        "traffic",
        "watching",
    )

    def __init__(self, state: ServerState, disk: Disk) -> None:
        self.state = state
        self.traffic = traffic = Traffic(state)
        self.access = AccessControl(state)
        self.watching = WatchedKeys(state.keyspace)
        self.blocking = BlockedClients(state)
        self.pubsub = PubSub()
        self.pauses = ClientPause(state)
        self.interception = Interception(
            state, self.blocking, traffic.gate, disk if isinstance(disk, FaultyDisk) else None
        )
        self.tracking = KeyTracking(state)
        self.policies = PolicyState(state, self.blocking)
        self.due_work = DueWork(state, self.blocking, self.policies)
        self.reactions = Reactions(
            state,
            self.watching,
            self.blocking,
            KeyspaceNotifier(self.pubsub),
            self.tracking,
            self.policies,
        )
        self.stepped = SteppedCommands(state, self.reactions)
        self.dispatcher = Dispatcher(
            self,
            state,
            self.access,
            self.watching,
            self.blocking,
            self.reactions,
            self.stepped,
        )
        jobs = DiskThread()
        journal = Journal(state, self.reactions)
        self.commit = Commit(state, traffic.gate, self.blocking, self.reactions, jobs, journal)
        self.persistence = Persistence(
            state,
            disk,
            self.dispatcher,
            self.commit,
            self.watching,
            self.pauses,
            jobs,
            journal,
        )
        self.replication = Primary(state, disk, journal, self.blocking, traffic.limits)
        self.scripting = Scripting(state, self.dispatcher, self.blocking, self.reactions)
        self._wire(journal)
        self.cron = Cron(
            state,
            traffic.turns,
            traffic.limits,
            self.blocking,
            self.reactions,
            self.pauses,
            self.persistence,
            self.replication,
            self.due_work,
            traffic.tls,
        )

    def _wire(self, journal: Journal) -> None:
        """Sets every call from a part to one that was made after it."""
        reactions, policies = self.reactions, self.policies
        self.blocking.when_due = reactions.pass_time
        reactions.rerun = self.dispatcher.rerun
        reactions.recheck = self.dispatcher.recheck
        reactions.units = journal
        policies.when_due = self.due_work.run_slice
        self.due_work.settle = reactions.settle
        self.due_work.is_paused = lambda: self.pauses.active
        policies.require = self.access.require
        self.tracking.apply = reactions.apply
        self.access.before_change = self.tracking.broadcast
        self.state.users.new_rate = self.access.limits.new_rate
        self.persistence.when_emptied = self.scripting.functions.forget
        self.persistence.when_loaded = policies.reload
        self.interception.wake = reactions.drain

    # --- for tests ------------------------------------------------------------------------

    def check(self) -> None:
        """Asserts that the words of reasons say what is so (:mod:`server.core.reasons`), and that
        policies are known only of what there is."""
        state = self.state
        so = {
            reasons.LOADING: state.phase is not Phase.SERVING,
            reasons.BUSY: state.busy is not None,
            reasons.MEMORY: state.memory.exceeded,
            reasons.DISK: state.disk_error is not None,
            reasons.SAVES: self.persistence.misses_saves,
            reasons.REPLICAS: self.replication.is_short,
            reasons.PAUSE: self.pauses.active,
            reasons.FAULTS: self.interception.active,
            reasons.EVENTS: self.reactions.notifier.active,
            reasons.WATCHED: state.timings.sees_each,
        }
        assert state.reasons == sum(reason for reason, holds in so.items() if holds)
        for session in state.sessions.values():
            noted = session.reasons
            session.update_reasons()
            assert session.reasons == noted, session.id
            assert session.monitoring == (session in state.timings.monitors.sessions), session.id
        self.policies.check()
