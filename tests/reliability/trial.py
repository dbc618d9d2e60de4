"""One attack on one server, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.data import prepare
from benchmarks.durability import kept
from benchmarks.servers import Kind, Running, with_options
from tests.reliability.attacks import MIB, Attack
from tests.reliability.witness import Witness, found
from tests.support.ports import free_port

SETTLING_S: Final = 1.0
"""How long a server may take to give memory back."""


@dataclass(frozen=True)
class Outcome:
    """What another client waited at most, the memory that the attack took at its peak and what of
    it was not given back in a second, the same process still running, and how many acknowledged
    entries were missing after a kill."""

    longest_ms: float
    peak_mib: float
    left_mib: float
    survived: bool
    lost: int
    refused: int


def options_of(attack: Attack) -> tuple[str, ...]:
    """How a server is started for an attack: its data is kept."""
    page = ("--metrics-port", str(free_port())) if attack.of_page else ()
    return (*kept("everysec"), *attack.options, *page)


def try_attack(attack: Attack, kind: Kind, scale: float) -> Outcome:
    """Lets the attack happen while a witness writes; then the server is killed and started again,
    and must have what it has acknowledged."""
    with Running(with_options(kind, options_of(attack)), patience=0) as server:
        prepare(server.address, attack.data.scaled(scale))
        before = server.resident_bytes()
        server.forget_peak()
        with Witness(server.address) as witness:
            attack.do(server, scale)
        survived = server.alive
        peak = server.peak_bytes() if survived else 0
        left = server.settled_bytes(SETTLING_S) if survived and scale == 1 else peak
        server.kill()
        server.restart()
        missing = set(witness.seen.acknowledged) - found(server.address)
    return Outcome(
        witness.seen.longest_ms,
        max(0.0, (peak - before) / MIB),
        max(0.0, (left - before) / MIB),
        survived,
        len(missing),
        witness.seen.refused,
    )
