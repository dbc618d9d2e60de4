"""DEBUG FAULT: what shall happen to the commands of clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from protocol.errors import CommandError, shown
from protocol.replies import OK, Bulk, Map, Reply
from server.commands.testing.debug_workers import LONGEST_MS, held, rest
from server.commands.testing.subcommands import (
    Handler,
    RequestWords,
    require_serving,
    subcommand,
    unknown,
)
from server.core.outcomes import Outcome
from server.core.table import Arguments, Command, Table, find_by_name, subcommands
from server.faults import errors as fault_errors
from server.faults import rules
from server.faults.disk import ERROR, FULL, SLOW
from server.faults.rules import READY_NAMES, Action, Conditions, FaultRule
from server.runtime.arguments import INT64_MAX, integer_between
from server.services import Services
from server.state.session import Session

SLOW_MS: Final = 1000
"""How much longer a sync takes, unless it is said."""
MOST_BYTES: Final = 2**31 - 1
ANY: Final = b"*"
"""In place of a command: any of them."""

_OPTIONS: Final = ("KEY", "CLIENT", "USER", "AFTER", "TIMES", "PROBABILITY", "SEED")
_WITH_NUMBER: Final = {rules.DELAY: LONGEST_MS, rules.CUT: MOST_BYTES}
_ALONE: Final = (rules.CLOSE, rules.RESET, rules.DROP, rules.NO_REPLY, rules.HOLD)
_ACTIONS: Final = (
    f"{rules.ERROR} text, {rules.DELAY} ms, {rules.CLOSE}, {rules.RESET},"
    f" {rules.CUT} bytes, {rules.DROP}, {rules.NO_REPLY}, {rules.HOLD},"
    f" {', '.join(READY_NAMES)}"
)
_NUMBER: Final = re.compile(rb"\d+\.?\d*(?:[eE]-?\d+)?|\.\d+(?:[eE]-?\d+)?")


# --- ADD -------------------------------------------------------------------------------------


def _probability(words: RequestWords) -> float:
    text = words.value("PROBABILITY")
    value = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 0 < value <= 1:
        raise CommandError(fault_errors.BAD_PROBABILITY)
    return value


_READERS: Final[dict[str, Callable[[RequestWords], Any]]] = {
    "KEY": lambda words: words.value("KEY"),
    "CLIENT": lambda words: words.value("CLIENT"),
    "USER": lambda words: words.value("USER"),
    "AFTER": lambda words: words.number("AFTER", 0, INT64_MAX),
    "TIMES": lambda words: words.number("TIMES", 1, INT64_MAX),
    "PROBABILITY": _probability,
    "SEED": lambda words: words.number("SEED", 0, INT64_MAX),
}
"""How the value of each option is read."""


def parse_fault(table: Table, words: Arguments) -> tuple[Conditions, Action]:
    """Parse the words behind ADD. Raises :class:`CommandError`."""
    rest = RequestWords(words[1:])
    command = _command(table, words[0])
    options: dict[str, Any] = {}
    while True:
        word = rest.next()
        if word is None:
            raise CommandError(fault_errors.action_missing(_ACTIONS))
        name = shown(word).upper()
        if name not in _READERS:
            break
        if name in options:
            raise CommandError(fault_errors.given_twice(name))
        options[name] = _READERS[name](rest)
    action = _last_action(name, word, rest)
    _require_fitting(command, "KEY" in options, action)
    given = {option.lower(): value for option, value in options.items()}
    return Conditions(None if command is None else command.fullname, **given), action


def _command(table: Table, name: bytes) -> Command | None:
    """The command of a fault; ``None`` for any."""
    if name == ANY:
        return None
    found = find_by_name(table, name)
    if found is None:
        raise CommandError(fault_errors.no_such_command(name))
    if found.name == "debug":
        raise CommandError(fault_errors.DEBUG_IS_SPARED)
    return found


def _last_action(name: str, word: bytes, rest: RequestWords) -> Action:
    """The action, behind which nothing may follow."""
    action = _action(name, word, rest)
    surplus = rest.next()
    if surplus is not None:
        raise CommandError(fault_errors.behind_action(surplus))
    return action


def _action(name: str, word: bytes, rest: RequestWords) -> Action:
    if name in READY_NAMES:
        return Action(rules.READY, name)
    if name in _ALONE:
        return Action(name)
    if name in _WITH_NUMBER:
        return Action(name, number=rest.number(name, 0, _WITH_NUMBER[name]))
    if name == rules.ERROR:
        text = shown(rest.value(name))
        if not text.strip():
            raise CommandError(fault_errors.EMPTY_ERROR)
        return Action(name, text)
    raise CommandError(fault_errors.unknown_word(word, ", ".join(_OPTIONS), _ACTIONS))


def _require_fitting(command: Command | None, by_key: bool, action: Action) -> None:
    """Refuses a fault that could never strike."""
    if command is None:
        return
    every = subcommands(command) or [command]
    with_keys = any(map(rules.has_keys, every))
    for word in ("KEY", "MOVED"):
        if (by_key if word == "KEY" else action.text == word) and not with_keys:
            raise CommandError(fault_errors.needs_key(word, command.fullname))
    if action == Action(rules.READY, "NOGROUP") and not any(map(rules.names_group, every)):
        raise CommandError(fault_errors.needs_group(command.fullname))


# --- the subcommand --------------------------------------------------------------------------


def _add(server: Services, session: Session, args: Arguments) -> Reply:
    if len(args) < 4:
        raise unknown(args)
    conditions, action = parse_fault(server.state.table, args[3:])
    return server.interception.add(args[3:], conditions, action)


def _list(server: Services, session: Session, args: Arguments) -> Reply:
    if len(args) > 3:
        raise unknown(args)
    return [_described(fault) for fault in server.interception.rules.faults]


def _described(fault: FaultRule) -> Reply:
    words: list[Reply] = [Bulk(word) for word in fault.words]
    return Map(
        [("id", fault.id), ("words", words), ("matched", fault.matched), ("struck", fault.struck)]
    )


def _clear(server: Services, session: Session, args: Arguments) -> Reply:
    if len(args) > 4:
        raise unknown(args)
    identity = integer_between(args[3], 0, INT64_MAX) if len(args) == 4 else None
    return server.interception.clear(identity)


def _release(server: Services, session: Session, args: Arguments) -> Reply:
    if len(args) < 4:
        raise unknown(args)
    identity, words = integer_between(args[3], 0, INT64_MAX), RequestWords(args[4:])
    word = words.next()
    action = None if word is None else _last_action(shown(word).upper(), word, words)
    if action == Action(rules.HOLD):
        raise CommandError(fault_errors.HELD_ALREADY)
    client, holds = server.state.sessions.get(identity), server.interception.holds
    if client is None or client not in holds.held:
        return 0
    if action is not None:
        _require_fitting(holds.held[client].command, False, action)
    holds.release(client, action)
    return 1


# --- faults of the whole server ----------------------------------------------------------------


def _duration(args: Arguments) -> int:
    """How long it lasts, in milliseconds. Raises :class:`CommandError`."""
    if len(args) != 4:
        raise unknown(args)
    return RequestWords(args[3:]).number(shown(args[2]).upper(), 0, LONGEST_MS)


def _fail_over(server: Services, session: Session, args: Arguments) -> Reply:
    ms = _duration(args)
    require_serving(server, session)
    server.interception.outages.fail_over(session, ms)
    return OK


def _freeze(server: Services, session: Session, args: Arguments) -> Reply:
    ms = _duration(args)
    require_serving(server, session)
    server.interception.outages.freeze(ms)
    return OK


def _spoil_disk(server: Services, session: Session, args: Arguments) -> Reply:
    disk = server.interception.disk
    if disk is None:
        raise CommandError(fault_errors.NO_FAULTY_DISK)
    if len(args) < 4:
        raise unknown(args)
    way = shown(args[3]).upper()
    if way == SLOW and len(args) == 5:
        disk.begin(way, RequestWords(args[4:]).number(way, 0, LONGEST_MS))
    elif len(args) > 4 or way not in (FULL, SLOW, ERROR, "OK"):
        raise CommandError(fault_errors.BAD_DISK_FAULT)
    elif way == "OK":
        disk.end()
    else:
        disk.begin(way, SLOW_MS)
    return OK


_WAYS: Final[dict[bytes, Handler]] = {
    b"ADD": _add,
    b"LIST": _list,
    b"CLEAR": _clear,
    b"HELD": held,
    b"RELEASE": _release,
    b"REST": rest,
    b"FAILOVER": _fail_over,
    b"FREEZE": _freeze,
    b"DISK": _spoil_disk,
}


@subcommand(
    (
        "FAULT ADD <command|*> [KEY <pattern>] [CLIENT <name-pattern>] [USER <pattern>]"
        " [AFTER <n>] [TIMES <n>] [PROBABILITY <p>] [SEED <s>] <action>",
        "Lets it happen to commands that clients send. Actions: ERROR <text>, DELAY <ms>,"
        f" CLOSE, RESET, CUT <bytes>, DROP, NOREPLY, HOLD, {', '.join(READY_NAMES)}.",
    ),
    ("FAULT LIST", "Lists the faults, with how often each has matched and struck."),
    ("FAULT CLEAR [<id>]", "Removes a fault, or ends all of them; tells how many."),
    ("FAULT HELD", "Lists the clients whose commands are held."),
    (
        "FAULT RELEASE <client-id> [<action>]",
        "Lets a held command run, or an action happen to it; tells whether there was one.",
    ),
    (
        "FAULT REST <name-pattern|USER <pattern>> [...] [UNTIL <state[,state...]>] [TIMEOUT <ms>]",
        "Answers what workers do as soon as each is in one of the states: held, parked or gone"
        " unless it is said.",
    ),
    (
        "FAULT FAILOVER <milliseconds>",
        "Ends waits and refuses writes as a replica for so long; then others lose their"
        " connections.",
    ),
    ("FAULT FREEZE <milliseconds>", "Answers nobody for so long, but DEBUG."),
    (
        "FAULT DISK <full|slow [<milliseconds>]|error|ok>",
        "Lets the append-only file fail, or take long to be synced; ok ends it.",
    ),
    syntax="FAULT <ADD command [KEY pattern] [CLIENT name-pattern] [USER user-pattern]"
    " [AFTER count] [TIMES count] [PROBABILITY probability] [SEED seed] <ERROR text"
    " | DELAY milliseconds | CLOSE | RESET | CUT bytes | DROP | NOREPLY | HOLD"
    f" | {' | '.join(READY_NAMES)}> | LIST | CLEAR [id] | HELD | RELEASE client-id [action]"
    " | REST name-pattern [name-pattern ...] [UNTIL states] [TIMEOUT milliseconds]"
    " | FAILOVER milliseconds | FREEZE milliseconds"
    " | DISK <FULL | SLOW [milliseconds] | ERROR | OK>>",
    counts=range(1, 1024),
)
def fault(server: Services, session: Session, args: Arguments) -> Outcome:
    """Adds, lists or clears faults, or lets one befall the whole server."""
    way = _WAYS.get(args[2].upper())
    if way is None:
        raise unknown(args)
    return way(server, session, args)
