"""The columns of a read: the defaults, or the user's schema."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_redis_streams.errors import SchemaError

MAP: Final = MapType(StringType(), BinaryType())
ARRAY: Final = ArrayType(
    StructType([StructField("name", BinaryType()), StructField("value", BinaryType())])
)
RESERVED: Final[dict[str, tuple[DataType, ...]]] = {
    "stream": (StringType(),),
    "id": (StringType(),),
    "timestamp": (TimestampType(),),
    "fields": (MAP, ARRAY),
}
"""Columns that are not fields of the entries, and the types they may have."""

ID_PARTS: Final[dict[str, tuple[DataType, ...]]] = {"ms": (LongType(),), "seq": (LongType(),)}
"""The same of the option ``idColumns``: an ID as two numbers, by which rows sort."""


def reserved(id_columns: bool) -> dict[str, tuple[DataType, ...]]:
    """The columns that are not fields, with or without those of the option ``idColumns``."""
    return {**RESERVED, **ID_PARTS} if id_columns else RESERVED


FIELD_TYPES: Final = (
    *(StringType, BinaryType, BooleanType, ByteType, ShortType, IntegerType, LongType),
    *(FloatType, DoubleType, DecimalType, DateType, TimestampType),
)


def default_schema(fields_format: str, id_columns: bool = False) -> StructType:
    """The columns when the user gives none; ``fields`` is a map, or an array of pairs."""
    known = reserved(id_columns)
    names = ("stream", "id", *(ID_PARTS if id_columns else ()), "timestamp")
    fields = MAP if fields_format == "map" else ARRAY
    return StructType(
        [*(StructField(name, known[name][0]) for name in names), StructField("fields", fields)]
    )


def check_schema(schema: StructType, id_columns: bool = False) -> None:
    """Raises SchemaError for a column that no entry can fill."""
    for field in schema.fields:
        allowed = reserved(id_columns).get(field.name)
        if allowed is not None:
            if not any(_same(field.dataType, kind) for kind in allowed):
                kinds = " or ".join(kind.simpleString() for kind in allowed)
                raise SchemaError(
                    f"column '{field.name}' is {field.dataType.simpleString()}; allowed: {kinds}"
                )
        elif not isinstance(field.dataType, FIELD_TYPES):
            raise SchemaError(
                f"column '{field.name}' is {field.dataType.simpleString()}, which the text of a "
                "field can't become; allowed: string, binary, boolean, numbers, date, timestamp. "
                "Read JSON as a string and parse it with from_json"
            )


def _same(one: DataType, other: DataType) -> bool:
    same: bool = one.simpleString() == other.simpleString()
    return same
