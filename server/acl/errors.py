"""Hold the error texts of access control: what a user may not do, and what is wrong with rules."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown, shown_name

# --- denials ---------------------------------------------------------------------------------

NO_PERMISSION: Final = "NOPERM "
"""What an error begins with that tells of a denial."""

NO_KEY: Final = "No permissions to access a key"
NO_CHANNEL: Final = "No permissions to access a channel"

RULES_CHANGED: Final = (
    "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC"
    " call. This command is no longer allowed for the following reason: "
)
CHANGED_REASONS: Final = {
    "command": "no permission to execute the command or subcommand",
    "key": "no permission to touch the specified keys",
    "channel": "no permission to access one of the channels used as arguments",
}
"""Why a queued command is not allowed any more, by what is missing."""

IN_SCRIPT: Final = "ERR ACL failure in script: "


def no_command(user: bytes, command: str) -> str:
    """The user may not run a command."""
    return f"User {shown(user)} has no permissions to run the '{command}' command"


def no_access(user: bytes, kind: str, name: bytes) -> str:
    """ACL DRYRUN names the key or the channel that the user has no right to."""
    return f"User {shown(user)} has no permissions to access the '{shown(name)}' {kind}"


# --- rules -----------------------------------------------------------------------------------

SYNTAX: Final = "Syntax error"
UNKNOWN_COMMAND: Final = "Unknown command or category name in ACL"
FIRST_ARGUMENT: Final = "Allowing first-arg of a subcommand is not supported"
BAD_HASH: Final = (
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal"
    " characters"
)
NO_SUCH_PASSWORD: Final = "The password you are trying to remove from the user does not exist"
KEYS_COMPLETE: Final = (
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have"
    " any effect. Try 'resetkeys' to start with an empty list of patterns"
)
CHANNELS_COMPLETE: Final = (
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not"
    " have any effect. Try 'resetchannels' to start with an empty list of channels"
)
BAD_NAME: Final = "ERR Usernames can't contain spaces or null characters"


def bad_rule(rule: bytes, reason: str) -> str:
    """ACL SETUSER was given a rule that is none."""
    return f"ERR Error in ACL SETUSER modifier '{shown_name(rule)}': {reason}"


def open_selector(text: bytes) -> str:
    """A selector has no end."""
    return f"ERR Unmatched parenthesis in acl selector starting at '{shown_name(text)}'."


# --- users in the configuration --------------------------------------------------------------

TWO_SOURCES: Final = (
    "Configuring users with user lines and at the same time setting an ACL file path is invalid."
    " This setup is very likely to lead to configuration errors and security holes, please define"
    " either an ACL file or declare users directly in the configuration, but not both."
)
NOT_STARTED: Final = "Aborting startup because of ACL errors: "
BLANK_IN_NAME: Final = "Spaces not allowed in ACL usernames"
WRONG_FORMAT: Final = "Wrong format"


def bad_declaration(user: bytes, reason: str) -> str:
    """A ``user`` line cannot be understood."""
    return f"Error in user declaration '{shown(user)}': {reason}"


def bad_declared_rule(user: bytes, rule: bytes, reason: str) -> str:
    """A ``user`` line has a rule that is none."""
    if reason == UNKNOWN_COMMAND:
        where = f"'{shown(rule)}' for the user named '{shown(user)}'"
        return f"Error loading ACL rule {where}: {reason}"
    return bad_declaration(user, reason)


def is_disabled(user: bytes) -> str:
    """A user may not log in; that is told at the start."""
    return (
        f"The user '{shown(user)}' is disabled (there is no 'on' modifier in the user description)."
        " Make sure this is not a configuration error."
    )


# --- commands --------------------------------------------------------------------------------

DEFAULT_STAYS: Final = "ERR The 'default' user cannot be removed"
NO_FILE: Final = (
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users"
    " via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis"
    " configuration file set) in order to store users in the Redis configuration."
)
PASSWORD_BITS: Final = (
    "ERR ACL GENPASS argument must be the number of bits for the output password, a positive"
    " number up to 4096"
)
NOT_SAVED: Final = (
    "ERR There was an error trying to save the ACLs. Please check the server logs for more"
    " information"
)


def unknown_category(name: bytes) -> str:
    """ACL CAT was given a category that does not exist."""
    return f"ERR Unknown category '{shown_name(name)}'"


def user_not_found(name: bytes) -> str:
    """ACL DRYRUN was given a user that does not exist."""
    return f"ERR User '{shown_name(name)}' not found"


def command_not_found(name: bytes) -> str:
    """ACL DRYRUN was given a command that does not exist."""
    return f"ERR Command '{shown_name(name)}' not found"


# --- the file of users -----------------------------------------------------------------------

FILE_UNCHANGED: Final = (
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
)


def file_not_opened(path: str, reason: str) -> str:
    """The file of users cannot be read."""
    return f"Error loading ACLs, opening file '{path}': {reason}"


def no_user_keyword(path: str, line: int) -> str:
    """A line of the file does not begin with ``user`` and a name."""
    return f"{path}:{line} should start with user keyword followed by the username. "


def bad_line(path: str, line: int, rule: bytes, reason: str) -> str:
    """A line of the file has a rule that is none."""
    if reason == UNKNOWN_COMMAND:
        return f"{path}:{line}: Error in applying operation '{shown(rule)}': {reason}. "
    return f"{path}:{line}: {reason}. "


def bad_user_name(path: str, line: int, name: bytes) -> str:
    """A line of the file has a name that no user can have. (The first quote is Redis's.)"""
    return f"'{path}:{line}: username '{shown(name)}' contains invalid characters. "


def user_twice(name: bytes, line: int) -> str:
    """The file has two lines of one user."""
    return f"WARNING: Duplicate user '{shown(name)}' found on line {line}. "


# --- limits of users -------------------------------------------------------------------------


def too_many_connections(user: bytes, limit: int) -> str:
    """No more connections of a user are accepted."""
    return (
        f"LIMIT user '{shown(user)}' may have no more than {limit} connections"
        " (user-max-connections)"
    )


def too_many_commands(user: bytes, limit: int) -> str:
    """A user has run as many commands as it may for the moment."""
    return (
        f"LIMIT user '{shown(user)}' may run no more than {limit} commands per second"
        " (user-max-commands-per-second)"
    )
