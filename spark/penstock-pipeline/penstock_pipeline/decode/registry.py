"""Schemas from a registry that answers as Confluent's does, and the header that names one."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from typing import IO, Any, Final, NoReturn
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from penstock_pipeline.errors import Unavailable, Undecodable
from penstock_pipeline.model import Registry

UNKNOWN_S: Final = 30.0
"""For how long an ID that the registry did not know is not asked for again."""

_LARGEST: Final = 16 * 1024 * 1024
_NO_SCHEMA: Final = (40401, 40402, 40403)
"""What the registry calls a subject, a version and a schema that it does not have."""

_MOST_REFERENCES: Final = 1000


@dataclass(frozen=True)
class Schema:
    """A registered schema, and those that it refers to, by name, before what refers to them."""

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class RegistryClient:
    """Asks a registry, and remembers what it said: an ID means the same schema for ever."""

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._opener: OpenerDirector | None = None
        self._known: dict[int, Schema] = {}
        self._unknown: dict[int, tuple[float, str]] = {}

    def schema(self, id: int) -> Schema:
        """The schema of an ID.

        Raises Undecodable if there is none, and Unavailable if the registry does not say.
        """
        if id in self._known:
            return self._known[id]
        until, why = self._unknown.get(id, (0.0, ""))
        if why and self._clock() < until:
            raise Undecodable(why)
        try:
            self._known[id] = found = self._read(id)
        except Undecodable as error:
            self._unknown[id] = (self._clock() + UNKNOWN_S, str(error))
            raise
        return found

    def _read(self, id: int) -> Schema:
        answer = self._get(f"/schemas/ids/{id}")
        if answer is None:
            raise Undecodable(f"has the schema {id}, which the registry does not know")
        references: dict[str, str] = {}
        for name, text in self._references(answer, id, set()):
            references.setdefault(name, text)
        kind = str(answer.get("schemaType") or "AVRO").upper()
        return Schema(kind, self._text(answer), tuple(references.items()))

    def _references(
        self, answer: dict[str, Any], id: int, seen: set[tuple[str, int]]
    ) -> Iterator[tuple[str, str]]:
        for reference in answer.get("references") or ():
            try:
                name, subject = str(reference["name"]), str(reference["subject"])
                version = int(reference["version"])
            except (TypeError, KeyError, ValueError):
                self._fail("its answer has a reference of a wrong form")
            if (subject, version) in seen:
                continue
            seen.add((subject, version))
            if len(seen) > _MOST_REFERENCES:
                raise Undecodable(f"has the schema {id}, which refers to too many others")
            found = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            if found is None:
                raise Undecodable(
                    f"has the schema {id}, which refers to version {version} of '{subject}', which "
                    "the registry does not know"
                )
            yield from self._references(found, id, seen)
            yield name, self._text(found)

    def _text(self, answer: dict[str, Any]) -> str:
        text = answer.get("schema")
        if not isinstance(text, str):
            self._fail("its answer has no schema")
        return text

    def _get(self, path: str) -> dict[str, Any] | None:
        """The object of an answer; None if the registry says that there is none."""
        try:
            with self._open(path) as answer:
                data = answer.read(_LARGEST + 1)
        except HTTPError as error:
            self._refused(error)
            return None
        except (OSError, HTTPException) as error:
            self._fail(_why(error))
        if len(data) > _LARGEST:
            self._fail(f"its answer is longer than {_LARGEST} bytes")
        found = _object(data)
        if found is None:
            self._fail("its answer is not a JSON object")
        return found

    def _refused(self, error: HTTPError) -> None:
        """Returns if the registry says that there is none; else raises Unavailable."""
        with error:
            answer = _object(error.read(_LARGEST)) or {}
        if error.code == 404 and answer.get("error_code") in _NO_SCHEMA:
            return
        message = answer.get("message")
        said = f" ({message})" if isinstance(message, str) else ""
        self._fail(f"it answers {error.code} {error.reason}{said}")

    def _open(self, path: str) -> IO[bytes]:
        request = Request(
            self._registry.url + path,
            headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"},
        )
        if self._registry.user is not None:
            pair = f"{self._registry.user}:{self._registry.password or ''}".encode()
            request.add_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
        if self._opener is None:
            self._opener = _opener(self._registry)
        answer: IO[bytes] = self._opener.open(request, timeout=self._registry.timeout_s)
        return answer

    def _fail(self, why: str) -> NoReturn:
        raise Unavailable(f"the schema registry {self._registry.url} can't be asked: {why}")


class _NoRedirects(HTTPRedirectHandler):
    """Takes a redirect as an error: credentials are for one server only."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _opener(registry: Registry) -> OpenerDirector:
    context = ssl.create_default_context(cadata=registry.ca)
    return build_opener(_NoRedirects(), HTTPSHandler(context=context))


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _why(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error
    return str(getattr(cause, "strerror", None) or cause) or type(error).__name__


@lru_cache(maxsize=8)
def client_of(registry: Registry) -> RegistryClient:
    """The client of a registry, one for all decoders of a process."""
    return RegistryClient(registry)


# --- The header of a payload ---------------------------------------------------------------------

# A zero byte and the schema's ID. Behind it, Protobuf has the place of the message among those of
# its schema.

_HEADER: Final = 5
_LONGEST: Final = 10
"""The most bytes of a number of 64 bits, with 7 bits in each."""

_DEEPEST: Final = 100
"""How deep messages may be nested, as in the parsers of Protobuf."""


def split_id(data: bytes) -> tuple[int, bytes]:
    """The ID of the schema, and what follows; raises Undecodable."""
    if len(data) < _HEADER or data[0] != 0:
        raise Undecodable("has no ID of a schema: it does not begin with a zero byte and 4 bytes")
    return int.from_bytes(data[1:_HEADER], "big"), data[_HEADER:]


def split_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """The place of a message, from the outermost in, and what follows; raises Undecodable.

    A single zero is short for the first message of the schema.
    """
    count, place = _number(data, 0)
    if not 0 <= count <= _DEEPEST:
        raise Undecodable(f"has a wrong header: {count} indexes of messages")
    indexes: list[int] = []
    for _ in range(count):
        index, place = _number(data, place)
        indexes.append(index)
    return tuple(indexes) or (0,), data[place:]


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A zigzag number of variable length, and the place behind it."""
    value = 0
    for shift, byte in enumerate(data[place : place + _LONGEST]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), place + shift + 1
    raise Undecodable("has a wrong header: it ends in the indexes of the message")
