# Compiled by mypyc.
"""The error texts of the server, but for those of families that have a file beside this one.

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
    """What error texts show of a name: what is before its first NUL byte."""
    return data.split(b"\0", 1)[0]


def shown_name(data: bytes) -> str:
    """A key's or group's name as it stands in an error text: up to its first NUL byte."""
    return shown(until_nul(data))


# --- shared by many commands -----------------------------------------------------------------

WRONG_TYPE: Final = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_AN_INTEGER: Final = "ERR value is not an integer or out of range"
NOT_A_FLOAT: Final = "ERR value is not a valid float"
MUST_BE_POSITIVE: Final = "ERR value is out of range, must be positive"
SYNTAX: Final = "ERR syntax error"
NO_SUCH_KEY: Final = "ERR no such key"
BUSY_KEY: Final = "BUSYKEY Target key name already exists."
WRONG_PAYLOAD: Final = "ERR DUMP payload version or checksum are wrong"
DAMAGED_PAYLOAD: Final = "ERR Bad data format"
NEGATIVE_TTL: Final = "ERR Invalid TTL value, must be >= 0"
NEGATIVE_IDLETIME: Final = "ERR Invalid IDLETIME value, must be >= 0"
FREQUENCY_OUT_OF_RANGE: Final = "ERR Invalid FREQ value, must be >= 0 and <= 255"
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
TRIM_STRATEGY_TWICE: Final = (
    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
)
TRIM_STRATEGY_MISSING: Final = "ERR syntax error, XTRIM must be called with a trimming strategy"
MAXLEN_NEGATIVE: Final = "ERR The MAXLEN argument must be >= 0."
LIMIT_NEGATIVE: Final = "ERR The LIMIT argument must be >= 0."
LIMIT_WITHOUT_STRATEGY: Final = (
    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
)
LIMIT_WITHOUT_TILDE: Final = "ERR syntax error, LIMIT cannot be used without the special ~ option"
XADD_ID_ZERO: Final = "ERR The ID specified in XADD must be greater than 0-0"
XADD_ID_TOO_SMALL: Final = (
    "ERR The ID specified in XADD is equal or smaller than the target stream top item"
)
STREAM_EXHAUSTED: Final = (
    "ERR The stream has exhausted the last possible ID, unable to add more items"
)
ENTRY_TOO_LARGE: Final = "ERR Elements are too large to be stored"
IDMP_NEEDS_AUTO_ID: Final = "ERR IDMP/IDMPAUTO can be used only with auto-generated IDs"
IDMP_TWICE: Final = "ERR IDMP/IDMPAUTO specified multiple times"
IDMP_EMPTY_PRODUCER: Final = "ERR IDMP requires a non-empty producer ID"
IDMP_EMPTY_ID: Final = "ERR IDMP requires a non-empty idempotent ID"
IDMPAUTO_EMPTY_PRODUCER: Final = "ERR IDMPAUTO requires a non-empty producer ID"
IDMP_DIFFERENT_ENTRY: Final = (
    "ERR The specified IDMP producer-id/idempotent-id pair maps to a different stream ID"
)
IDMP_NO_ENTRY: Final = "ERR The specified stream ID does not exist in the stream"
XIDMPRECORD_EMPTY_PRODUCER: Final = "ERR XIDMPRECORD requires a non-empty producer ID"
XIDMPRECORD_EMPTY_ID: Final = "ERR XIDMPRECORD requires a non-empty idempotent ID"
XCFGSET_NOTHING: Final = "ERR At least one parameter must be specified"
IDMP_DURATION_RANGE: Final = "ERR IDMP-DURATION must be between 1 and 86400 seconds"
IDMP_MAXSIZE_RANGE: Final = "ERR IDMP-MAXSIZE must be between 1 and 10000 entries"
NUMIDS_NOT_POSITIVE: Final = "ERR Number of IDs must be a positive integer"
NUMIDS_MISMATCH: Final = "ERR The `numids` parameter must match the number of arguments"
ENTRIES_ADDED_NEGATIVE: Final = "ERR entries_added must be positive"
XSETID_BELOW_GIVEN_DELETED: Final = (
    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
)
XSETID_BELOW_DELETED: Final = (
    "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
)
XSETID_BELOW_TOP: Final = (
    "ERR The ID specified in XSETID is smaller than the target stream top item"
)
XSETID_ADDED_BELOW_LENGTH: Final = (
    "ERR The entries_added specified in XSETID is smaller than the target stream length"
)

# --- reading streams -------------------------------------------------------------------------

NEW_ID_OUTSIDE_GROUP: Final = (
    "ERR The > ID can be specified only when calling XREADGROUP using the"
    " GROUP <group> <consumer> option."
)
GROUP_MISSING: Final = "ERR Missing GROUP option for XREADGROUP"
CLAIM_NOT_INTEGER: Final = "ERR min-idle-time is not an integer"
CLAIM_NEGATIVE: Final = "ERR min-idle-time must be a positive integer"
MAXCOUNT_NOT_POSITIVE: Final = "ERR MAXCOUNT must be a positive integer"
MAXCOUNT_BELOW_COUNT: Final = "ERR MAXCOUNT must be greater than or equal to COUNT"
MAXSIZE_NOT_POSITIVE: Final = "ERR MAXSIZE must be a positive integer"
CLIENT_UNBLOCKED: Final = "UNBLOCKED client unblocked via CLIENT UNBLOCK"


def group_only_option(option: str) -> str:
    """XREAD was given an option of XREADGROUP."""
    return f"ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."


def unbalanced(command: str, special: str) -> str:
    """The keys and IDs of ``command`` do not pair up; ``special`` lists its special IDs."""
    return (
        f"ERR Unbalanced '{command}' list of streams: for each stream key an ID{special}"
        " must be specified."
    )


def meaningless_id(special: str) -> str:
    """XREADGROUP was given ``$`` or ``+``."""
    return (
        f"ERR The {special} ID is meaningless in the context of XREADGROUP: you want to read the"
        " history of this consumer by specifying a proper ID, or use the > ID to get new messages."
        f" The {special} ID would just return an empty result set."
    )


# --- consumer groups -------------------------------------------------------------------------

GROUP_EXISTS: Final = "BUSYGROUP Consumer Group name already exists"
GROUP_NEEDS_KEY: Final = (
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use"
    " the MKSTREAM option to create an empty stream automatically."
)
ENTRIESREAD_NEGATIVE: Final = "ERR value for ENTRIESREAD must be positive or -1"
COUNT_NOT_POSITIVE: Final = "ERR COUNT must be > 0"
NACK_MODE: Final = "ERR mode must be SILENT, FAIL, or FATAL"
NACK_NO_IDS: Final = "ERR syntax error, expected IDS keyword"
NACK_NUMIDS_NOT_POSITIVE: Final = "ERR numids must be a positive integer"
NACK_NUMIDS_MISMATCH: Final = "ERR number of IDs doesn't match numids"
NACK_RETRYCOUNT_NEGATIVE: Final = "ERR Invalid RETRYCOUNT value, must be >= 0"


def no_group(key: bytes, group: bytes) -> str:
    """A command that needs the key and the group lacks one of them."""
    return f"NOGROUP No such key '{shown_name(key)}' or consumer group '{shown_name(group)}'"


def no_group_in_xreadgroup(key: bytes, group: bytes) -> str:
    """The same for XREADGROUP, parked readers included."""
    return no_group(key, group) + " in XREADGROUP with GROUP option"


def no_group_for_key(group: bytes, key: bytes) -> str:
    """XGROUP and XINFO, of a key that exists."""
    return f"NOGROUP No such consumer group '{shown_name(group)}' for key name '{shown_name(key)}'"


def invalid_min_idle(command: str) -> str:
    """XCLAIM's or XAUTOCLAIM's min-idle-time is no integer."""
    return f"ERR Invalid min-idle-time argument for {command}"


def invalid_claim_option(option: str) -> str:
    """The value of XCLAIM's IDLE, TIME or RETRYCOUNT is no integer."""
    return f"ERR Invalid {option} option argument for XCLAIM"


