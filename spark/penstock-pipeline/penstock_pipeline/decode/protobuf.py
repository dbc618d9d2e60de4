"""Payloads that are one message of Protobuf."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Final

from penstock_pipeline.decode.registry import RegistryClient, Schema, split_id, split_indexes
from penstock_pipeline.errors import Unavailable, Undecodable, need
from penstock_pipeline.model import Payload
from penstock_pipeline.values import EPOCH, Type

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
    places = [_count(pool, indexes, with_maps) for with_maps in (False, True)]
    found = [message for message in places if message is not None]
    if not found:
        place = ".".join(map(str, indexes))
        raise Undecodable(f"has the schema {id}, which has no message at {place}")
    return found


def _count(pool: Any, indexes: tuple[int, ...], with_maps: bool) -> Any:
    messages = list(pool.FindFileByName(MAIN).message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(messages):
            return None
        found = messages[index]
        inner = found.nested_types
        messages = [each for each in inner if with_maps or not each.GetOptions().map_entry]
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


# --- Members of messages, and the types of columns for them --------------------------------------


Get = Callable[[Any], Any]

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in (
        *("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"),
    )
)
_JSON: Final = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")

_MESSAGES: Final = (10, 11)
_ENUM: Final = 14
_TYPES: Final = {
    **dict.fromkeys((1,), "double"),
    **dict.fromkeys((2,), "float"),
    **dict.fromkeys((3, 16, 18), "bigint"),
    **dict.fromkeys((5, 15, 17), "int"),
    **dict.fromkeys((7, 13), "bigint"),
    8: "boolean",
    **dict.fromkeys((9, _ENUM), "string"),
    12: "binary",
}
"""Types of columns by the number of a field's type; unsigned numbers need one that is larger."""

_UNSIGNED_64: Final = (4, 6)


def members_of(message: Any) -> Callable[[Any], Members]:
    """A function that gives the members of a message of that kind by their names.

    What is not there is None, or the default of Protobuf where it can't tell the two apart.
    """
    getters: list[tuple[str, Get]] = []
    for field in message.fields:
        getters.append((field.name, _getter(field)))

    def members(value: Any) -> Members:
        return {name: get(value) for name, get in getters}

    return members


def _getter(field: Any) -> Get:
    name = field.name
    if is_map(field):
        value = _plain(field.message_type.fields_by_name["value"])
        return lambda m: {_key(k): value(v) for k, v in getattr(m, name).items()}
    plain = _plain(field)
    if field.is_repeated:
        return lambda m: [plain(each) for each in getattr(m, name)]
    if field.has_presence:
        return lambda m: plain(getattr(m, name)) if m.HasField(name) else None
    return lambda m: plain(getattr(m, name))


def is_map(field: Any) -> bool:
    """Whether a field is a map."""
    return field.type == 11 and bool(field.message_type.GetOptions().map_entry)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _plain(field: Any) -> Get:
    """A function that makes a plain value of one value of a field."""
    if field.type == _ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number, str(number))
    if field.type not in _MESSAGES:
        return lambda value: value
    name = field.message_type.full_name
    if name == _TIMESTAMP:
        return _time
    if name in _WRAPPERS:
        return lambda message: message.value
    if name in _JSON:
        return _json
    return _Nested(field.message_type)


class _Nested:
    """Members of a message within another; made when they are needed, as it may hold itself."""

    def __init__(self, message: Any) -> None:
        self._message = message
        self._members: Callable[[Any], Members] | None = None

    def __call__(self, value: Any) -> Members:
        if self._members is None:
            self._members = members_of(self._message)
        return self._members(value)


def _time(message: Any) -> Any:
    """The time, or the numbers of one that no calendar has, which no column takes for a time."""
    try:
        return EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:
        return {"seconds": message.seconds, "nanos": message.nanos}


def _json(message: Any) -> Any:
    """The value of a message that stands for JSON."""
    kind = message.DESCRIPTOR.full_name
    if kind.endswith("Struct"):
        return {key: _json(value) for key, value in message.fields.items()}
    if kind.endswith("ListValue"):
        return [_json(value) for value in message.values]
    which = message.WhichOneof("kind")
    if which in (None, "null_value"):
        return None
    value = getattr(message, which)
    return _json(value) if which in ("struct_value", "list_value") else value


def columns_of_message(message: Any) -> dict[str, Type]:
    """The members of a message and the types of columns for them; raises ValueError."""
    return {field.name: _type(field, (message.full_name,)) for field in message.fields}


def _type(field: Any, within: tuple[str, ...]) -> Type:
    if is_map(field):
        return Type("map", element=_single(field.message_type.fields_by_name["value"], within))
    single = _single(field, within)
    return Type("array", element=single) if field.is_repeated else single


def _single(field: Any, within: tuple[str, ...]) -> Type:
    if field.type in _UNSIGNED_64:
        return Type("decimal", 20, 0)
    if field.type not in _MESSAGES:
        return Type(_TYPES[field.type])
    message = field.message_type
    name = message.full_name
    if name == _TIMESTAMP:
        return Type("timestamp")
    if name in _WRAPPERS:
        return _single(message.fields_by_name["value"], within)
    if name in _JSON or not message.fields:
        return Type("string")
    if name in within:
        raise ValueError(f"has a message '{name}' within itself, of which no column can be made")
    inner = (*within, name)
    return Type("struct", members=tuple((each.name, _type(each, inner)) for each in message.fields))


# --- The compiler --------------------------------------------------------------------------------

# A registry has ``.proto`` files, of which it makes descriptors.

TIMEOUT_S: Final = 60.0


def compile_files(files: Mapping[str, str], main: str) -> bytes:
    """The set of descriptors of the file ``main`` and all that it imports.

    ``files`` are texts by the names under which others import them; those of Google's own types
    need not be there. Raises ValueError with what the compiler says, and Unavailable.
    """
    need("grpc_tools.protoc")
    with tempfile.TemporaryDirectory(prefix="penstock-proto-") as name:
        folder = Path(name).resolve()
        for file, text in files.items():
            _write(folder, file, text)
        out = folder / "descriptors.bin"
        done = _run(["-I", str(folder), "--include_imports", f"--descriptor_set_out={out}", main])
        if done.returncode != 0:
            raise ValueError(f"does not compile: {_first(done.stderr, folder, files)}")
        return out.read_bytes()


def _first(said: str, folder: Path, files: Mapping[str, str]) -> str:
    """The first line about one of the files; others are about the compiler itself."""
    lines = said.replace(f"{folder}/", "").strip().splitlines() or ["the compiler failed"]
    return next((line for line in lines if line.startswith(tuple(files))), lines[0])


def _write(folder: Path, file: str, text: str) -> None:
    parts = PurePosixPath(file)
    if parts.is_absolute() or ".." in parts.parts or parts.suffix != ".proto" or "\\" in file:
        raise ValueError(f"refers to '{file}', which is no name of a .proto file")
    path = folder / parts
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(f"refers to '{file}', which can't be written: {error}") from None


def _run(args: list[str]) -> subprocess.CompletedProcess[str]:
    # In a process of its own: the compiler writes to standard error, past Python.
    command = [sys.executable, "-m", "grpc_tools.protoc", *args]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the compiler of Protobuf does not run: {error}") from None
