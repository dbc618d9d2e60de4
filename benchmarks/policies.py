"""What policies cost: ``python -m benchmarks.policies``.

A consumer reads a hundred entries and acknowledges them, again and again, on the compiled server as
it is installed: once without policies and once with each, in turns. What is compared is the
processor time that the server takes.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.data import KEY, Data, read_new
from benchmarks.driver import Client, LoadError, pack
from benchmarks.loads import CONSUMER, GROUP, ConsumerLoop, Meter, Values
from benchmarks.servers import PENSTOCK, ROOT, Kind, Running, find_kinds

COUNT: Final = 100
"""How many entries a read is given."""

NOTHING: Final = "nothing"

POLICIES: Final[dict[str, tuple[str, ...]]] = {
    NOTHING: (),
    "ack-wait": ("ack-wait", "60000"),
    "backoff": ("backoff", "60000,300000"),
    "max-deliveries": ("ack-wait", "60000", "max-deliveries", "5", "dead-letter", "dead"),
    "consumer-ttl": ("consumer-ttl", "60000"),
    "rate-limit": ("rate-limit", "1000000000/1s"),
    "max-pending": ("max-pending", "1000"),
    "max-pending-consumer": ("max-pending-consumer", "1000"),
    "dead-letter": ("dead-letter", "dead", "dead-letter-maxlen", "1000"),
    "retention": ("retention", "9000000000000"),
    "retention-bytes": ("retention-bytes", "1gb"),
    "retention-unread": ("retention", "9000000000000", "retention-unread", "keep"),
    "auto-group": ("auto-group", "0"),
    "paused": ("paused", "no"),
    "only": ("only", "kind=tea"),
    "delay-field": ("delay-field", "at"),
    "order-by": ("order-by", "order"),
    "priority-field, numbers in any order": ("priority-field", "order"),
    "priority-field, equal numbers": ("priority-field", "kind"),
    "look-ahead": ("order-by", "order", "look-ahead", "1000"),
    "reasons": ("reasons", "yes"),
    "delete acked": ("delete", "acked"),
    "delete-grace": ("delete", "acked", "delete-grace", "1000"),
}
"""What is set on the stream, for its group, too."""


TOGETHER: Final = ("ack-wait", "60000", "max-deliveries", "5", "dead-letter", "dead")
"""The policies of a group whose reading is measured beside servers that have none."""


@dataclass(frozen=True, kw_only=True)
class Policed(ConsumerLoop):
    """The same loop in a group with policies, where the server has them."""

    def run(self, server: Running, data: Data, units: int) -> Values:
        """Returns the cost of an entry, and the wall-clock time of a round."""
        if server.kind.version_field == PENSTOCK.version_field:
            with Client(server.address) as client:
                client.call("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP, *TOGETHER)
        return super().run(server, data, units)


def measure(kind: Kind, policies: tuple[str, ...], entries: int) -> float:
    """What :func:`cost` takes on a server that has just been started."""
    with Running(kind) as server:
        return cost(server, policies, entries)


def cost(server: Running, policies: tuple[str, ...], entries: int) -> float:
    """Microseconds of processor time for a read of a hundred entries and their XACK; the server
    must have no data."""
    with Client(server.address) as client:
        client.feed(_entries(entries))
        client.call("XGROUP", "CREATE", KEY, GROUP, 0)
        if policies:
            client.call("PENSTOCK", "POLICY", "SET", KEY, *policies)
        rounds = entries // COUNT
        with Meter(server) as meter:
            for _ in range(rounds):
                client.send(read_new(GROUP, CONSUMER, COUNT))
                [[_, found]] = client.read()
                if client.call("XACK", KEY, GROUP, *[entry[0] for entry in found]) != COUNT:
                    raise LoadError("a read was not given a hundred entries")
        return meter.values(rounds)["cpu_us"]


def _entries(count: int) -> list[bytes]:
    """Entries of which no two in a row have the same order."""
    return [
        pack("XADD", KEY, "*", "order", number % 5000, "kind", "tea", "item", "x" * 20)
        for number in range(count)
    ]


def table(costs: dict[str, list[float]]) -> str:
    """The least of the rounds, as what else a machine does only adds to it, and how it is to that
    without policies."""
    base = min(costs[NOTHING])
    lines = ["| policy | microseconds | times |", "|---|---|---|"]
    lines += [
        f"| {name} | {min(each):.1f} | {min(each) / base:.2f} |" for name, each in costs.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measures, prints the table, and writes it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds (%(default)s)")
    parser.add_argument("--entries", type=int, default=50_000, help="entries (%(default)s)")
    parser.add_argument("--server", default="penstock", help="which server (%(default)s)")
    results = ROOT / "benchmarks" / "results" / "policies.md"
    parser.add_argument("--output", type=Path, default=results, help="where the table goes")
    options = parser.parse_args()
    kinds, missing = find_kinds([options.server])
    if missing:
        print(missing[0], file=sys.stderr)
        return 1
    costs: dict[str, list[float]] = {name: [] for name in POLICIES}
    for _ in range(options.rounds):
        for name, policies in POLICIES.items():
            costs[name].append(measure(kinds[0], policies, options.entries))
    print(table(costs), end="")
    options.output.write_text(
        "# What does each policy cost?\n\nA read of a hundred entries and their XACK, processor"
        " time of the server; the least of the rounds.\n\n" + table(costs)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
