"""Waits for what other programs do by asking the server again and again; checks what they got."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from time import sleep
from typing import Any, Final

from penstock.testing.control import Ask, PenstockError, WaitTimeout, as_dict

TIMEOUT_S: Final = 10.0
"""How long is waited, unless a test says otherwise."""

SHOWN: Final = 5
"""How many entries, groups or clients a text names."""

_FIRST_PAUSE_S: Final = 0.001

_LONGEST_PAUSE_S: Final = 0.02


def until_acknowledged(ask: Ask, stream: str, group: str, timeout: float) -> None:
    """Waits until a group has acknowledged everything that is in a stream."""
    _wait(
        f"until the group {group!r} has acknowledged everything in {stream!r}",
        lambda: unfinished(ask, stream, group),
        timeout,
    )


def until_readers(ask: Ask, number: int, timeout: float) -> None:
    """Waits until so many clients wait in XREAD or XREADGROUP."""
    noun = "reader waits" if number == 1 else "readers wait"
    _wait(f"until {number} {noun}", lambda: _other_readers(ask, number), timeout)


def until_idle(ask: Ask, timeout: float) -> None:
    """Waits until every group of every stream, in all databases, has acknowledged everything."""
    text = "until every group has acknowledged everything"
    _wait(text, lambda: _busy_groups(ask), timeout)


def until_saved(ask: Ask, timeout: float) -> None:
    """Saves everything, as soon as no process in the background does so already."""
    _wait("to save everything", lambda: _passing(ask, "SAVE", "already in progress"), timeout)


def until_flushed(ask: Ask, timeout: float) -> None:
    """Deletes all data, as soon as the server has found out that its disk works again."""
    _wait("to delete all data", lambda: _passing(ask, "FLUSHALL", ": MISCONF "), timeout)


def _wait(what: str, look: Callable[[], str], timeout: float) -> None:
    """Looks again and again until ``look`` has nothing to tell; raises :class:`WaitTimeout`.

    Only the pauses count, so a library that stops the time of the test's process stops no wait.
    """
    waited, pause = 0.0, _FIRST_PAUSE_S
    while there := look():
        if waited >= timeout:
            raise WaitTimeout(f"waited for {timeout:g} seconds {what}: {there}")
        sleep(pause)
        waited += pause
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _passing(ask: Ask, command: str, text: str) -> str:
    """The error of a command if it has this text, which is to pass; empty if there is none."""
    try:
        ask(command)
    except PenstockError as error:
        if text not in str(error):
            raise
        return str(error)
    return ""


# --- groups -----------------------------------------------------------------------------------


def unfinished(ask: Ask, stream: str, group: str) -> str:
    """Return what a group has still to do; empty if that is nothing."""
    missing = _missing(ask, stream, group)
    return missing or _left(ask, stream, group, groups_of(ask, stream)[group])


def _missing(ask: Ask, stream: str, group: str) -> str:
    """Return that there is no such stream or group; empty if there is."""
    try:
        groups = groups_of(ask, stream)
    except PenstockError as error:
        if "no such key" not in str(error):
            raise
        return f"there is no stream {stream!r}"
    if group in groups:
        return ""
    others = ", ".join(map(repr, groups)) or "none"
    return f"{stream!r} has no such group; its groups: {others}"


def groups_of(ask: Ask, stream: str) -> dict[str, dict[str, Any]]:
    """Return what XINFO GROUPS says of each group, by name."""
    rows = [as_dict(row) for row in ask("XINFO", "GROUPS", stream)]
    return {str(row["name"]): row for row in rows}


def _left(ask: Ask, stream: str, group: str, row: dict[str, Any]) -> str:
    found = [_pending(ask, stream, group, row["pending"]), _undelivered(ask, stream, row)]
    return ", and ".join(filter(None, found))


def _pending(ask: Ask, stream: str, group: str, number: int) -> str:
    if not number:
        return ""
    rows = ask("XPENDING", stream, group, "-", "+", SHOWN)
    shown = [f"{row[0]} ({row[1]}, delivered {_times(row[3])}, {_age(row[2])} ago)" for row in rows]
    return f"{_entries(number)} pending: {_list(shown, number)}"


def _undelivered(ask: Ask, stream: str, row: dict[str, Any]) -> str:
    lag = row["lag"]
    if lag is None:  # Entries were deleted, so the server does not know it.
        after = f"({row['last-delivered-id']}"
        return "some entries not delivered" if ask("XRANGE", stream, after, "+", "COUNT", 1) else ""
    return f"{_entries(lag)} not delivered" if lag else ""


def _busy_groups(ask: Ask) -> str:
    numbers = map(int, re.findall(r"^db(\d+):", ask("INFO", "keyspace"), re.MULTILINE))
    found = [
        f"{group!r} of {stream!r} in database {db}: {left}"
        for db, ask_in in ((db, partial(ask, db=db)) for db in numbers)
        for stream in all_keys(ask_in, "TYPE", "stream")
        for group in groups_of(ask_in, stream)
        if (left := unfinished(ask_in, stream, group))
    ]
    return "; ".join(found[:SHOWN]) + ("; ..." if len(found) > SHOWN else "")


def all_keys(ask: Ask, *options: str) -> list[str]:
    """Return all keys of a database, or those that SCAN finds with these options."""
    found, cursor = list[str](), "0"
    while True:
        cursor, keys = ask("SCAN", cursor, "COUNT", 1000, *options)
        found += keys
        if cursor == "0":
            return found


def assert_delivered_once(ask: Ask, stream: str, group: str) -> None:
    """Raises :class:`AssertionError` unless the group was given each entry, and only once;
    :class:`PenstockError` if there is no such stream or group."""
    if missing := _missing(ask, stream, group):
        raise PenstockError(missing)
    if wrong := ", ".join(_wrong(ask, stream, group)):
        raise AssertionError(f"not delivered once to the group {group!r} of {stream!r}: {wrong}")


def _wrong(ask: Ask, stream: str, group: str) -> list[str]:
    """Return what speaks against it: counts, and the entries among those that are pending."""
    counts = as_dict(ask("DEBUG", "GROUP", stream, group))
    added = as_dict(ask("XINFO", "STREAM", stream))["entries-added"]
    lag = groups_of(ask, stream)[group]["lag"]
    told = [f"{counts[name]} {name}" for name in ("redelivered", "claimed") if counts[name]]
    if counts["delivered"] > added:
        told.append(f"{counts['delivered']} delivered, but only {added} added")
    if not counts["delivered"]:
        told.append("nothing was delivered")
    elif lag:
        told.append(f"{lag} not delivered")
    return told and [*told, *_again(ask, stream, group)]


def _again(ask: Ask, stream: str, group: str) -> list[str]:
    """The pending entries that were delivered more than once."""
    rows = [row for row in ask("XPENDING", stream, group, "-", "+", 1000) if row[3] != 1]
    return [f"{row[0]} delivered {row[3]} times, now to {row[1]}" for row in rows[:SHOWN]]


# --- readers ----------------------------------------------------------------------------------


def readers_there(ask: Ask) -> tuple[int, str]:
    """Return how many clients wait for entries; who they are, and what others did last."""
    clients = [
        dict(re.findall(r"(\S+)=(\S*)", line)) for line in ask("CLIENT", "LIST").splitlines()
    ]
    own = str(ask("CLIENT", "ID"))
    waiting = [client for client in clients if _is_reading(client)]
    others = [client for client in clients if client not in waiting and client["id"] != own]
    readers = _list([_called(client) for client in waiting], len(waiting)) or "none"
    rest = [f"{_called(client)} (last command: {client['cmd']})" for client in others]
    told = f"{len(waiting)} there: {readers}; other clients: {_list(rest, len(rest)) or 'none'}"
    return len(waiting), told


def _other_readers(ask: Ask, number: int) -> str:
    """Return who reads, if that is not this number of clients."""
    there, told = readers_there(ask)
    return "" if there == number else told


def _is_reading(client: dict[str, str]) -> bool:
    return "b" in client["flags"] and client["cmd"] in ("xread", "xreadgroup")


def _called(client: dict[str, str]) -> str:
    return client["name"] or f"client {client['id']}"


# --- words ------------------------------------------------------------------------------------


def _list(shown: list[str], number: int) -> str:
    more = number - min(number, SHOWN)
    return ", ".join(shown[:SHOWN]) + (f" and {more} more" if more else "")


def _entries(number: int) -> str:
    return "1 entry is" if number == 1 else f"{number} entries are"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _age(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:,g} s"