def unrecognized_option(command: str, option: bytes) -> str:
    """XCLAIM or XNACK met a word that is neither an ID nor an option."""
    return f"ERR Unrecognized {command} option '{shown_name(option)}'"


# --- transactions and connections ------------------------------------------------------------

NESTED_MULTI: Final = "ERR MULTI calls can not be nested"
WATCH_INSIDE_MULTI: Final = "ERR WATCH inside MULTI is not allowed"
EXEC_WITHOUT_MULTI: Final = "ERR EXEC without MULTI"
DISCARD_WITHOUT_MULTI: Final = "ERR DISCARD without MULTI"
EXEC_ABORTED: Final = "EXECABORT Transaction discarded because of previous errors."
SSUBSCRIBE_INSIDE_MULTI: Final = "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"
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


# --- configuration ---------------------------------------------------------------------------

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


# --- clients ---------------------------------------------------------------------------------

NO_PROTOCOL: Final = "NOPROTO unsupported protocol version"
PROTOCOL_NOT_INTEGER: Final = "ERR Protocol version is not an integer or out of range"
BAD_CLIENT_NAME: Final = "ERR Client names cannot contain spaces, newlines or special characters."
HELLO_NEEDS_AUTHENTICATION: Final = (
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto>"
    " AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol"
    " version at the same time"
)
WRONG_PASSWORD: Final = "WRONGPASS invalid username-password pair or user is disabled."
NO_PASSWORD_CONFIGURED: Final = (
    "ERR AUTH <password> called without any password configured for the default user."
    " Are you sure your configuration is correct?"
)
DB_OUT_OF_RANGE: Final = "ERR DB index is out of range"
INVALID_CLIENT_ID: Final = "ERR Invalid client ID"
NO_SUCH_CLIENT: Final = "ERR No such client"
CLIENT_ID_NOT_POSITIVE: Final = "ERR client-id should be greater than 0"
MAXAGE_NOT_INTEGER: Final = "ERR maxage is not an integer or out of range"
MAXAGE_NOT_POSITIVE: Final = "ERR maxage should be greater than 0"
IDLE_NOT_INTEGER: Final = "ERR idle is not an integer or out of range"
IDLE_NOT_POSITIVE: Final = "ERR idle should be greater than 0"
FILTER_DB_NOT_INTEGER: Final = "ERR DB is not an integer or out of range"
PAUSE_MODE: Final = "ERR CLIENT PAUSE mode must be WRITE or ALL"
MONITORS_ONLY: Final = "ERR Replica can't interact with the keyspace"
MONITOR_NOT_HERE: Final = "ERR MONITOR isn't allowed for DENY BLOCKING client"
SLOWLOG_COUNT: Final = "ERR count should be greater than or equal to -1"
UNBLOCK_REASON: Final = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"


