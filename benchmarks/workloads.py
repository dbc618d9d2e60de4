"""The table of what is measured, with the targets: ratios to Redis in the same round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.data import EMPTY, FIELDS, KEY, Data
from benchmarks.loads import (
    CONSUMER,
    GROUP,
    Claims,
    ClientMemory,
    ConsumerLoop,
    Crowded,
    EntryMemory,
    Flood,
    Load,
    PendingMemory,
    Wakeups,
)
from benchmarks.many_streams import ManyStreams, Way
from benchmarks.policies import Policed
from benchmarks.redis_benchmark import RANDOM
from benchmarks.servers import FAKEREDIS, FLOOR, PENSTOCK, PLAIN
from benchmarks.varied import COMMANDS, ByCommand, Mixed, Varied

ANY_GROUP: Final = f"g:{RANDOM}"
ANY_CONSUMER: Final = f"c:{RANDOM}"
ANY_TIME: Final = f"1{RANDOM}"
"""The time of any entry: :data:`benchmarks.data.FIRST_MS` and a number below the milliseconds."""
ENTRY: Final = " ".join(FIELDS)


BESIDE: Final = (PENSTOCK.name, "redis", "valkey", FAKEREDIS.name)
"""The servers that most workloads are measured on."""
AT_FLOOR: Final = (*BESIDE, FLOOR.name)
"""Those of workloads that little but reading and writing costs."""


@dataclass(frozen=True)
class Target:
    """The ratio of a measured value to that of Redis that must not be exceeded.

    ``label`` tells the targets of one workload apart; ``why`` tells the reader of the report why it
    is missed, if it is. ``subject`` is the form of Penstock that is measured.
    """

    value: str
    most: float
    label: str = ""
    why: str = ""
    subject: Literal["penstock", "plain"] = "penstock"


@dataclass(frozen=True)
class Workload:
    """A load on some data. ``rounds`` bounds how often it is measured where it hardly varies;
    ``options`` are those with which each of the ``servers`` is
    started, ``without`` names the same workload without them."""

    name: str
    title: str
    load: Load
    targets: tuple[Target, ...]
    data: Data = EMPTY
    rounds: int = 100
    options: tuple[str, ...] = ()
    without: str = ""
    servers: tuple[str, ...] = BESIDE

    def measured_on(self, server: str) -> bool:
        """Whether it is measured on the server of this name; fakeredis is compared by its requests
        a second, the floor knows no options, and plain Python is measured where it has targets."""
        if server == PLAIN.name:
            return any(target.subject == server for target in self.targets)
        if server == FAKEREDIS.name and isinstance(
            self.load, EntryMemory | PendingMemory | ClientMemory
        ):
            return False
        return server in self.servers and not (
            self.options and server in (FAKEREDIS.name, FLOOR.name)
        )


def _cpu(most: float, why: str = "", plain: float | None = None) -> tuple[Target, ...]:
    """A target for the compiled form, and perhaps one for plain Python."""
    target = Target("cpu_us", most, why=why)
    if plain is None:
        return (target,)
    return target, Target("cpu_us", plain, "plain Python", IN_PLAIN_PYTHON, "plain")


# --- why targets are missed ------------------------------------------------------------------

EACH_READ: Final = (
    "the system calls of a read and a write cost both servers the same; beside them, a read goes"
    " through uvloop, the connection and the parser: some 10,000 instructions of compiled Python"
    " and of its interpreter, where Redis needs a fifth; it would take a connection in C"
)
EACH_ENTRY: Final = (
    "an XADD takes fewer instructions than in Redis (the table of instructions), but on more"
    " memory: request, entry and reply are objects that are made and freed, so that processors miss"
    " their caches for data four times as often; it would take entries that become objects only"
    " where somebody reads them"
)
EACH_RUN: Final = (
    "an entry for another stream than the one before, or with names of another length, is a run of"
    " its own: its stream is sought, the run is put to its block and its reply written for it alone"
)
EACH_DELIVERY: Final = (
    "a delivery of a single entry goes through the same steps as one of a hundred: options, group,"
    " consumer, run, three columns, two effects; it would take steps that one entry can leave out"
)
EACH_ACK: Final = (
    "two requests for ten entries go through connection, parser and dispatcher, which is two fifths"
    " of it; each acknowledged ID is read from its text into an integer of 128 bits, and compared;"
    " it would take halves of IDs as native integers from the request to the pending entries"
)
EACH_LINE: Final = (
    "a line is put together of three pieces, and where its ID is still an integer of 128 bits its"
    " halves are taken from that"
)
EACH_CLAIM: Final = (
    "a claim of one entry goes through the same steps as one of a hundred: options, group,"
    " consumer, the pending entry, its entry in the log, two effects"
)
EACH_POLICY: Final = (
    "each entry gets a time at which it is due again and is counted, and each acknowledged one is"
    " taken out again; the others do none of that"
)
EACH_CLIENT: Final = (
    "a connection of uvloop and its transport, what the server knows of its client, and the parser"
    " of its requests are objects of Python; it would take a transport in C"
)
EACH_NAME: Final = (
    "most of a request whose names were never seen is to read it, and its options, word by word;"
    " Redis compares bytes where compiled Python makes an object of each word; it would take"
    " requests of which words stay where they were read"
)
IN_PLAIN_PYTHON: Final = (
    "interpreted, each step of an XADD costs some 30 instructions, so that those that a pipeline of"
    " 16 cannot share are most of its 25,000; it would take larger runs, as pipelines of 100 have"
)
HOT: Final = (
    "the newest blocks are compressed quickly, with LZ4, and with zlib only after ten seconds at"
    " rest; it would take zlib at once"
)
WHOLE_REPLY: Final = (
    "sending the reply, which costs both servers the same, is half of what it takes: constant bytes"
    " as long as 100 entries take 0.3 of Redis's time for an XRANGE through uvloop, those of 1,000"
    " 0.13, which is above that target; they are 0.12 of an XREADGROUP of 100"
)

# --- loads that the table and the curves share -----------------------------------------------

XADD: Final = f"XADD {KEY} * {ENTRY}"
XADD_16: Final = Flood(command=XADD, pipeline=16, amount=240_000)
XADD_100: Final = Flood(command=XADD, pipeline=100, amount=300_000)
XADD_MAXLEN: Final = Flood(
    command=f"XADD {KEY} MAXLEN ~ 10000 * {ENTRY}", pipeline=16, amount=240_000
)
XRANGE_10: Final = Flood(
    command=f"XRANGE {KEY} {ANY_TIME} + COUNT 10",
    clients=10,
    pipeline=10,
    numbers="milliseconds",
    amount=100_000,
)
XRANGE_100: Final = Flood(
    command=f"XRANGE {KEY} {ANY_TIME} + COUNT 100",
    clients=10,
    numbers="milliseconds",
    amount=12_000,
)
XRANGE_1000: Final = Flood(
    command=f"XRANGE {KEY} {ANY_TIME} + COUNT 1000",
    clients=10,
    numbers="milliseconds",
    amount=2_000,
)
READ_1: Final = Flood(
    command=f"XREADGROUP GROUP {ANY_GROUP} {CONSUMER} COUNT 1 STREAMS {KEY} >",
    clients=10,
    pipeline=10,
    numbers="groups",
    reads=1,
    amount=80_000,
)
READ_100: Final = Flood(
    command=f"XREADGROUP GROUP {ANY_GROUP} {CONSUMER} COUNT 100 STREAMS {KEY} >",
    clients=10,
    numbers="groups",
    reads=100,
    amount=4_000,
)
HISTORY_100: Final = Flood(
    command=f"XREADGROUP GROUP {GROUP} {ANY_CONSUMER} COUNT 100 STREAMS {KEY} 0",
    clients=10,
    numbers="consumers",
    amount=5_000,
)
XPENDING_100: Final = Flood(
    command=f"XPENDING {KEY} {GROUP} {ANY_TIME} + 100",
    clients=10,
    numbers="pending_milliseconds",
    amount=8_000,
)
XPENDING_IDLE: Final = Flood(
    command=f"XPENDING {KEY} {GROUP} IDLE 3600000 - + 100", clients=10, amount=200
)
XAUTOCLAIM_100: Final = Flood(
    command=f"XAUTOCLAIM {KEY} {GROUP} {ANY_CONSUMER} 0 0 COUNT 100",
    clients=10,
    numbers="consumers",
    amount=4_000,
)
XCLAIM_1: Final = Claims(amount=50_000)
UNSEEN: Final = 10**9
"""So many numbers that hardly one is chosen twice; redis-benchmark takes none above 2^31."""
XADD_UNSEEN: Final = Flood(
    command=f"XADD {KEY} * sensor-id 1234 temperature-{RANDOM} 19.8",
    numbers=UNSEEN,
    amount=80_000,
)
READ_UNSEEN: Final = Flood(
    command=f"XREADGROUP GROUP {GROUP} {ANY_CONSUMER} COUNT 1 STREAMS {KEY} >",
    clients=10,
    numbers=UNSEEN,
    reads=1,
    amount=40_000,
)
LOOP: Final = ConsumerLoop(amount=100_000)

UNREAD: Final = Data(entries=100_000, groups=1)
PENDING: Final = Data(entries=100_000, groups=1, consumers=2, pending=100_000)

VARIED: Final = "50 streams, 250 groups, 10 consumers, 20 lists of fields"


def _varied(pipeline: int, amount: int) -> tuple[Workload, ...]:
    """The worker that sends everything in any order, and the same commands one by one."""
    name = f"varied-p{pipeline}" if pipeline > 1 else "varied"
    title = f"{VARIED}, {f'pipeline {pipeline}' if pipeline > 1 else 'no pipeline'}"
    return (
        Workload(
            name,
            f"{title}: all commands",
            Varied(amount=amount, pipeline=pipeline),
            _cpu(1.1, EACH_NAME),
        ),
        Workload(
            f"{name}-commands",
            title,
            ByCommand(amount=amount, pipeline=pipeline),
            tuple(Target(command, 1.1, command, EACH_NAME) for command in COMMANDS),
            servers=COMPARED,
        ),
    )


COMPARED: Final = (PENSTOCK.name, "redis")
"""The servers of workloads that there are many of."""

WAYS: Final[dict[Way, str]] = {
    "empty": "nothing new",
    "found": "XADD to one, then the read",
    "woken": "the read waits, XADD to one",
}
MOST_OF_MANY: Final = 1.1
"""How many times what it costs Redis a read of many streams may cost."""
OF_MANY_STREAMS: Final = tuple(
    Workload(
        f"{command.lower()}-{streams}-streams-{way}",
        f"{command} of {streams:,} streams, {title}",
        ManyStreams(streams=streams, grouped=command == "XREADGROUP", way=way, amount=amount),
        _cpu(MOST_OF_MANY),
        servers=COMPARED,
    )
    for command in ("XREADGROUP", "XREAD")
    for streams, amount in ((10, 10_000), (50, 6_000), (200, 2_000), (1000, 500))
    for way, title in WAYS.items()
)
"""A worker that serves many streams with one request."""

MIXED: Final = tuple(
    Workload(
        f"xadd-{streams}x{lists}",
        f"XADD, pipeline 100, {streams} streams by {lists} lists of fields",
        Mixed(streams=streams, lists=lists, amount=60_000),
        _cpu(1.0, EACH_ENTRY) if (streams, lists) in ((8, 8), (100, 100)) else (),
        servers=COMPARED,
    )
    for streams in (1, 2, 8, 100)
    for lists in (1, 2, 8, 100)
)
"""Entries that go to several streams and have several lists of fields, in any order."""
MOST_OF_ONE_SHAPE: Final = 1.3
"""How many times what an XADD of one list of fields to one stream costs any of them may cost."""
MOST_MIXED: Final = 1.0
"""The same to what it costs Redis."""

WORKLOADS: Final = (
    *_varied(8, 160_000),
    *_varied(1, 40_000),
    Workload(
        "varied-many",
        "1,000 streams, 5,000 groups, 10 consumers, fields never seen before, pipeline 8",
        Varied(amount=160_000, pipeline=8, streams=1000, lists=UNSEEN),
        _cpu(1.1, EACH_NAME),
        servers=COMPARED,
    ),
    Workload(
        "ping",
        "PING, 50 clients",
        Flood(command="PING", amount=100_000),
        _cpu(1.1, EACH_READ),
        servers=AT_FLOOR,
    ),
    Workload(
        "xadd",
        "XADD, 50 clients, no pipeline",
        Flood(command=XADD, amount=80_000),
        _cpu(1.05, EACH_READ),
        servers=AT_FLOOR,
    ),
    Workload("xadd-p16", "XADD, 50 clients, pipeline 16", XADD_16, _cpu(0.85, EACH_ENTRY, 2.0)),
    Workload("xadd-p100", "XADD, 50 clients, pipeline 100", XADD_100, _cpu(0.65, EACH_ENTRY, 1.3)),
    *MIXED,
    Workload(
        "xadd-given",
        "XADD, pipeline 100, 8 streams by 8 lists of fields, IDs given",
        Mixed(streams=8, lists=8, given=True, amount=60_000),
        _cpu(MOST_MIXED, EACH_ENTRY),
        servers=COMPARED,
    ),
    Workload(
        "xadd-values",
        "XADD, pipeline 100, 8 streams by 8 lists of fields, values of 10 bytes to 1 KB",
        Mixed(streams=8, lists=8, values=(10, 1024), amount=60_000),
        _cpu(MOST_MIXED, EACH_ENTRY),
        servers=COMPARED,
    ),
    Workload(
        "xadd-many",
        "XADD, pipeline 100, 1,000 streams, fields never seen before, values of 1 to 16 bytes",
        Mixed(streams=1000, lists=UNSEEN, values=(1, 16), amount=60_000),
        _cpu(MOST_MIXED, EACH_ENTRY),
        servers=COMPARED,
    ),
    Workload(
        "xadd-maxlen",
        "XADD MAXLEN ~ 10000, 50 clients, pipeline 16",
        XADD_MAXLEN,
        _cpu(0.75, EACH_ENTRY),
    ),
    *(
        Workload(
            f"{name}-crowded",
            f"{title}, 1,000 others parked, 1,000 keys expire",
            Crowded(flood=flood, amount=flood.amount),
            _cpu(most, EACH_ENTRY),
        )
        for name, title, flood, most in (
            ("xadd-p16", "XADD, pipeline 16", XADD_16, 0.85),
            ("xadd-p100", "XADD, pipeline 100", XADD_100, 0.65),
            ("xadd-maxlen", "XADD MAXLEN ~ 10000, pipeline 16", XADD_MAXLEN, 0.75),
        )
    ),
    Workload("xrange-10", "XRANGE COUNT 10, pipeline 10", XRANGE_10, _cpu(0.65, EACH_READ), UNREAD),
    Workload("xrange-100", "XRANGE COUNT 100", XRANGE_100, _cpu(0.4, WHOLE_REPLY), UNREAD),
    Workload("xrange-1000", "XRANGE COUNT 1000", XRANGE_1000, _cpu(0.1, WHOLE_REPLY), UNREAD),
    Workload(
        "xreadgroup-1", "XREADGROUP COUNT 1, pipeline 10", READ_1, _cpu(0.75, EACH_DELIVERY), UNREAD
    ),
    Workload(
        "xreadgroup-100",
        "XREADGROUP COUNT 100, pending entries written",
        READ_100,
        _cpu(0.22, WHOLE_REPLY),
        Data(entries=50_000, groups=10),
    ),
    *OF_MANY_STREAMS,
    Workload("history-100", "history of 100, 100,000 pending", HISTORY_100, _cpu(0.25), PENDING),
    Workload(
        "xpending-100",
        "XPENDING of 100, 100,000 pending",
        XPENDING_100,
        _cpu(1.0, EACH_LINE),
        PENDING,
    ),
    Workload(
        "xautoclaim-100",
        "XAUTOCLAIM COUNT 100, 100,000 pending",
        XAUTOCLAIM_100,
        _cpu(0.16, EACH_CLAIM),
        PENDING,
    ),
    Workload(
        "xpending-idle",
        "XPENDING IDLE that matches nothing, 100,000 pending",
        XPENDING_IDLE,
        _cpu(0.05),
        PENDING,
    ),
    Workload("xclaim-1", "XCLAIM of one, pipeline 10", XCLAIM_1, _cpu(1.05, EACH_CLAIM), PENDING),
    Workload(
        "consumer-loop",
        "XREADGROUP COUNT 10, then XACK of the ten: per entry",
        LOOP,
        _cpu(0.95, EACH_ACK),
        UNREAD,
    ),
    Workload(
        "policies",
        "the same on Penstock with policies, on the others without",
        Policed(amount=LOOP.amount),
        _cpu(1.4, EACH_POLICY),
        UNREAD,
        without="consumer-loop",
        servers=(PENSTOCK.name, "redis", "valkey"),
    ),
    Workload(
        "xadd-unseen",
        "XADD, 50 clients, no pipeline, a field never seen before",
        XADD_UNSEEN,
        _cpu(1.05, EACH_READ),
    ),
    Workload(
        "xreadgroup-unseen",
        "XREADGROUP COUNT 1, no pipeline, a consumer never seen before",
        READ_UNSEEN,
        _cpu(1.0, EACH_NAME),
        UNREAD,
    ),
    Workload(
        "wake-up",
        "XADD to a parked XREADGROUP: wake-up, wall clock",
        Wakeups(amount=4_000),
        (Target("p50_ms", 1.1, "p50", EACH_READ), Target("p99_ms", 1.1, "p99", EACH_READ)),
        Data(groups=1),
        servers=AT_FLOOR,
    ),
    Workload(
        "memory-entries",
        "memory for each of 1,000,000 entries",
        EntryMemory(amount=1_000_000),
        (Target("bytes", 0.84, "hot", HOT), Target("cold_bytes", 0.84, "cold")),
        rounds=1,
    ),
    Workload(
        "memory-pending",
        "memory for each of 1,000,000 pending entries",
        PendingMemory(amount=1_000_000),
        (Target("bytes", 0.5),),
        Data(entries=1_000_000, groups=1, consumers=10),
        rounds=1,
    ),
    Workload(
        "idle-clients",
        "10,000 idle clients",
        ClientMemory(amount=10_000),
        (
            Target("bytes", 1.2, "memory of each", EACH_CLIENT),
            Target("idle_us", 1.0, "CPU time while nothing happens"),
        ),
        rounds=1,
    ),
)

TIMES_FAKEREDIS: Final = 10
"""How many times the requests a second of fakeredis are wanted."""
