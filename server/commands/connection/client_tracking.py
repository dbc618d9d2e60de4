"""CLIENT TRACKING and its kin: which changes of keys a client wants to be told of."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Bulk, Map, Reply, Set
from server.commands.connection import errors as connection_errors
from server.commands.declare import command
from server.core.table import Arguments
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import ClientTracking, Session

_ANYBODY: Final = "noscript loading stale"


def _options(server: Services, session: Session, words: Arguments) -> ClientTracking:
    """The options of CLIENT TRACKING; raises :class:`CommandError` for words that are none."""
    options = ClientTracking(session.id)
    at = 0
    while at < len(words):
        word = words[at].upper()
        has_more = at + 1 < len(words)
        if word == b"REDIRECT" and has_more:
            at += 1
            options.redirect = _target(server, options, words[at])
        elif word == b"PREFIX" and has_more:
            at += 1
            options.prefixes.append(words[at])
        elif word == b"BCAST":
            options.bcast = True
        elif word == b"OPTIN":
            options.optin = True
        elif word == b"OPTOUT":
            options.optout = True
        elif word == b"NOLOOP":
            options.noloop = True
        else:
            raise CommandError(errors.SYNTAX)
        at += 1
    return options


def _target(server: Services, options: ClientTracking, number: bytes) -> int:
    """The client that is to get the notices, which must be there."""
    if options.redirect:
        raise CommandError(connection_errors.ONE_REDIRECTION)
    target = integer(number)
    if target not in server.state.sessions:
        raise CommandError(connection_errors.NO_REDIRECTION_TARGET)
    return target


def _check(options: ClientTracking, present: ClientTracking | None) -> None:
    """Raises :class:`CommandError` if the options contradict each other, or what the client has
    turned on already."""
    if options.prefixes and not options.bcast:
        raise CommandError(connection_errors.PREFIX_WITHOUT_BCAST)
    if present is not None and present.bcast != options.bcast:
        raise CommandError(connection_errors.BCAST_SWITCHED)
    if options.bcast and (options.optin or options.optout):
        raise CommandError(connection_errors.BCAST_WITH_OPTIONS)
    if options.optin and options.optout:
        raise CommandError(connection_errors.OPTIN_AND_OPTOUT)
    if present is not None and (
        (options.optin and present.optout) or (options.optout and present.optin)
    ):
        raise CommandError(connection_errors.OPTIN_SWITCHED)
    _check_prefixes(options.prefixes, [] if present is None else present.prefixes)


def _check_prefixes(given: list[bytes], present: list[bytes]) -> None:
    """Raises :class:`CommandError` if a key could begin with two of the prefixes."""
    for at, prefix in enumerate(given):
        for other in present:
            if _overlap(prefix, other):
                raise CommandError(connection_errors.overlaps_with_existing(prefix, other))
        for other in given[at + 1 :]:
            if _overlap(prefix, other):
                raise CommandError(connection_errors.overlaps_with_provided(prefix, other))


def _overlap(one: bytes, other: bytes) -> bool:
    return one.startswith(other) or other.startswith(one)


@command(
    "CLIENT TRACKING",
    since="6.0.0",
    summary="Turns notices about changed keys on or off, for clients that keep copies of them.",
    complexity="O(1). Some options may introduce additional complexity.",
    syntax="<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN]"
    " [OPTOUT] [NOLOOP]",
)
def tracking(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    options = _options(server, session, args[3:])
    word = args[2].lower()
    if word == b"on":
        _check(options, session.tracking)
        server.tracking.start(session, options)
    elif word == b"off":
        server.tracking.stop(session)
    else:
        raise CommandError(errors.SYNTAX)
    return OK


@command(
    "CLIENT CACHING",
    since="6.0.0",
    summary="Says whether the keys of the next command are tracked, with OPTIN or OPTOUT.",
    syntax="<YES | NO>",
)
def caching(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; an error unless tracking is on with OPTIN or OPTOUT."""
    mode = session.tracking
    if mode is None:
        raise CommandError(connection_errors.CACHING_WITHOUT_TRACKING)
    word = args[2].lower()
    if word == b"yes" and not mode.optin:
        raise CommandError(connection_errors.CACHING_YES_WITHOUT_OPTIN)
    if word == b"no" and not mode.optout:
        raise CommandError(connection_errors.CACHING_NO_WITHOUT_OPTOUT)
    if word not in (b"yes", b"no"):
        raise CommandError(errors.SYNTAX)
    mode.caching = True
    session.update_reasons()
    return OK


@command(
    "CLIENT GETREDIR",
    since="6.0.0",
    summary="Tells which connection gets the notices of client-side caching.",
)
def getredir(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of that connection, 0 if it is this one, ``-1`` while tracking is off."""
    return -1 if session.tracking is None else session.tracking.redirect


@command(
    "CLIENT TRACKINGINFO",
    since="6.2.0",
    summary="Describes the client-side caching of this connection.",
)
def trackinginfo(server: Services, session: Session, args: Arguments) -> Reply:
    """A map of what was turned on, where notices go, and the prefixes."""
    mode = session.tracking
    return Map(
        [
            ("flags", Set(["off"] if mode is None else _flags(mode))),
            ("redirect", -1 if mode is None else mode.redirect),
            ("prefixes", [] if mode is None else [Bulk(prefix) for prefix in mode.prefixes]),
        ]
    )


def _flags(mode: ClientTracking) -> list[Reply]:
    flags = {
        "on": True,
        "bcast": mode.bcast,
        "optin": mode.optin,
        "caching-yes": mode.optin and mode.caching,
        "optout": mode.optout,
        "caching-no": mode.optout and mode.caching,
        "noloop": mode.noloop,
        "broken_redirect": mode.broken,
    }
    return [flag for flag, applies in flags.items() if applies]