def bad_hello_option(option: bytes) -> str:
    """HELLO met a word that is no option, or an option that lacks its values."""
    return f"ERR Syntax error in HELLO option '{shown_name(option)}'"


def bad_client_attribute(option: bytes) -> str:
    """CLIENT SETINFO was given a value that would break CLIENT LIST's line."""
    return f"ERR {shown_name(option)} cannot contain spaces, newlines or special characters."


def unrecognized_attribute(option: bytes) -> str:
    """CLIENT SETINFO was given neither LIB-NAME nor LIB-VER."""
    return f"ERR Unrecognized option '{shown_name(option)}'"


def unknown_client_type(name: bytes) -> str:
    """CLIENT LIST or CLIENT KILL was given a TYPE that does not exist."""
    return f"ERR Unknown client type '{shown_name(name)}'"


def unknown_client_flags(flags: bytes) -> str:
    """CLIENT LIST or CLIENT KILL was given FLAGS of which one does not exist."""
    return f"ERR Unknown flags found in the provided filter: {shown_name(flags)}"


def filter_db_out_of_range(databases: int) -> str:
    """CLIENT LIST or CLIENT KILL was given a DB that does not exist."""
    return f"ERR DB number should be between 0 and {databases - 1}"


def no_samples(event: bytes) -> str:
    """LATENCY GRAPH was given an event of which nothing has been noted."""
    return f"ERR No samples available for event '{shown_name(event)}'"


def no_such_user(name: bytes) -> str:
    """CLIENT KILL was given a USER that does not exist."""
    return f"ERR No such user '{shown_name(name)}'"


# --- the server and its commands -------------------------------------------------------------

GETKEYS_UNKNOWN_COMMAND: Final = "ERR Invalid command specified"
GETKEYS_WRONG_ARITY: Final = "ERR Invalid number of arguments specified for command"
GETKEYS_NO_KEYS: Final = "ERR The command has no key arguments"
GETKEYS_NOT_EXTRACTABLE: Final = "ERR Invalid arguments specified for command"
SHUTDOWN_FAILED: Final = "ERR Errors trying to SHUTDOWN. Check logs."
LOADING: Final = "LOADING Redis is loading the dataset in memory"
SAVE_IN_PROGRESS: Final = "ERR Background save already in progress"
SAVE_POINT_FAILED: Final = (
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to"
    " disk. Commands that may modify the data set are disabled, because this instance is"
    " configured to report errors during writes if RDB snapshotting fails"
    " (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB"
    " error."
)
REWRITE_IN_PROGRESS: Final = "ERR Background append only file rewriting already in progress"
OTHER_CHILD: Final = (
    "ERR Another child process is active (AOF?): can't BGSAVE right now."
    " Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."
)
BAD_PROTOCOL_TYPE: Final = (
    "ERR Wrong protocol type name. Please use one of the following:"
    " string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
)
LOAD_FAILED: Final = "ERR Error trying to load the AOF files, check server logs."
NO_SHUTDOWN: Final = "ERR No shutdown in progress."
DEBUG_NOT_ALLOWED: Final = (
    'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local",'
    " you can run it from a local connection, otherwise you need to set this option in the"
    " configuration file, and then restart the server."
)
WAITAOF_WITHOUT_AOF: Final = (
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
)
CLUSTER_DISABLED: Final = "ERR This instance has cluster support disabled"

