"""Hold the error texts of DEBUG FAULT, RESET and SNAPSHOT, and those that faults answer with."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

READ_ONLY: Final = "READONLY You can't write against a read only replica."
MASTER_DOWN: Final = (
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
)
FORCE_UNBLOCKED: Final = (
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)
DEBUG_IS_SPARED: Final = "ERR DEBUG FAULT: no fault strikes DEBUG, or nobody could clear it"
NO_FAULTY_DISK: Final = "ERR DEBUG FAULT: the disk of this server has no faults"
BAD_DISK_FAULT: Final = "ERR DEBUG FAULT: DISK takes full, slow [milliseconds], error or ok"
EMPTY_ERROR: Final = "ERR DEBUG FAULT: ERROR needs a text, such as 'ERR try again'"
HELD_ALREADY: Final = "ERR DEBUG FAULT: RELEASE takes any action but HOLD"
BAD_RESTORE: Final = "ERR DEBUG SNAPSHOT: RESTORE takes a name, then [CLOCK] [FLUSHSCRIPTS]"
BAD_PORT_NAME: Final = (
    "ERR DEBUG PORT: a name has one or more characters, and no blanks, newlines or special ones"
)
BAD_PROBABILITY: Final = "ERR DEBUG FAULT: PROBABILITY takes a number above 0 and up to 1"


def no_such_snapshot(name: bytes) -> str:
    """DEBUG SNAPSHOT RESTORE of a name that nothing was kept under."""
    return f"ERR DEBUG SNAPSHOT: there is no snapshot '{shown_name(name[:128])}'"


def port_is_open(name: bytes) -> str:
    """DEBUG PORT OPEN of a name that is in use."""
    return f"ERR DEBUG PORT: '{shown_name(name[:128])}' is open already"


def no_port(reason: str) -> str:
    """The system has no port for DEBUG PORT OPEN."""
    return f"ERR DEBUG PORT: no port can be opened: {reason}"


def bad_rest(states: str) -> str:
    """DEBUG FAULT REST has no pattern, or is to wait for a state that there is not."""
    return (
        "ERR DEBUG FAULT: REST takes one or more of <name-pattern | USER pattern>,"
        f" then [UNTIL state[,state...]] of {states}, and [TIMEOUT milliseconds]"
    )


def not_put_back(name: str, reason: str) -> str:
    """DEBUG RESET cannot give a setting the value that it had at the start."""
    return f"ERR DEBUG RESET: the setting {name} cannot be put back: {reason}"


def moved(slot: int, address: str) -> str:
    """The key's hash slot is served by the node at this address."""
    return f"MOVED {slot} {address}"


def no_such_command(name: bytes) -> str:
    """A fault is to strike a command that there is not."""
    return f"ERR DEBUG FAULT: there is no command '{shown_name(name[:128])}'"


def unknown_word(word: bytes, options: str, actions: str) -> str:
    """A word that is neither an option of a fault nor what it does."""
    return (
        f"ERR DEBUG FAULT: '{shown_name(word[:128])}' is neither an option ({options})"
        f" nor an action ({actions})"
    )


def action_missing(actions: str) -> str:
    """Return the error where it is not said what a fault does."""
    return f"ERR DEBUG FAULT: the action is missing: one of {actions}"


def value_missing(word: str) -> str:
    """Return the error where an option or an action needs a value and has none."""
    return f"ERR DEBUG FAULT: {word} needs a value"


def given_twice(word: str) -> str:
    """An option of a fault that was there before."""
    return f"ERR DEBUG FAULT: {word} is given twice"


def behind_action(word: bytes) -> str:
    """The action of a fault is not the end."""
    return f"ERR DEBUG FAULT: the action comes last, but '{shown_name(word[:128])}' follows it"


def bad_number(word: str, low: int, high: int) -> str:
    """The value of an option or an action is no integer, or not within its bounds."""
    return f"ERR DEBUG FAULT: {word} takes an integer from {low} to {high}"


def needs_key(word: str, command: str) -> str:
    """A fault that depends on a key is to strike a command that has none."""
    return f"ERR DEBUG FAULT: {word} needs a command with a key, which '{command}' has not"


def needs_group(command: str) -> str:
    """NOGROUP is to strike a command that names no consumer group."""
    return f"ERR DEBUG FAULT: NOGROUP needs a command with a group, which '{command}' has not"
