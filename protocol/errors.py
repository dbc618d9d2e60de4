"""Hold the error texts that several rooms share; those of one room are in its ``errors.py``.

They are those of Redis 8 where Redis has one: clients match on them. An error reply is the text
behind a minus sign; its first word is the error's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final


class CommandError(Exception):
    """A command failed; the client is answered with ``text`` and nothing has changed.

    ``counted`` tells that the error is in the statistics already.
    """

    def __init__(self, text: str, *, counted: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.counted = counted


def shown(data: bytes) -> str:
    """Bytes as they stand in an error text (every byte survives the way back to the wire)."""
    return data.decode("utf-8", "surrogateescape")


def until_nul(data: bytes) -> bytes:
    """Return what error texts show of a name: what is before its first NUL byte."""
    return data.split(b"\0", 1)[0]


def shown_name(data: bytes) -> str:
    """A key's or group's name as it stands in an error text: up to its first NUL byte."""
    return shown(until_nul(data))


# --- shared by many commands -----------------------------------------------------------------

WRONG_TYPE: Final = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_AN_INTEGER: Final = "ERR value is not an integer or out of range"
NOT_A_FLOAT: Final = "ERR value is not a valid float"
OUT_OF_RANGE: Final = "ERR value is out of range"
MUST_BE_POSITIVE: Final = "ERR value is out of range, must be positive"
SYNTAX: Final = "ERR syntax error"
NO_SUCH_KEY: Final = "ERR no such key"
BUSY_KEY: Final = "BUSYKEY Target key name already exists."
TIMEOUT_NOT_INTEGER: Final = "ERR timeout is not an integer or out of range"
TIMEOUT_NEGATIVE: Final = "ERR timeout is negative"
TIMEOUT_OUT_OF_RANGE: Final = "ERR timeout is out of range"


def out_of_bounds(low: int, high: int) -> str:
    """An integer argument is not within the bounds that its command sets."""
    return f"ERR value is out of range, value must between {low} and {high}"


def wrong_arity(name: str) -> str:
    """For ``name`` in lower case, subcommands as ``xgroup|create``."""
    return f"ERR wrong number of arguments for '{name}' command"


def unknown_command(name: bytes, arguments: Sequence[bytes]) -> str:
    """The name cut at 128 bytes, then arguments until about 128 bytes are used."""
    listed = b""
    for argument in arguments:
        if len(listed) >= 128:
            break
        listed += b"'%b' " % until_nul(argument)[: 128 - len(listed)]
    name = until_nul(name)[:128]
    return f"ERR unknown command '{shown(name)}', with args beginning with: {shown(listed)}"


def unknown_subcommand(container: str, name: bytes) -> str:
    """For a container command's first argument that names none of its subcommands."""
    return f"ERR unknown subcommand '{shown_name(name[:128])}'. Try {container.upper()} HELP."


def bad_subcommand(container: str, name: bytes) -> str:
    """For a subcommand that exists, called in a shape it does not have."""
    return (
        f"ERR unknown subcommand or wrong number of arguments for '{shown_name(name[:128])}'."
        f" Try {container.upper()} HELP."
    )


# --- protocol errors: sent, then the connection is closed ------------------------------------

INVALID_MULTIBULK_LENGTH: Final = "ERR Protocol error: invalid multibulk length"
INVALID_BULK_LENGTH: Final = "ERR Protocol error: invalid bulk length"
TOO_BIG_COUNT: Final = "ERR Protocol error: too big mbulk count string"
TOO_BIG_BULK_COUNT: Final = "ERR Protocol error: too big bulk count string"
TOO_BIG_INLINE: Final = "ERR Protocol error: too big inline request"
UNBALANCED_QUOTES: Final = "ERR Protocol error: unbalanced quotes in request"
UNAUTHENTICATED_MULTIBULK_LENGTH: Final = "ERR Protocol error: unauthenticated multibulk length"
UNAUTHENTICATED_BULK_LENGTH: Final = "ERR Protocol error: unauthenticated bulk length"


def expected_dollar(got: bytes) -> str:
    """``got`` is the byte that stood where a bulk string's ``$`` should."""
    return f"ERR Protocol error: expected '$', got '{shown(got)}'"


# --- streams ---------------------------------------------------------------------------------

INVALID_STREAM_ID: Final = "ERR Invalid stream ID specified as stream command argument"
INVALID_START: Final = "ERR invalid start ID for the interval"
INVALID_END: Final = "ERR invalid end ID for the interval"
XADD_ID_TOO_SMALL: Final = (
    "ERR The ID specified in XADD is equal or smaller than the target stream top item"
)
STREAM_EXHAUSTED: Final = (
    "ERR The stream has exhausted the last possible ID, unable to add more items"
)
ENTRY_TOO_LARGE: Final = "ERR Elements are too large to be stored"
IDMP_DIFFERENT_ENTRY: Final = (
    "ERR The specified IDMP producer-id/idempotent-id pair maps to a different stream ID"
)