# --- functions -------------------------------------------------------------------------------

FUNCTION_FLUSH_MODE: Final = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"
FUNCTION_LIBRARY_MISSING: Final = "ERR library name argument was not given"
FUNCTION_NOT_FOUND: Final = "ERR Function not found"
FUNCTION_BAD_KEYS: Final = "ERR Bad number of keys provided"
FUNCTION_EXISTS_IN_LIBRARY: Final = "ERR Function already exists in the library"
FUNCTION_TIMEOUT: Final = "ERR FUNCTION LOAD timeout"
LIBRARY_NOT_FOUND: Final = "ERR Library not found"
LIBRARY_WITHOUT_METADATA: Final = "ERR Missing library metadata"
LIBRARY_METADATA_INVALID: Final = "ERR Invalid library metadata"
LIBRARY_NAME_MISSING: Final = "ERR Library name was not given"
LIBRARY_NAMED_TWICE: Final = "ERR Invalid metadata value, name argument was given multiple times"
LIBRARY_NAME_INVALID: Final = (
    "ERR Library names can only contain letters, numbers, or underscores(_)"
    " and must be at least one character long"
)
LIBRARY_EMPTY: Final = "ERR No functions registered"
PAYLOAD_WRONG: Final = "ERR DUMP payload version or checksum are wrong"
PAYLOAD_NO_FUNCTION: Final = "ERR given type is not a function"
PAYLOAD_UNREADABLE: Final = "ERR failed loading functions"
RESTORE_POLICY: Final = (
    "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
)
BUSY_FUNCTION: Final = (
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
)


def unknown_function_argument(name: bytes) -> str:
    """FUNCTION LIST met a word that it does not know, or one it has had already."""
    return f"ERR Unknown argument {shown_name(name)}"


def unknown_load_option(name: bytes) -> str:
    """FUNCTION LOAD has a word before the code that is no option."""
    return f"ERR Unknown option given: {shown_name(name)}"


def engine_not_found(name: str) -> str:
    """A library's first line names another language."""
    return f"ERR Engine '{name}' not found"


def metadata_invalid(word: str) -> str:
    """A library's first line has a word that is no name."""
    return f"ERR Invalid metadata value given: {word}"


def library_exists(name: bytes) -> str:
    """FUNCTION LOAD without REPLACE found a library of this name."""
    return f"ERR Library '{shown_name(name)}' already exists"


def restored_library_exists(name: bytes) -> str:
    """FUNCTION RESTORE without REPLACE found a library of this name."""
    return f"ERR Library {shown_name(name)} already exists"


def function_exists(name: bytes) -> str:
    """Another library has a function of this name."""
    return f"ERR Function {shown_name(name)} already exists"


def library_not_compiled(reason: str) -> str:
    """What Lua says of a library's source."""
    return f"ERR Error compiling function: {reason}"


def library_not_run(reason: str) -> str:
    """A library failed while it was to register its functions."""
    return f"ERR Error registering functions: {reason}"


# --- scripts ---------------------------------------------------------------------------------

NO_SCRIPT: Final = "NOSCRIPT No matching script. Please use EVAL."
NEGATIVE_KEYS: Final = "ERR Number of keys can't be negative"
TOO_MANY_KEYS: Final = "ERR Number of keys can't be greater than number of args"
SCRIPT_FLUSH_MODE: Final = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
SCRIPT_DEBUG_MODE: Final = "ERR Use SCRIPT DEBUG YES/SYNC/NO"
NO_DEBUGGER: Final = "ERR There is no debugger for scripts; only SCRIPT DEBUG NO is allowed"
SCRIPT_MEMORY: Final = "ERR not enough memory for the script (script-memory-limit)"
SCRIPT_CRASHED: Final = "ERR The command failed unexpectedly"
SCRIPT_UNKNOWN_COMMAND: Final = "ERR Unknown Redis command called from script"
SCRIPT_WRONG_ARITY: Final = "ERR Wrong number of args calling Redis command from script"
SCRIPT_NOT_ALLOWED: Final = "ERR This Redis command is not allowed from script"
SCRIPT_READ_ONLY: Final = "ERR Write commands are not allowed from read-only scripts."
SCRIPT_MAY_WRITE: Final = "ERR Can not execute a script with write flag using *_ro command."
SHEBANG_INVALID: Final = "ERR Invalid script shebang"
SHEBANG_UNREADABLE: Final = "ERR Invalid engine in script shebang"
BUSY: Final = (
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
)
NOT_BUSY: Final = "NOTBUSY No scripts in execution right now."
UNKILLABLE: Final = (
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can"
    " either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE"
    " command."
)


