"""Databases that a pipeline writes to through their Python drivers, in one transaction a batch.

docs/decisions/0036-databases-by-python-drivers.md says why not through Spark's JDBC.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import closing
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Iterable[Sequence[Any]]


class Database(ABC):
    """A database at a URL: how to connect to it, and where its SQL differs from others'."""

    module: ClassVar[str]
    """The Python module of the driver."""
    mark: ClassVar[str] = "%s"
    """What stands for a value in a statement."""
    quotes: ClassVar[str] = '"'
    lock: ClassVar[str] = " FOR UPDATE"
    """What makes a query keep others from the rows that it reads."""
    key_text: ClassVar[str | None] = None
    """The type of a text that is a key, if it is another one than that of other texts."""
    types: ClassVar[dict[str, str]]
    """The type of a column for each type of Arrow, and for ``decimal``."""
    orders: ClassVar[dict[str, str]]
    """How columns compare as in Spark, by types of Arrow, where they do not by themselves."""
    name: ClassVar[str]
    """What people call it."""
    refused: ClassVar[tuple[str, ...]] = ("YEARS",)
    """The values that it does not take: names in :mod:`penstock_pipeline.sinks.refused`."""

    def __init__(self, url: str, user: str | None, password: str | None) -> None:
        self.url = url
        self.user = user
        self.password = password

    @property
    def driver(self) -> Any:
        """Return the driver's module, with the exceptions of DB-API."""
        return import_module(self.module)

    @abstractmethod
    def connect(self) -> Any:
        """A connection, on which a transaction begins with the first statement."""

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str], when: str) -> str:
        """Return the end of an INSERT from ``excluded`` that replaces rows; names are quoted."""
        changed = [column for column in columns if column not in keys]
        updates = ", ".join(f"{column} = excluded.{column}" for column in changed)
        what = f"UPDATE SET {updates} WHERE {when}" if updates else "NOTHING"
        return f"ON CONFLICT ({', '.join(keys)}) DO {what}"

    def begin(self, cursor: Any) -> None:  # noqa: B027
        """Begins a transaction, where the first statement does not."""

    def is_unique(self, cursor: Any, table: str, keys: Sequence[str]) -> bool:
        """Whether a table has an index of these columns alone, where an upsert needs to know."""
        return True

    def quoted(self, name: str) -> str:
        """A name of a column."""
        return f"{self.quotes}{name.replace(self.quotes, self.quotes * 2)}{self.quotes}"

    def column_type(self, kind: pa.DataType, is_key: bool) -> str | None:
        """The type of a column that is made; None if no column can hold such values."""
        import pyarrow as pa

        if is_key and pa.types.is_string(kind) and self.key_text is not None:
            return self.key_text
        if pa.types.is_decimal(kind):
            return self.types["decimal"].format(kind.precision, kind.scale)
        if pa.types.is_timestamp(kind):
            return self.types["timestamp" if kind.tz is None else "instant"]
        return self.types.get(str(kind))

    def value(self, value: Any) -> Any:
        """A value as the driver takes it."""
        return value

    def insert(self, cursor: Any, table: str, columns: Sequence[str], rows: Rows) -> None:
        """Adds rows to a table; names are quoted."""
        marks = ", ".join([self.mark] * len(columns))
        listed = ", ".join(columns)
        if self.mark == "%s":
            listed = listed.replace("%", "%%")
        cursor.executemany(f"INSERT INTO {table} ({listed}) VALUES ({marks})", rows)


class Postgres(Database):
    """PostgreSQL, through psycopg."""

    module = "psycopg"
    name = "PostgreSQL"
    refused = ("YEARS", "NUL")
    orders: ClassVar = {"string": 'CAST({} AS text) COLLATE "C"'}
    types: ClassVar = {
        "bool": "boolean",
        "int8": "smallint",
        "int16": "smallint",
        "int32": "integer",
        "int64": "bigint",
        "float": "real",
        "double": "double precision",
        "decimal": "numeric({}, {})",
        "string": "text",
        "binary": "bytea",
        "date32[day]": "date",
        "timestamp": "timestamp",
        "instant": "timestamptz",
    }

    def connect(self) -> Any:
        """A connection, in UTC, so that columns without a zone hold times in UTC, too."""
        place = self.url
        if not place.startswith("postgresql://"):
            place = "postgresql:///" + place.removeprefix("postgresql:").lstrip("/")
        given = {"user": self.user, "password": self.password}
        connection = self.driver.connect(place, **{n: v for n, v in given.items() if v is not None})
        connection.execute("SET TIME ZONE 'UTC'")
        connection.commit()
        return connection

    def insert(self, cursor: Any, table: str, columns: Sequence[str], rows: Rows) -> None:
        """Adds rows with COPY."""
        with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


