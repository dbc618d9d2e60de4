"""Which clients CLIENT LIST lists and CLIENT KILL closes: those that pass all filters.

The filters are those of Redis, and those that Valkey has besides, with their ``NOT-`` forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from server.clients.client_line import KNOWN_FLAGS, client_flags, client_type
from server.commands.connection import errors as connection_errors
from server.road.session import Session
from server.road.table import Arguments
from server.runtime.arguments import integer, parse_integer
from server.services import Services

Filter = Callable[[Session], bool]
Maker = Callable[[Services, bytes], Filter]

TYPES: Final = {
    b"normal": "normal",
    b"pubsub": "pubsub",
    b"replica": "replica",
    b"slave": "replica",
    b"master": "master",
}
"""The types of clients as they are asked for, and as they are called."""


class ClientFilters:
    """What the arguments of CLIENT LIST or CLIENT KILL ask for; raises :class:`CommandError`.

    Without SKIPME the caller is spared if ``spares_caller``. ``only_numbers`` are the numbers
    asked for in their order, if nothing else is asked for."""

    def __init__(
        self, server: Services, session: Session, args: Arguments, *, spares_caller: bool
    ) -> None:
        self._server = server
        self._session = session
        self._filters: dict[bytes, Filter] = {}  # By name: where one is repeated the last counts.
        self._spares_caller = spares_caller
        self._lists = not spares_caller
        self.only_numbers: list[int] | None = None
        at = 2
        while at < len(args):
            if at + 1 == len(args):
                raise CommandError(errors.SYNTAX)
            at = self._take(args, at)
        if self._filters.keys() != {b"ID"}:
            self.only_numbers = None

    def _take(self, args: Arguments, at: int) -> int:
        """Takes the filter at a place; returns where the next one is."""
        label, value = args[at].upper(), args[at + 1]
        negated, name = label.startswith(b"NOT-"), label.removeprefix(b"NOT-")
        if name == b"ID":
            numbers = self._numbers(args, at + 1)
            if not negated:
                self.only_numbers = numbers
            self._filters[label] = _unless(negated, _one_of(numbers))
            return at + 1 + len(numbers)
        if name == b"SKIPME" and not negated:
            self._spares_caller = _yes_or_no(value)
            self._filters[label] = _anybody
        elif name in _NEGATABLE or (name in _OTHERS and not negated):
            maker = _NEGATABLE.get(name) or _OTHERS[name]
            self._filters[label] = _unless(negated, maker(self._server, value))
        else:
            raise CommandError(errors.SYNTAX)
        return at + 2

    def _numbers(self, args: Arguments, at: int) -> list[int]:
        """The numbers of clients from a place on, up to the next filter."""
        found: list[int] = []
        for arg in args[at:]:
            if found and arg.upper().removeprefix(b"NOT-") in _NAMES:
                break
            found.append(self._number(arg, first=not found))
        return found

    def _number(self, arg: bytes, first: bool) -> int:
        number = parse_integer(arg)
        if self._lists:
            if number is None:
                raise CommandError(connection_errors.INVALID_CLIENT_ID)
        elif number is None and not first:
            raise CommandError(errors.SYNTAX)
        elif number is None or number < 1:
            raise CommandError(connection_errors.CLIENT_ID_NOT_POSITIVE)
        return number

    def match(self, other: Session) -> bool:
        """Whether the client is asked for."""
        if other is self._session and self._spares_caller:
            return False
        return all(passes(other) for passes in self._filters.values())


def _anybody(other: Session) -> bool:
    return True


def _unless(negated: bool, passes: Filter) -> Filter:
    """The filter, or the one that lets everybody else pass."""
    return (lambda other: not passes(other)) if negated else passes


def _one_of(numbers: list[int]) -> Filter:
    wanted = set(numbers)
    return lambda other: other.id in wanted


def _yes_or_no(arg: bytes) -> bool:
    word = arg.lower()
    if word not in (b"yes", b"no"):
        raise CommandError(errors.SYNTAX)
    return word == b"yes"


# --- the filters -----------------------------------------------------------------------------


def _by_type(server: Services, value: bytes) -> Filter:
    wanted = TYPES.get(value.lower())
    if wanted is None:
        raise CommandError(connection_errors.unknown_client_type(value))
    return lambda other: client_type(other) == wanted


def _by_user(server: Services, value: bytes) -> Filter:
    if not server.state.users.exists(value):
        raise CommandError(connection_errors.no_such_user(value))
    return lambda other: other.user == value


def _by_address(server: Services, value: bytes) -> Filter:
    return lambda other: other.addr.encode() == value


def _by_local_address(server: Services, value: bytes) -> Filter:
    return lambda other: other.laddr.encode() == value


def _by_host(server: Services, value: bytes) -> Filter:
    return lambda other: other.addr.rpartition(":")[0].strip("[]").encode() == value


def _by_name(server: Services, value: bytes) -> Filter:
    return lambda other: bool(other.name) and other.name == value


def _by_library(server: Services, value: bytes) -> Filter:
    return lambda other: bool(other.lib_name) and other.lib_name == value


def _by_library_version(server: Services, value: bytes) -> Filter:
    return lambda other: bool(other.lib_ver) and other.lib_ver == value


def _by_flags(server: Services, value: bytes) -> Filter:
    wanted = set(value.decode("latin-1"))
    if not wanted <= KNOWN_FLAGS:
        raise CommandError(connection_errors.unknown_client_flags(value))
    return lambda other: wanted <= set(client_flags(other))


def _by_database(server: Services, value: bytes) -> Filter:
    count = len(server.state.keyspace.databases)
    index = integer(value, connection_errors.FILTER_DB_NOT_INTEGER)
    if not 0 <= index < count:
        raise CommandError(connection_errors.filter_db_out_of_range(count))
    return lambda other: other.db.index == index


def _by_age(server: Services, value: bytes) -> Filter:
    seconds = integer(value, connection_errors.MAXAGE_NOT_INTEGER)
    if seconds <= 0:
        raise CommandError(connection_errors.MAXAGE_NOT_POSITIVE)
    now = server.state.clock()
    return lambda other: (now - other.created_ms) // 1000 >= seconds


def _by_idle_time(server: Services, value: bytes) -> Filter:
    seconds = integer(value, connection_errors.IDLE_NOT_INTEGER)
    if seconds <= 0:
        raise CommandError(connection_errors.IDLE_NOT_POSITIVE)
    now = server.state.clock()
    return lambda other: (now - other.seen_ms) // 1000 >= seconds


_NEGATABLE: Final[dict[bytes, Maker]] = {
    b"TYPE": _by_type,
    b"USER": _by_user,
    b"ADDR": _by_address,
    b"LADDR": _by_local_address,
    b"IP": _by_host,
    b"NAME": _by_name,
    b"LIB-NAME": _by_library,
    b"LIB-VER": _by_library_version,
    b"FLAGS": _by_flags,
    b"DB": _by_database,
}
_OTHERS: Final[dict[bytes, Maker]] = {b"MAXAGE": _by_age, b"IDLE": _by_idle_time}
_NAMES: Final = {b"ID", b"SKIPME", *_NEGATABLE, *_OTHERS}