def not_compiled(reason: str) -> str:
    """The text of a script is no Lua."""
    return f"ERR Error compiling script (new function): {reason}"


def unexpected_engine(name: str) -> str:
    """A script's first line names another language."""
    return f"ERR Unexpected engine in script shebang: {name}"


def unknown_shebang_option(option: str) -> str:
    """A script's first line has a word that is no option."""
    return f"ERR Unknown lua shebang option: {option}"


def unexpected_flag(flag: str) -> str:
    """A script's first line has a flag that does not exist."""
    return f"ERR Unexpected flag in script shebang: {flag}"


# --- keys, strings and expiry ----------------------------------------------------------------

SAME_OBJECT: Final = "ERR source and destination objects are the same"
INVALID_FIRST_DB: Final = "ERR invalid first DB index"
INVALID_SECOND_DB: Final = "ERR invalid second DB index"
INVALID_CURSOR: Final = "ERR invalid cursor"
NOVALUES_OUTSIDE_HSCAN: Final = "ERR NOVALUES option can only be used in HSCAN"
NO_ACCESS_FREQUENCY: Final = (
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that"
    " when switching between policies at runtime LRU and LFU data will take some time to adjust."
)
EXPIRE_NX_WITH_OTHERS: Final = "ERR NX and XX, GT or LT options at the same time are not compatible"
EXPIRE_GT_WITH_LT: Final = "ERR GT and LT options at the same time are not compatible"
INCREMENT_OVERFLOW: Final = "ERR increment or decrement would overflow"
DECREMENT_OVERFLOW: Final = "ERR decrement would overflow"
INCREMENT_NOT_FINITE: Final = "ERR increment would produce NaN or Infinity"
STRING_TOO_LONG: Final = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
DIGEST_LENGTH: Final = "ERR must be exactly 16 hexadecimal characters"
INVALID_NUMKEYS: Final = "ERR invalid numkeys value or out of range"
ENX_WITHOUT_EXPIRATION: Final = "ERR ENX flag requires an expiration"
LBOUND_ABOVE_UBOUND: Final = "ERR LBOUND can't be greater than UBOUND"
OFFSET_OUT_OF_RANGE: Final = "ERR offset is out of range"
LCS_OF_OTHERS: Final = "ERR The specified keys must contain string values"
LCS_LEN_WITH_IDX: Final = "ERR If you want both the length and indexes, please just use IDX."
LCS_TOO_LARGE: Final = (
    "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
)
BIT_OFFSET: Final = "ERR bit offset is not an integer or out of range"
BIT_VALUE: Final = "ERR bit is not an integer or out of range"
BITPOS_VALUE: Final = "ERR The bit argument must be 1 or 0."
BITOP_NOT_SOURCES: Final = "ERR BITOP NOT must be called with a single source key."
BITFIELD_TYPE: Final = (
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64"
    " is."
)
BITFIELD_OVERFLOW: Final = "ERR Invalid OVERFLOW type specified"
BITFIELD_RO_GET: Final = "ERR BITFIELD_RO only supports the GET subcommand"


def invalid_expire_time(command: str) -> str:
    """A time to live that is not positive where it must be, or an expiry beyond 64 bits."""
    return f"ERR invalid expire time in '{command}' command"


def unsupported_option(option: bytes) -> str:
    """A command of the EXPIRE family met a word that is no option."""
    return f"ERR Unsupported option {shown_name(option)}"


def disk_error(reason: str) -> str:
    """A command that writes, while the append-only file cannot be written to."""
    return f"MISCONF Errors writing to the AOF file: {reason}"


def save_failed(reason: str) -> str:
    """SAVE, BGSAVE or BGREWRITEAOF could not be done."""
    return f"ERR The data could not be saved: {reason}"
