"""``penstock doctor``: what is misconfigured, in sentences, each with the command that fixes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from penstock.client.connection import ServerConnection
from penstock.operate.common import (
    asks,
    connected,
    is_penstock,
    parser,
    run,
    streams,
    word,
)
from penstock.operate.dead import streams_with_letters
from penstock.operate.groups import gather
from penstock.terminal import plural, shown
from server.delivery.health import MANY
from server.runtime.quantities import duration

GONE_MS: Final = 24 * 3_600_000
"""How long a consumer may say nothing until it is taken to be gone."""

LONG: Final = 1_000_000
"""How many entries a stream may have that nothing trims."""

LOCAL: Final = ("127.", "localhost", "::1", "-::1")


class Finding(NamedTuple):
    """Tells what is wrong, in a sentence, and the command that mends it."""

    sentence: str
    remedy: str


class Patient:
    """A server that is looked at, with its settings."""

    def __init__(self, server: ServerConnection) -> None:
        self.server = server
        reply = asks(server, "CONFIG", "GET", "*") or []
        self.settings: dict[str, str] = {
            shown(name): shown(value) for name, value in zip(reply[::2], reply[1::2], strict=True)
        }
        """Empty if the user may not read them."""
        self.keys = streams(server)
        self.is_penstock = is_penstock(server)

    def policies(self, stream: bytes, group: bytes) -> dict[bytes, bytes]:
        """The policies in force of a group, none on other servers."""
        if not self.is_penstock:
            return {}
        found = asks(self.server, "PENSTOCK", "POLICY", "GET", stream, "GROUP", group) or []
        return dict(zip(found[::2], found[1::2], strict=True))


def unread_settings(patient: Patient) -> Iterator[Finding]:
    """Where CONFIG GET is refused, what it would tell is not looked at."""
    if not patient.settings:
        yield Finding(
            "The settings could not be read, so they were not checked.",
            "ACL SETUSER <you> +config|get",
        )


def open_door(patient: Patient) -> Iterator[Finding]:
    """Everybody who reaches the server may do everything."""
    settings = patient.settings
    if settings.get("requirepass", "x") or settings.get("protected-mode") == "yes":
        return
    if all(place.startswith(LOCAL) for place in settings.get("bind", "*").split()):
        return
    yield Finding(
        f"Other hosts can reach the server (bind {settings['bind']}) and need no password.",
        "CONFIG SET requirepass <password>",
    )


def nothing_kept(patient: Patient) -> Iterator[Finding]:
    """Nothing, or less than one thinks, outlives the process."""
    settings, number = patient.settings, len(patient.keys)
    if not number or not settings:
        return
    if settings.get("appendonly") == "no" and not settings.get("save"):
        yield Finding(
            f"{plural(number, 'stream')} will be gone after a restart: appendonly is no.",
            "CONFIG SET appendonly yes",
        )
    elif settings.get("appendonly") == "yes" and settings.get("appendfsync") == "no":
        yield Finding(
            "A power cut may lose whatever the system has not written yet: appendfsync is no.",
            "CONFIG SET appendfsync everysec",
        )


def eviction(patient: Patient) -> Iterator[Finding]:
    """A full memory would throw streams away, with entries that nobody has read."""
    policy = patient.settings.get("maxmemory-policy", "noeviction")
    if policy.startswith("allkeys") and patient.settings.get("maxmemory", "0") != "0":
        yield Finding(
            f"When memory is full, whole streams are evicted: maxmemory-policy is {policy}.",
            "CONFIG SET maxmemory-policy noeviction",
        )


def growing(patient: Patient) -> Iterator[Finding]:
    """Streams that are long and that no policy trims."""
    for key in patient.keys:
        length = asks(patient.server, "XLEN", key) or 0
        if length < LONG:
            continue
        kept: Any = ()
        if patient.is_penstock:
            kept = asks(patient.server, "PENSTOCK", "POLICY", "GET", key) or ()
        if not {b"retention", b"retention-bytes", b"delete"} & set(kept[::2]):
            yield Finding(
                f"{shown(key)} has {plural(length, 'entry')}, and nothing trims it unless its"
                " producers do.",
                f"PENSTOCK POLICY SET {word(key)} retention 7d"
                if patient.is_penstock
                else f"XTRIM {word(key)} MAXLEN ~ {LONG}",
            )


def groups_in_trouble(patient: Patient) -> Iterator[Finding]:
    """Groups that nobody reads, and entries that fail again and again."""
    for group in gather(patient.server):
        name = f"{shown(group.group)} of {shown(group.stream)}"
        stream, own = word(group.stream), word(group.group)
        if not group.consumers and group.waits is not None and group.waits >= GONE_MS:
            yield Finding(
                f"Nobody reads the group {name}, and entries have waited for"
                f" {duration(group.waits)}. If it is not needed any more, destroy it.",
                f"XGROUP DESTROY {stream} {own}",
            )
        policies = patient.policies(group.stream, group.group)
        if group.deliveries >= MANY and b"max-deliveries" not in policies:
            yield Finding(
                f"An entry of the group {name} was delivered {group.deliveries} times, and nothing"
                " sets it aside.",
                f"PENSTOCK POLICY SET {stream} GROUP {own} max-deliveries 5"
                f" dead-letter {word(group.stream + b':dead')}"
                if patient.is_penstock
                else f"XPENDING {stream} {own} - + 10",
            )


def consumers_gone(patient: Patient) -> Iterator[Finding]:
    """Consumers that have said nothing for long and still hold entries."""
    for key in patient.keys:
        for row in asks(patient.server, "XINFO", "GROUPS", key) or ():
            group = row[row.index(b"name") + 1]
            for consumer in asks(patient.server, "XINFO", "CONSUMERS", key, group) or ():
                told = dict(zip(consumer[::2], consumer[1::2], strict=True))
                if told[b"pending"] and told[b"idle"] >= GONE_MS:
                    yield _gone(key, group, told)


def _gone(key: bytes, group: bytes, told: dict[bytes, Any]) -> Finding:
    return Finding(
        f"The consumer {shown(told[b'name'])} of {shown(group)} ({shown(key)}) has been idle for"
        f" {duration(told[b'idle'])} and holds {plural(told[b'pending'], 'entry')}.",
        f"XAUTOCLAIM {word(key)} {word(group)} <consumer> {GONE_MS} 0",
    )


def dead_letters(patient: Patient) -> Iterator[Finding]:
    """Letters that wait for somebody to look at them."""
    for key, length in streams_with_letters(patient.server):
        yield Finding(
            f"{shown(key)} holds {plural(length, 'dead letter')}.",
            f"penstock dead list {word(key)}",
        )


CHECKS: Final[tuple[Callable[[Patient], Iterator[Finding]], ...]] = (
    unread_settings,
    open_door,
    nothing_kept,
    eviction,
    growing,
    groups_in_trouble,
    consumers_gone,
    dead_letters,
)


def examine(server: ServerConnection) -> list[Finding]:
    """Return what is wrong with a server and its streams."""
    patient = Patient(server)
    return [finding for check in CHECKS for finding in check(patient)]


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns 1 if it has found something."""
    known = parser(
        "doctor",
        "What is misconfigured on a server, and the command that fixes it. Changes nothing.",
        "The exit status is 1 if something was found.",
    )
    options = known.parse_args(args)
    return run("doctor", lambda: _examine(options.url))


def _examine(url: str) -> int:
    with connected(url) as server:
        findings = examine(server)
    for finding in findings:
        print(f"{finding.sentence}\n    {finding.remedy}")
    if not findings:
        print("No problems found.")
    return 1 if findings else 0