# --- consumer groups -------------------------------------------------------------------------

GROUP_NEEDS_KEY: Final = (
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use"
    " the MKSTREAM option to create an empty stream automatically."
)


def no_group(key: bytes, group: bytes) -> str:
    """A command that needs the key and the group lacks one of them."""
    return f"NOGROUP No such key '{shown_name(key)}' or consumer group '{shown_name(group)}'"


def no_group_in_xreadgroup(key: bytes, group: bytes) -> str:
    """Return the error for a group that XREADGROUP does not find, or that is gone meanwhile."""
    return no_group(key, group) + " in XREADGROUP with GROUP option"


def no_group_for_key(group: bytes, key: bytes) -> str:
    """XGROUP and XINFO, of a key that exists."""
    return f"NOGROUP No such consumer group '{shown_name(group)}' for key name '{shown_name(key)}'"


# --- transactions and connections ------------------------------------------------------------

NOT_INSIDE_MULTI: Final = "ERR Command not allowed inside a transaction"
NO_AUTHENTICATION: Final = "NOAUTH Authentication required."
TOO_MANY_CLIENTS: Final = "ERR max number of clients reached"
PROTECTED_MODE: Final = (
    "DENIED Redis is running in protected mode because protected mode is enabled and no password is"
    " set for the default user. In this mode connections are only accepted from the loopback"
    " interface. If you want to connect from external computers to Redis you may adopt one of the"
    " following solutions: 1) Just disable protected mode sending the command 'CONFIG SET"
    " protected-mode no' from the loopback interface by connecting to Redis from the same host the"
    " server is running, however MAKE SURE Redis is not publicly accessible from internet if you do"
    " so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable"
    " the protected mode by editing the Redis configuration file, and setting the protected mode"
    " option to 'no', and then restarting the server. 3) If you started the server manually just"
    " for testing, restart it with the '--protected-mode no' option. 4) Set up an authentication"
    " password for the default user. NOTE: You only need to do one of the above things in order for"
    " the server to start accepting connections from the outside."
)
SCRIPT_UNKNOWN_COMMAND: Final = "ERR Unknown Redis command called from script"
SCRIPT_WRONG_ARITY: Final = "ERR Wrong number of args calling Redis command from script"
SCRIPT_NOT_ALLOWED: Final = "ERR This Redis command is not allowed from script"
SCRIPT_READ_ONLY: Final = "ERR Write commands are not allowed from read-only scripts."
TOO_FEW_REPLICAS: Final = "NOREPLICAS Not enough good replicas to write."
OUT_OF_MEMORY: Final = "OOM command not allowed when used memory > 'maxmemory'."


def exec_aborted_by(text: str) -> str:
    """EXEC itself was refused with ``text`` (without its code if that is ``ERR``)."""
    return f"EXECABORT Transaction discarded because of: {text.removeprefix('ERR ')}"


def only_subscriptions(name: str) -> str:
    """A RESP2 client with subscriptions sent another command."""
    return (
        f"ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
        " are allowed in this context"
    )


# --- clients ---------------------------------------------------------------------------------

WRONG_PASSWORD: Final = "WRONGPASS invalid username-password pair or user is disabled."
DB_OUT_OF_RANGE: Final = "ERR DB index is out of range"
MONITORS_ONLY: Final = "ERR Replica can't interact with the keyspace"


# --- the server and its commands -------------------------------------------------------------

LOADING: Final = "LOADING Redis is loading the dataset in memory"
SAVE_POINT_FAILED: Final = (
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to"
    " disk. Commands that may modify the data set are disabled, because this instance is"
    " configured to report errors during writes if RDB snapshotting fails"
    " (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB"
    " error."
)
BAD_PROTOCOL_TYPE: Final = (
    "ERR Wrong protocol type name. Please use one of the following:"
    " string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
)
LOAD_FAILED: Final = "ERR Error trying to load the AOF files, check server logs."
DEBUG_NOT_ALLOWED: Final = (
    'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local",'
    " you can run it from a local connection, otherwise you need to set this option in the"
    " configuration file, and then restart the server."
)

# --- scripts ---------------------------------------------------------------------------------

BUSY: Final = (
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
)


# --- keys, strings and expiry ----------------------------------------------------------------


def invalid_expire_time(command: str) -> str:
    """A time to live that is not positive where it must be, or an expiry beyond 64 bits."""
    return f"ERR invalid expire time in '{command}' command"


def disk_error(reason: str) -> str:
    """A command that writes, while the append-only file cannot be written to."""
    return f"MISCONF Errors writing to the AOF file: {reason}"


def save_failed(reason: str) -> str:
    """SAVE, BGSAVE or BGREWRITEAOF could not be done."""
    return f"ERR The data could not be saved: {reason}"
