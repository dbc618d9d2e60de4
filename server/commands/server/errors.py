"""Hold the error texts of the commands for the server itself: those of Redis where it has one."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

# --- configuration ----------------------------------------------------------------------------

CONFIG_IMMUTABLE: Final = "can't set immutable config"
CONFIG_PROTECTED: Final = "can't set protected config"
CONFIG_TWICE: Final = "duplicate parameter"
CONFIG_NO_FILE: Final = "ERR The server is running without a config file"


def unknown_setting(name: bytes) -> str:
    """CONFIG SET of a setting that does not exist."""
    return f"ERR Unknown option or number of arguments for CONFIG SET - '{shown_name(name)}'"


def bad_setting(name: str, reason: str) -> str:
    """CONFIG SET of a setting that cannot have the value."""
    return f"ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"


def config_not_written(reason: str) -> str:
    """CONFIG REWRITE could not write the file."""
    return f"ERR Rewriting config file: {reason}"


# --- clients ----------------------------------------------------------------------------------

MONITOR_NOT_HERE: Final = "ERR MONITOR isn't allowed for DENY BLOCKING client"
SLOWLOG_COUNT: Final = "ERR count should be greater than or equal to -1"


# --- the server and its commands --------------------------------------------------------------

GETKEYS_UNKNOWN_COMMAND: Final = "ERR Invalid command specified"
GETKEYS_WRONG_ARITY: Final = "ERR Invalid number of arguments specified for command"
GETKEYS_NO_KEYS: Final = "ERR The command has no key arguments"
GETKEYS_NOT_EXTRACTABLE: Final = "ERR Invalid arguments specified for command"
SHUTDOWN_FAILED: Final = "ERR Errors trying to SHUTDOWN. Check logs."
SAVE_IN_PROGRESS: Final = "ERR Background save already in progress"
REWRITE_IN_PROGRESS: Final = "ERR Background append only file rewriting already in progress"
OTHER_CHILD: Final = (
    "ERR Another child process is active (AOF?): can't BGSAVE right now."
    " Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."
)
NO_SHUTDOWN: Final = "ERR No shutdown in progress."
CLUSTER_DISABLED: Final = "ERR This instance has cluster support disabled"