class Sqlite(Database):
    """SQLite, through the standard library."""

    module = "sqlite3"
    name = "SQLite"
    # It would keep null.
    refused = ("YEARS", "NAN")
    mark = "?"
    lock = ""
    orders: ClassVar = {"string": "{} COLLATE BINARY", "decimal128": "{} COLLATE decimals"}
    types: ClassVar = {
        **dict.fromkeys(("bool", "int8", "int16", "int32", "int64"), "INTEGER"),
        **dict.fromkeys(("float", "double"), "REAL"),
        # As numbers they would be rounded to doubles.
        **dict.fromkeys(("decimal", "string", "date32[day]", "timestamp", "instant"), "TEXT"),
        "binary": "BLOB",
    }

    def connect(self) -> Any:
        """A connection that waits a minute for others that write."""
        place = self.url.removeprefix("sqlite:")
        connection = self.driver.connect(place, timeout=60, isolation_level=None)
        with closing(connection.cursor()) as cursor:
            # A batch is noted in Spark's checkpoint after this, so it has to be on the disk.
            cursor.execute("PRAGMA synchronous = FULL")
        connection.create_collation("decimals", lambda a, b: int(Decimal(a).compare(Decimal(b))))
        return connection

    def begin(self, cursor: Any) -> None:
        """A transaction that is alone from its first statement on."""
        cursor.execute("BEGIN IMMEDIATE")

    def value(self, value: Any) -> Any:
        """Times and dates as texts that sort like them, decimals as texts."""
        import datetime as dt

        if isinstance(value, dt.datetime):
            return value.replace(tzinfo=None).isoformat(" ", "microseconds")
        if isinstance(value, dt.date):
            return value.isoformat()
        return str(value) if isinstance(value, Decimal) else value


class Mysql(Database):
    """MySQL and MariaDB, through PyMySQL."""

    module = "pymysql"
    name = "MySQL"
    refused = ("YEARS", "NAN", "INFINITY")
    quotes = "`"
    # An index on texts needs a length.
    key_text = "varchar(255)"
    orders: ClassVar = {"string": "CAST({} AS BINARY)"}
    types: ClassVar = {
        "bool": "boolean",
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "float": "float",
        "double": "double",
        "decimal": "decimal({}, {})",
        "string": "longtext",
        "binary": "longblob",
        "date32[day]": "date",
        **dict.fromkeys(("timestamp", "instant"), "datetime(6)"),
    }

    def connect(self) -> Any:
        """A connection; of the URL's parameters ``ssl_ca`` is known, a file of certificates."""
        parts = urlsplit(self.url)
        parameters = dict(parse_qsl(parts.query))
        file = parameters.pop("ssl_ca", None)
        if parameters:
            names = ", ".join(parameters)
            raise self.driver.ProgrammingError(f"unknown in the URL: {names}; allowed: ssl_ca")
        return self.driver.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=self.user or unquote(parts.username or ""),
            password=self.password or unquote(parts.password or ""),
            database=parts.path.lstrip("/") or None,
            charset="utf8mb4",
            ssl={"ca": file} if file else None,
        )

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str], when: str) -> str:
        """ON DUPLICATE KEY, in the form that MariaDB knows, too."""
        changed = [column for column in columns if column not in keys] or keys[:1]
        updates = ", ".join(f"{c} = IF({when}, excluded.{c}, {table}.{c})" for c in changed)
        return f"ON DUPLICATE KEY UPDATE {updates}"

    def is_unique(self, cursor: Any, table: str, keys: Sequence[str]) -> bool:
        """ON DUPLICATE KEY goes by any index, and adds rows if there is none."""
        cursor.execute(f"SHOW INDEX FROM {table} WHERE Non_unique = 0")
        names = [column[0] for column in cursor.description]
        found: dict[str, set[str]] = {}
        for row in cursor.fetchall():
            index = dict(zip(names, row, strict=True))
            found.setdefault(index["Key_name"], set()).add(index["Column_name"].lower())
        return {key.lower() for key in keys} in found.values()

    def value(self, value: Any) -> Any:
        """Times without their zone, which is UTC."""
        return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


KINDS: Final[dict[str, type[Database]]] = {
    "postgresql": Postgres,
    "postgres": Postgres,
    "sqlite": Sqlite,
    "mysql": Mysql,
    "mariadb": Mysql,
}
"""Databases by what their URL begins with, behind ``jdbc:`` if that is there."""


def database(url: str, user: str | None, password: str | None) -> Database | None:
    """The database of a URL; None if it is of none of :data:`KINDS`."""
    place = url.removeprefix("jdbc:")
    scheme, _, rest = place.partition(":")
    kind = KINDS.get(scheme)
    if kind is None:
        return None
    name = "postgresql" if kind is Postgres else scheme
    return kind(f"{name}:{rest}", user, password)
