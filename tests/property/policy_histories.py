"""Random histories of a consumer group with policies, and what must hold after every step of them.

A history is a list of steps: entries are added, read, acknowledged, given back, claimed by clients
that know nothing of policies, time passes, the server crashes. The server is one without sockets,
whose append-only file is written as the real one writes it; after a crash another server loads that
file, less the last few commands where a step says so. What the test knows of each entry is in a
:class:`Known`, and it forgets as much as the server does.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from server.delivery.group_ref import existing_group
from tests.support.direct import START_MS, Direct, DirectClient, parsed
from tests.support.recording import Recording, load

KEY, GROUP, DEAD = "orders", "kitchen", "dead"
CONSUMERS = ("ann", "bob", "carl")
VALUES = ("a", "b", "c")
KINDS = ("tea", "coffee")
STEP_MS = 10
"""Entries go for their age at such intervals."""
FITTING = 12
"""How many entries fit into 300 bytes at most."""

Step = tuple[Any, ...]

CONSUMER = st.sampled_from(CONSUMERS)
COUNT = st.integers(1, 4)
PICK = st.integers(0, 7)

STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(VALUES), st.sampled_from(KINDS), st.integers(0, 400)),
    st.tuples(st.just("add"), st.sampled_from(VALUES), st.sampled_from(KINDS), st.just(0)),
    st.tuples(st.just("read"), CONSUMER, COUNT),
    st.tuples(st.just("read"), CONSUMER, COUNT),
    st.tuples(st.just("wait"), CONSUMER),
    st.tuples(st.just("ack"), PICK),
    st.tuples(st.just("ack"), PICK),
    st.tuples(st.just("nack"), st.sampled_from(["SILENT", "FAIL", "FATAL"]), PICK),
    st.tuples(st.just("history"), CONSUMER),
    st.tuples(st.just("claim"), CONSUMER, PICK),
    st.tuples(st.just("autoclaim"), CONSUMER, st.sampled_from([0, 150])),
    st.tuples(st.just("read claim"), CONSUMER, st.sampled_from([0, 150])),
    st.tuples(st.just("remove"), CONSUMER),
    st.tuples(st.just("pass"), st.sampled_from([1, 50, 100, 250, 1000])),
    st.tuples(st.just("pass"), st.sampled_from([1, 50, 100, 250, 1000])),
    st.tuples(st.just("crash"), st.integers(0, 3)),
    st.tuples(st.just("delete"), PICK),
    st.tuples(st.just("redrive")),
    st.tuples(st.just("rename")),
    st.tuples(st.just("destroy")),
    st.tuples(st.just("pause"), st.booleans()),
)
"""What may happen."""

HISTORIES = st.lists(STEPS, min_size=5, max_size=60)


@dataclass
class Known:
    """What is known of one entry: its fields, and what has become of it."""

    number: int
    value: str
    kind: str
    at: int
    deliveries: int = 0
    """How often it was delivered since it was added, or moved back from the dead letters."""
    given: int = 0
    """The same, those as well that do not count."""
    last_ms: int = 0
    """When it was delivered last."""
    id: str = ""
    done: bool = False
    """Whether it was acknowledged, or removed with its consumer."""
    deleted: bool = False
    forgotten: bool = False
    """Whether it had been deleted when a server started, which does not know its order."""

    @property
    def place(self) -> list[int]:
        """The halves of its ID."""
        return [int(half) for half in self.id.split("-")]


@dataclass
class Facts:
    """What is known of all entries."""

    entries: dict[int, Known] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    """The numbers of entries by their IDs."""
    key: str = KEY
    paused: bool = False
    budget: float | None = None
    """How many entries ``rate-limit`` lets through; ``None`` before the first."""
    budget_ms: int = 0
    """When that was."""


class History:
    """A server with policies, and what is known of its entries."""

    def __init__(self, policies: Sequence[str | int], of_stream: Sequence[str | int] = ()) -> None:
        self.policies = {str(name): str(value) for name, value in _pairs(policies)}
        self.of_stream = {str(name): str(value) for name, value in _pairs(of_stream)}
        self.recording = Recording()
        self.facts = Facts()
        self.marks: list[tuple[bytes, Facts]] = []
        self.waiting: list[DirectClient] = []
        self.claimed = False
        """Whether a client has claimed an entry, which no policy bounds."""
        self.redriven = False
        self.passed = 0
        """How many milliseconds the last step took."""
        self.ask("XGROUP", "CREATE", KEY, GROUP, "0", "MKSTREAM")
        if policies:
            assert self.ask("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP, *policies) == b"OK"
        if of_stream:
            assert self.ask("PENSTOCK", "POLICY", "SET", KEY, *of_stream) == b"OK"
        self.mark()

    # --- the server -----------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The server's time."""
        return self.recording.direct.now_ms

    def ask(self, *words: str | int) -> Any:
        """The reply to a command."""
        reply = self.recording.send(*words)
        assert reply is not None
        return parsed(reply)

    def mark(self) -> None:
        """What is known now is what the file holds now: what is last in it may become longer."""
        self.marks.append((b"".join(self.recording.out), copy.deepcopy(self.facts)))
        del self.marks[:-10]

    def crash(self, lost: int) -> None:
        """The server ends, and what it had done in the last ``lost`` steps is lost. Another one
        loads what there is."""
        self.waiting.clear()
        del self.marks[max(len(self.marks) - lost, 1) :]
        data, facts = self.marks[-1]
        direct = Direct(now_ms=self.now)
        load(direct, data)
        direct.server.services.policies.reload()
        self.facts = copy.deepcopy(facts)
        self.facts.budget = None
        for known in self.facts.entries.values():
            known.forgotten = known.deleted
        self.recording = Recording(direct)
        self.recording.out = [data]
        self.recording.forms.begin(self.recording.out)
        self.marks = []
        self.mark()

    # --- steps ----------------------------------------------------------------------------

    def play(self, steps: Sequence[Step]) -> None:
        """Takes the steps, and looks at everything after each."""
        for step in steps:
            self.passed = 0
            getattr(self, "do_" + step[0].replace(" ", "_"))(*step[1:])
            self.take_woken()
            self.check()
            if step[0] != "crash":
                self.mark()

    def do_add(self, value: str, kind: str, delay: int) -> None:
        """An entry, which is to be delivered ``delay`` milliseconds from now."""
        number = max(self.facts.entries, default=0) + 1
        at = self.now + delay if delay else 0
        # A dead letter that is added anew has an ID by the clock, and these would be below it.
        wanted = "*" if self.redriven else f"{START_MS + number}-1"
        fields = ("n", number, "value", value, "kind", kind, "at", at)
        entry_id = self.ask("XADD", self.facts.key, wanted, *fields).decode()
        self.facts.entries[number] = Known(number, value, kind, at, id=entry_id)
        self.facts.ids[entry_id] = number

    def do_read(self, consumer: str, count: int) -> None:
        """New entries, and those that are due again."""
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count)
        reply = self.ask(*words, "STREAMS", self.facts.key, ">")
        numbers = self.entries_in(reply)
        self.check_priority(numbers)
        self.delivered(numbers, by_policy=True)

    def do_wait(self, consumer: str) -> None:
        """The same, waiting for one."""
        client = self.recording.direct.client()
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", 1, "BLOCK", 0)
        reply = client.send(*words, "STREAMS", self.facts.key, ">")
        self.recording.close_unit()
        if reply is None:
            self.waiting.append(client)
        else:
            self.delivered(self.entries_in(parsed(reply)), by_policy=True)

    def take_woken(self) -> None:
        """The replies of those who waited."""
        self.recording.close_unit()
        woken = [client for client in self.waiting if not client.parked]
        self.waiting = [client for client in self.waiting if client.parked]
        for client in woken:
            reply = parsed(client.reply_when_woken or b"")
            if isinstance(reply, list):
                self.delivered(self.entries_in(reply), by_policy=True)

    def do_ack(self, pick: int) -> None:
        """One of the entries that are in flight is acknowledged."""
        for known in self.in_flight(pick):
            self.ask("XACK", self.facts.key, GROUP, known.id)
            known.done = True
            self.take_woken()

    def do_nack(self, mode: str, pick: int) -> None:
        """One of them is given back."""
        for known in self.in_flight(pick):
            words = ("NACK", self.facts.key, GROUP, mode, "REASON", f"{pick}", "IDS", 1, known.id)
            self.ask("PENSTOCK", *words)
            known.deliveries -= mode == "SILENT"

    def do_history(self, consumer: str) -> None:
        """A consumer reads its own entries again."""
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "STREAMS", self.facts.key, "0")
        reply = self.ask(*words)
        self.delivered(self.entries_in(reply))

    def do_claim(self, consumer: str, pick: int) -> None:
        """XCLAIM of whatever there is, kept back or not."""
        numbers = sorted(self.facts.entries)
        for number in numbers[pick : pick + 1]:
            entry_id = self.facts.entries[number].id
            reply = self.ask("XCLAIM", self.facts.key, GROUP, consumer, 0, entry_id)
            self.claimed = self.claimed or len(reply) > 0
            self.delivered(self.numbers_of(reply))

    def do_autoclaim(self, consumer: str, idle: int) -> None:
        """XAUTOCLAIM."""
        reply = self.ask("XAUTOCLAIM", self.facts.key, GROUP, consumer, idle, 0, "COUNT", 3)
        self.claimed = self.claimed or len(reply[1]) > 0
        self.delivered(self.numbers_of(reply[1]))

    def do_read_claim(self, consumer: str, idle: int) -> None:
        """XREADGROUP with CLAIM."""
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", 3, "CLAIM", idle)
        reply = self.ask(*words, "STREAMS", self.facts.key, ">")
        self.delivered(self.entries_in(reply))

    def do_remove(self, consumer: str) -> None:
        """XGROUP DELCONSUMER: what it had is pending no more."""
        owned = [number for number, owner, _ in self.pending() if owner == consumer]
        self.ask("XGROUP", "DELCONSUMER", self.facts.key, GROUP, consumer)
        for number in owned:
            self.facts.entries[number].done = True

    def do_pass(self, milliseconds: int) -> None:
        """Time passes."""
        self.recording.pass_time(milliseconds)
        self.passed = milliseconds

    def do_crash(self, lost: int) -> None:
        """The server is gone, and another one is there."""
        self.crash(lost)

    def do_delete(self, pick: int) -> None:
        """XDEL of an entry, read or not."""
        for number in sorted(self.facts.entries)[pick : pick + 1]:
            known = self.facts.entries[number]
            if self.ask("XDEL", self.facts.key, known.id):
                known.done = known.deleted = True

    def do_redrive(self) -> None:
        """All dead letters go back, as though they had never been delivered; those whose entries
        were deleted are added again."""
        letters = self.letters()
        self.redriven = self.redriven or len(letters) > 0
        self.ask("PENSTOCK", "REDRIVE", DEAD)
        if not self.letters():
            for number in letters:
                known = self.facts.entries[number]
                known.deliveries = known.given = 0
                if known.deleted:
                    known.done = known.deleted = known.forgotten = False

    def do_rename(self) -> None:
        """The stream has another name."""
        before = self.facts.key
        if self.ask("EXISTS", before) and not self.waiting and not self.letters():
            self.facts.key = "again" if before == KEY else KEY
            self.ask("RENAME", before, self.facts.key)
            self.facts.budget = None

    def do_destroy(self) -> None:
        """The group is destroyed; where it is made again by itself it begins at the beginning."""
        if "auto-group" in self.of_stream:
            self.ask("XGROUP", "DESTROY", self.facts.key, GROUP)
            for known in self.facts.entries.values():
                known.done, known.deliveries = known.deleted, 0
            self.do_read("ann", 1)

    def do_pause(self, yes: bool) -> None:
        """Readers wait, or go on."""
        if "paused" in self.policies:
            self.facts.paused = yes
            word = "yes" if yes else "no"
            self.ask("PENSTOCK", "POLICY", "SET", self.facts.key, "GROUP", GROUP, "paused", word)

    # --- what there is --------------------------------------------------------------------

    def entries_in(self, reply: Any) -> list[int]:
        """The numbers of the entries in a reply of XREADGROUP."""
        return self.numbers_of(reply[0][1]) if reply else []

    def numbers_of(self, entries: Any) -> list[int]:
        """Those of a list of entries; where one has got another ID, that is noted."""
        found: list[int] = []
        for entry_id, fields, *_ in entries:
            if fields:
                number = int(fields[fields.index(b"n") + 1])
                self.facts.ids[entry_id.decode()] = number
                self.facts.entries[number].id = entry_id.decode()
                found.append(number)
        return found

    def pending(self) -> list[tuple[int, str, int]]:
        """The pending entries: number, owner, delivery count."""
        self.numbers_of(self.ask("XRANGE", self.facts.key, "-", "+"))
        rows = self.ask("XPENDING", self.facts.key, GROUP, "-", "+", 1000)
        return [(self.facts.ids[row[0].decode()], row[1].decode(), row[3]) for row in rows]

    def in_flight(self, pick: int) -> list[Known]:
        """One of the entries that somebody has."""
        owned = [number for number, owner, _ in self.pending() if owner]
        return [self.facts.entries[number] for number in owned[pick : pick + 1]]

    def letters(self) -> list[int]:
        """The numbers of the dead letters."""
        entries = self.ask("XRANGE", DEAD, "-", "+")
        return [int(fields[fields.index(b"n") + 1]) for _, fields in entries]

    def unread(self) -> list[int]:
        """The numbers of the entries that the group has not come to."""
        last = self.ask("XINFO", "GROUPS", self.facts.key)[0][7].decode()
        entries = self.ask("XRANGE", self.facts.key, f"({last}", "+")
        return self.numbers_of(entries)

    # --- what must hold -------------------------------------------------------------------

    def delivered(self, numbers: list[int], by_policy: bool = False) -> None:
        """These entries were given to somebody, in one reply."""
        counts = {number: count for number, _, count in self.pending()}
        if numbers and by_policy:
            self.check_rate(len(numbers))
        for number in numbers:
            known = self.facts.entries[number]
            if "consumer-ttl" in self.policies:
                # A delivery to a consumer that is gone does not count.
                known.deliveries = counts[number] - 1
            self.check_delivery(known, by_policy)
            known.deliveries += 1
            known.given += 1
            known.last_ms = self.now
        order = self.policies.get("order-by")
        if order:
            values = [self.facts.entries[number].value for number in numbers]
            assert len(values) == len(set(values)), "two entries of one order in one reply"

    def check_delivery(self, known: Known, by_policy: bool) -> None:
        """That the entry might be delivered."""
        policies = self.policies
        paused = by_policy and self.facts.paused
        assert not paused, "an entry is delivered though the group is paused"
        assert not known.done, "an entry that was acknowledged is delivered"
        limit = int(policies.get("max-deliveries", 0))
        assert not limit or known.deliveries < limit, "an entry is delivered too often"
        if "only" in policies:
            assert policies["only"] == f"kind={known.kind}"
        if "delay-field" in policies:
            assert known.at <= self.now, "an entry is delivered before its time"
        if "order-by" in policies:
            self.check_order(known)
        if by_policy and known.deliveries and "backoff" in policies:
            delay = least_delay(policies["backoff"], known.deliveries)
            assert self.now >= known.last_ms + delay, "an entry is delivered again too early"

    def check_priority(self, numbers: list[int]) -> None:
        """That these, which a read was just given, are those with the highest numbers that may be
        delivered, of what nobody was given before."""
        name = self.policies.get("priority-field")
        # Where few are looked at ahead others may come into view within one reply.
        if name is None or not numbers or "look-ahead" in self.policies:
            return
        given = [self.rank_of(number, name) for number in numbers]
        assert given == sorted(given), "entries are delivered in another order"
        if "order-by" in self.policies:
            return
        free = {number for number, owner, _ in self.pending() if not owner} | set(self.unread())
        for number in free - set(self.letters()):
            known = self.facts.entries[number]
            if not known.last_ms and ("delay-field" not in self.policies or known.at <= self.now):
                assert self.rank_of(number, name) > given[-1], f"{number} is left behind"

    def rank_of(self, number: int, name: str) -> tuple[int, list[int]]:
        """The place of an entry among those that may be delivered."""
        known = self.facts.entries[number]
        priority = known.number if name == "n" else known.at
        return -priority, known.place

    def check_rate(self, count: int) -> None:
        """That a reply has no more than its share. A server that has just started has not counted
        anything."""
        if "rate-limit" in self.policies:
            limit, period_ms = map(int, self.policies["rate-limit"].split("/"))
            passed = self.now - self.facts.budget_ms
            before = limit if self.facts.budget is None else self.facts.budget
            self.facts.budget = min(limit, before + passed * limit / period_ms) - count
            self.facts.budget_ms = self.now
            assert self.facts.budget > -0.001, "more is delivered than may be"

    def check_order(self, known: Known) -> None:
        """That those before it in its order are through, but for dead letters that came back after
        it was delivered."""
        if self.redriven and known.deliveries:
            return
        buried = self.letters()
        present = {number for number, _, _ in self.pending()} | set(self.unread())
        for other in self.facts.entries.values():
            if other.value == known.value and other.place < known.place and not other.forgotten:
                waiting = other.number in present and other.number not in buried
                assert not waiting, f"{known.number} is delivered before {other.number}"

    def check(self) -> None:
        """That nothing is lost, and that bounds are kept."""
        self.recording.keyspace.check()
        pending = self.pending()
        there = {number for number, _, _ in pending} | set(self.unread()) | set(self.letters())
        for known in self.facts.entries.values():
            wanted = "only" not in self.policies or self.policies["only"] == f"kind={known.kind}"
            if not known.done and wanted and not self.may_be_gone(known):
                assert known.number in there, f"{known.number} is lost"
        self.check_bounds(pending)
        self.check_kept_back(pending)
        self.check_reasons(pending)
        self.check_stream()

    def check_bounds(self, pending: list[tuple[int, str, int]]) -> None:
        """That no more is in flight than may be, unless clients claimed beside the policies."""
        if self.claimed:
            return
        limit = int(self.policies.get("max-pending", 0))
        assert not limit or sum(owner != "" for _, owner, _ in pending) <= limit
        each = int(self.policies.get("max-pending-consumer", 0))
        for consumer in CONSUMERS:
            owned = sum(owner == consumer for _, owner, _ in pending)
            assert not each or owned <= each

    def is_making_lanes(self) -> bool:
        """Whether lanes are made in portions, and the last one has not come yet."""
        services = self.recording.direct.server.services
        db = services.state.keyspace.databases[0]
        ruled = services.policies.ruled(existing_group(db, self.facts.key.encode(), GROUP.encode()))
        return ruled is not None and ruled.agenda.is_building

    def check_kept_back(self, pending: list[tuple[int, str, int]]) -> None:
        """That what is counted as kept back is what is: for its time until that second is over, and
        for its turn behind another one of its order. Until all lanes are made after a start not all
        of these are counted."""
        if self.is_making_lanes():
            return
        stats: dict[bytes, Any] = self.in_pairs(
            self.ask("PENSTOCK", "STATS", self.facts.key, GROUP)
        )
        kept: dict[bytes, int] = self.in_pairs(stats[b"kept-back"])
        never = [
            self.facts.entries[number]
            for number, owner, count in pending
            if not owner and not count and not self.facts.entries[number].last_ms
        ]
        waiting = [known for known in never if -(-known.at // 1000) * 1000 > self.now]
        ordered, delayed = "order-by" in self.policies, "delay-field" in self.policies
        if "priority-field" in self.policies:
            assert kept[b"turn"] >= len(never) - len(waiting)
            ordered = True
        if delayed:
            # Where there is an order, the time of those may have come that are kept for their turn.
            assert kept[b"time"] <= len(waiting), "entries that wait for their time"
            assert ordered or kept[b"time"] == len(waiting)
        if ordered and not delayed:
            assert kept[b"turn"] <= stats[b"pending"] + len(never)
            if not self.redriven and not self.claimed:
                owned = [self.facts.entries[number] for number, owner, _ in pending if owner]
                order = {known.value for known in owned if not known.forgotten}
                values = [known.value for known in never if not known.forgotten]
                assert kept[b"turn"] >= sum(value in order for value in values)

    def check_reasons(self, pending: list[tuple[int, str, int]]) -> None:
        """That all deliveries of an entry that have ended are told of, ten of them at most."""
        for number, owner, _ in pending if "reasons" in self.policies else ():
            known = self.facts.entries[number]
            lines = self.ask("PENSTOCK", "HISTORY", self.facts.key, GROUP, known.id)
            ended = 0 if known.deleted else known.given - (owner != "")
            assert len(lines) == min(ended, 10), "a delivery that ended is not told of"

    @staticmethod
    def in_pairs(reply: list[Any]) -> dict[bytes, Any]:
        """A map as RESP2 has it."""
        return dict(zip(reply[::2], reply[1::2], strict=True))

    def may_be_gone(self, known: Known) -> bool:
        """Whether the retention of the stream may have taken the entry."""
        retention = int(self.of_stream.get("retention", 0))
        if "retention-bytes" in self.of_stream:
            return True
        age = self.now - int(known.id.split("-")[0])
        return 0 < retention <= age and self.of_stream.get("retention-unread") != "keep"

    def check_stream(self) -> None:
        """That entries are in the stream as long as they are to be, and not longer."""
        entries = self.ask("XRANGE", self.facts.key, "-", "+")
        numbers = set(self.numbers_of(entries))
        if self.of_stream.get("delete") == "acked":
            last = max(self.facts.entries, default=0)
            unread = set(self.unread())
            for number in range(1, last + 1):
                known = self.facts.entries[number]
                if not known.done and number not in self.letters():
                    assert number in numbers or number not in unread
        if "retention-bytes" in self.of_stream and self.passed >= 100:
            assert len(numbers) <= FITTING, "there are more entries than fit"
        retention = int(self.of_stream.get("retention", 0))
        if (
            retention
            and self.passed >= STEP_MS
            and self.of_stream.get("retention-unread") != "keep"
        ):
            times = [int(self.facts.entries[number].id.split("-")[0]) for number in numbers]
            assert self.now - min(times, default=self.now) <= retention + STEP_MS


def least_delay(backoff: str, deliveries: int) -> float:
    """How many milliseconds after so many deliveries an entry may be delivered again."""
    if backoff.startswith("exponential:"):
        first, longest, jitter = (int(each.rstrip("%")) for each in backoff.split(":")[1:])
        return min(first << (deliveries - 1), longest) * (100 - jitter) / 100
    steps = [int(step) for step in backoff.split(",")]
    return steps[min(deliveries, len(steps)) - 1]


def _pairs(words: Sequence[str | int]) -> list[tuple[str | int, str | int]]:
    return list(zip(words[::2], words[1::2], strict=True))
