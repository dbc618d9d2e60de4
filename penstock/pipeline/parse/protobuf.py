"""Payloads that are one message of Protobuf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.pipeline.parse.errors import Undecodable
from penstock.pipeline.parse.framing import split_id, split_indexes
from penstock.pipeline.parse.messages import members_of
from penstock.pipeline.parse.packages import need
from penstock.pipeline.parse.proto_compile import compile_files
from penstock.pipeline.parse.registry import RegistryClient, Schema
from penstock.pipeline.parse.settings import Payload

MAIN: Final = "registered.proto"
"""The name under which a registered schema is compiled; it has none of its own."""

Members = Mapping[str, Any]
Decode = Callable[[bytes], Members]


def read_descriptors(data: bytes) -> Any:
    """A pool with the messages of a set of descriptors; raises ValueError.

    The set is what ``protoc --include_imports --descriptor_set_out`` writes.
    """
    kinds = need("google.protobuf.descriptor_pb2")
    errors = need("google.protobuf.message")
    try:
        files = kinds.FileDescriptorSet.FromString(data).file
    except errors.DecodeError:
        raise ValueError(
            "is no set of descriptors, as protoc --descriptor_set_out makes it"
        ) from None
    if not files:
        raise ValueError("has no descriptors")
    pool = need("google.protobuf.descriptor_pool").DescriptorPool()
    try:
        for file in files:
            pool.Add(file)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(
            f"can't be used: {error}; protoc needs --include_imports to write everything"
        ) from None
    return pool


def find_message(pool: Any, name: str) -> Any:
    """The descriptor of a message by its full name; raises ValueError."""
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        raise ValueError(f"has no message '{name}'") from None


def protobuf_decoder(payload: Payload, registry: RegistryClient | None = None) -> Decode:
    """A function that gives the members of a message; it raises Undecodable.

    With a registry the value begins with the ID of its schema and the place of its message there,
    and the function also raises Unavailable. Without, there are descriptors and a message.
    """
    if registry is None:
        assert payload.descriptors is not None
        assert payload.message is not None
        return _reader(find_message(read_descriptors(payload.descriptors), payload.message))
    return _registered(payload.message, registry)


def _registered(wanted: str | None, registry: RegistryClient) -> Decode:
    pools: dict[int, Any] = {}
    readers: dict[tuple[int, tuple[int, ...]], Decode] = {}

    def decode(data: bytes) -> Members:
        id, rest = split_id(data)
        indexes, body = split_indexes(rest)
        reader = readers.get((id, indexes))
        if reader is None:
            if id not in pools:
                pools[id] = _compiled(id, registry.schema(id))
            message = _wanted(_at(pools[id], id, indexes), wanted)
            readers[id, indexes] = reader = _reader(message)
        return reader(body)

    return decode


def _compiled(id: int, schema: Schema) -> Any:
    if schema.kind != "PROTOBUF":
        raise Undecodable(f"has the schema {id}, which is {schema.kind}, not PROTOBUF")
    try:
        return read_descriptors(compile_files({**dict(schema.references), MAIN: schema.text}, MAIN))
    except ValueError as error:
        raise Undecodable(f"has the schema {id}, which {error}") from None


def _at(pool: Any, id: int, indexes: tuple[int, ...]) -> list[Any]:
    """The messages that may be meant by a place among those of the schema, and those within them.

    Places count messages as the text has them; but some clients also count those that the compiler
    makes of maps.
    """
    places = [_count(pool, indexes, is_meant) for is_meant in (_is_written, lambda message: True)]
    found = [message for message in places if message is not None]
    if not found:
        place = ".".join(map(str, indexes))
        raise Undecodable(f"has the schema {id}, which has no message at {place}")
    return found


def _is_written(message: Any) -> bool:
    return not message.GetOptions().map_entry


def _count(pool: Any, indexes: tuple[int, ...], is_meant: Callable[[Any], bool]) -> Any:
    messages = list(pool.FindFileByName(MAIN).message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(messages):
            return None
        found = messages[index]
        messages = [message for message in found.nested_types if is_meant(message)]
    return found


def _wanted(found: list[Any], name: str | None) -> Any:
    """The first of some messages, or the one of that name; raises Undecodable."""
    for message in found:
        if name is None or message.full_name == name:
            return message
    raise Undecodable(f"is a message '{found[0].full_name}', not '{name}'")


def _reader(message: Any) -> Decode:
    errors = need("google.protobuf.message")
    kind = need("google.protobuf.message_factory").GetMessageClass(message)
    members = members_of(message)

    def decode(data: bytes) -> Members:
        try:
            found = kind.FromString(data)
        except errors.DecodeError:
            raise Undecodable(f"is no message '{message.full_name}' of Protobuf") from None
        if not found.IsInitialized():
            missing = ", ".join(found.FindInitializationErrors())
            raise Undecodable(f"is a message '{message.full_name}' without {missing}")
        return members(found)

    return decode
