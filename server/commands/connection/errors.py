"""Hold the error texts of what concerns a connection: tracking, transactions, the client itself."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

# --- CLIENT TRACKING and CLIENT CACHING ------------------------------------------------------

NO_REDIRECTION_TARGET: Final = "ERR The client ID you want redirect to does not exist"
ONE_REDIRECTION: Final = "ERR A client can only redirect to a single other client"
PREFIX_WITHOUT_BCAST: Final = "ERR PREFIX option requires BCAST mode to be enabled"
BCAST_SWITCHED: Final = (
    "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then"
    " re-enabling it with a different mode."
)
OPTIN_SWITCHED: Final = (
    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then"
    " re-enabling it with a different mode."
)
BCAST_WITH_OPTIONS: Final = "ERR OPTIN and OPTOUT are not compatible with BCAST"
OPTIN_AND_OPTOUT: Final = "ERR You can't specify both OPTIN mode and OPTOUT mode"
CACHING_WITHOUT_TRACKING: Final = (
    "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT"
    " mode enabled"
)
CACHING_YES_WITHOUT_OPTIN: Final = (
    "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
)
CACHING_NO_WITHOUT_OPTOUT: Final = (
    "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
)


def overlaps_with_existing(prefix: bytes, other: bytes) -> str:
    """A prefix of CLIENT TRACKING that does not go with one that the client has."""
    return _overlap(prefix, f"an existing prefix '{shown_name(other)}'")


def overlaps_with_provided(prefix: bytes, other: bytes) -> str:
    """Two prefixes of one CLIENT TRACKING that do not go together."""
    return _overlap(prefix, f"another provided prefix '{shown_name(other)}'")


def _overlap(prefix: bytes, with_what: str) -> str:
    return (
        f"ERR Prefix '{shown_name(prefix)}' overlaps with {with_what}."
        " Prefixes for a single client must not overlap."
    )


# --- transactions and connections -------------------------------------------------------------

NESTED_MULTI: Final = "ERR MULTI calls can not be nested"
WATCH_INSIDE_MULTI: Final = "ERR WATCH inside MULTI is not allowed"
EXEC_WITHOUT_MULTI: Final = "ERR EXEC without MULTI"
DISCARD_WITHOUT_MULTI: Final = "ERR DISCARD without MULTI"
EXEC_ABORTED: Final = "EXECABORT Transaction discarded because of previous errors."
SSUBSCRIBE_INSIDE_MULTI: Final = "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"

# --- clients ----------------------------------------------------------------------------------

CLIENT_UNBLOCKED: Final = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
NO_PROTOCOL: Final = "NOPROTO unsupported protocol version"
PROTOCOL_NOT_INTEGER: Final = "ERR Protocol version is not an integer or out of range"
BAD_CLIENT_NAME: Final = "ERR Client names cannot contain spaces, newlines or special characters."
HELLO_NEEDS_AUTHENTICATION: Final = (
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto>"
    " AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol"
    " version at the same time"
)
NO_PASSWORD_CONFIGURED: Final = (
    "ERR AUTH <password> called without any password configured for the default user."
    " Are you sure your configuration is correct?"
)
INVALID_CLIENT_ID: Final = "ERR Invalid client ID"
NO_SUCH_CLIENT: Final = "ERR No such client"
CLIENT_ID_NOT_POSITIVE: Final = "ERR client-id should be greater than 0"
MAXAGE_NOT_INTEGER: Final = "ERR maxage is not an integer or out of range"
MAXAGE_NOT_POSITIVE: Final = "ERR maxage should be greater than 0"
IDLE_NOT_INTEGER: Final = "ERR idle is not an integer or out of range"
IDLE_NOT_POSITIVE: Final = "ERR idle should be greater than 0"
FILTER_DB_NOT_INTEGER: Final = "ERR DB is not an integer or out of range"
PAUSE_MODE: Final = "ERR CLIENT PAUSE mode must be WRITE or ALL"
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


def no_such_user(name: bytes) -> str:
    """CLIENT KILL was given a USER that does not exist."""
    return f"ERR No such user '{shown_name(name)}'"
