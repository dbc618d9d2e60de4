"""Hold the error texts of scripts and functions, which are those of Redis where it has one."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

# --- functions --------------------------------------------------------------------------------

FUNCTION_FLUSH_MODE: Final = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"
FUNCTION_LIBRARY_MISSING: Final = "ERR library name argument was not given"
FUNCTION_NOT_FOUND: Final = "ERR Function not found"
FUNCTION_BAD_KEYS: Final = "ERR Bad number of keys provided"
FUNCTION_EXISTS_IN_LIBRARY: Final = "ERR Function already exists in the library"
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
    """Return the error for a library whose source Lua refuses."""
    return f"ERR Error compiling function: {reason}"


def library_not_run(reason: str) -> str:
    """A library failed while it was to register its functions."""
    return f"ERR Error registering functions: {reason}"


# --- scripts ----------------------------------------------------------------------------------

NO_SCRIPT: Final = "NOSCRIPT No matching script. Please use EVAL."
NEGATIVE_KEYS: Final = "ERR Number of keys can't be negative"
TOO_MANY_KEYS: Final = "ERR Number of keys can't be greater than number of args"
SCRIPT_FLUSH_MODE: Final = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
SCRIPT_DEBUG_MODE: Final = "ERR Use SCRIPT DEBUG YES/SYNC/NO"
NO_DEBUGGER: Final = "ERR There is no debugger for scripts; only SCRIPT DEBUG NO is allowed"
SCRIPT_MEMORY: Final = "ERR not enough memory for the script (script-memory-limit)"
SCRIPT_CRASHED: Final = "ERR The command failed unexpectedly"
SCRIPT_MAY_WRITE: Final = "ERR Can not execute a script with write flag using *_ro command."
SHEBANG_INVALID: Final = "ERR Invalid script shebang"
SHEBANG_UNREADABLE: Final = "ERR Invalid engine in script shebang"
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
