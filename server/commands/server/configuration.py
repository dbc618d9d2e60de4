"""CONFIG: reading and changing settings while the server runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from protocol import errors
from protocol.errors import CommandError, shown
from protocol.replies import OK, Map, Reply
from server.commands.declare import command, container, help_command
from server.commands.server import errors as server_errors
from server.config import file as config_file
from server.config.registry import SETTINGS, BadSetting, Config
from server.core.table import Arguments
from server.services import Services
from server.state.session import Session
from storage.keyspace.glob import matches

_FLAGS: Final = "admin noscript loading stale"
_EVERYWHERE: Final = ("request_policy:all_nodes", "response_policy:all_succeeded")

container(
    "CONFIG", summary="Reads and changes the settings of the server.", since="2.0.0", flags=_FLAGS
)


@command(
    "CONFIG GET",
    summary="Tells the values of the settings whose names match.",
    complexity="O(N) in the number of patterns.",
    syntax="parameter [parameter ...]",
    history=[("7.0.0", "Several patterns in one call.")],
)
def config_get(server: Services, session: Session, args: Arguments) -> Reply:
    """A map of names and values; a name without special characters stands in it as it was sent."""
    config = server.state.config
    found: dict[str, str] = {}
    for pattern in args[2:]:
        for name, label in _matching(config, pattern):
            found.setdefault(name, label)
    return Map((label, config.get_text(name)) for name, label in found.items())


def _matching(config: Config, pattern: bytes) -> Iterator[tuple[str, str]]:
    """The names that fit the pattern, each with how the reply calls it. Lines that there are none
    of are only shown to who asks for them by name: Redis has no such setting."""
    if not set(pattern) & set(b"*?["):
        name = shown(pattern).lower()
        if name in SETTINGS:
            yield name, shown(pattern)
        return
    for name in SETTINGS:
        if SETTINGS[name].repeated and not config.get(name):
            continue
        if matches(pattern, name.encode(), ignore_case=True):
            yield name, name


@command(
    "CONFIG SET",
    summary="Changes settings at once.",
    complexity="O(N) in the number of settings.",
    syntax="parameter value [parameter value ...]",
    tips=_EVERYWHERE,
    history=[("7.0.0", "Several settings in one call.")],
)
def config_set(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, and all the settings named are changed; or an error, and none is."""
    given = args[2:]
    if len(given) % 2:
        raise CommandError(errors.SYNTAX)
    labels: dict[str, str] = {}
    for name in given[::2]:
        labels[_changeable(name, labels)] = shown(name)
    try:
        server.state.config.change(zip(labels, map(shown, given[1::2]), strict=True))
    except BadSetting as error:
        label = labels.get(error.name, error.name)
        raise CommandError(server_errors.bad_setting(label, error.reason)) from error
    unused = [name for name in labels if SETTINGS[name].unused]
    if unused:
        server.state.log.notice(f"Taken without effect: {', '.join(unused)}")
    return OK


def _changeable(name: bytes, before: dict[str, str]) -> str:
    """The setting that is meant, which must be one that may change, and not one of ``before``."""
    label = shown(name)
    setting = SETTINGS.get(label.lower())
    if setting is None:
        raise CommandError(server_errors.unknown_setting(name))
    if not setting.mutable:
        raise CommandError(server_errors.bad_setting(label, server_errors.CONFIG_IMMUTABLE))
    if setting.guarded:
        raise CommandError(server_errors.bad_setting(label, server_errors.CONFIG_PROTECTED))
    if label.lower() in before:
        raise CommandError(server_errors.bad_setting(label, server_errors.CONFIG_TWICE))
    return label.lower()


@command("CONFIG RESETSTAT", summary="Sets the counters of INFO to zero.", tips=_EVERYWHERE)
def config_resetstat(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    forget_counts(server)
    return OK


def forget_counts(server: Services) -> None:
    """Sets the counters of INFO to zero."""
    server.state.forget_counts()
    server.traffic.turns.forget_counts()
    server.policies.tally.reset()


@command(
    "CONFIG REWRITE",
    since="2.8.0",
    summary="Writes the present settings into the configuration file.",
    tips=_EVERYWHERE,
)
def config_rewrite(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, once the file that the server was started with is up to date."""
    config = server.state.config
    if config.file is None:
        raise CommandError(server_errors.CONFIG_NO_FILE)
    users = [] if config.aclfile else list(map(shown, server.state.users.lines()))
    try:
        config_file.rewrite(config, config.file, users)
    except OSError as error:
        raise CommandError(server_errors.config_not_written(str(error.strerror))) from error
    return OK


_HELP: Final = """\
GET <pattern>
    Return parameters matching the glob-like <pattern> and their values.
SET <directive> <value>
    Set the configuration <directive> to <value>.
RESETSTAT
    Reset statistics reported by the INFO command.
REWRITE
    Rewrite the configuration file.
"""

help_command("CONFIG", since="5.0.0", text=_HELP)
