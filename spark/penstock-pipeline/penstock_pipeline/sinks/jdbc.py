"""Sink ``jdbc``: a table of a database, written in one transaction that notes the batch.

PostgreSQL, SQLite and MySQL are written through their drivers in Python, exactly once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock_pipeline.errors import NotWritable, PipelineError
from penstock_pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock_pipeline.sinks.changes import EVOLVE, SCHEMA, read_changes
from penstock_pipeline.sinks.databases import KINDS, Database, database
from penstock_pipeline.sinks.table import TableSink, first_line, not_above
from penstock_pipeline.toml_file import Key, Table, beside
from pyspark_redis_streams.batches import BatchMark, is_written

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock_pipeline.sinks.refused import Refusal


@dataclass(frozen=True)
class JdbcSink(TableSink):
    """A table of a database that has a driver in Python."""

    kind = "jdbc"
    keys = (
        Key("url", what="where the database is, as jdbc:postgresql://host/database"),
        Key("table", what="the table that gets the rows"),
        Key("user"),
        Key("password"),
        SCHEMA,
    )

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file."""
        changes, given = read_changes(table, common), table.section(cls.keys)
        place, schema = given.pop("table"), given.pop("schema")
        options = {name: text for name, text in given.items() if text is not None}
        url = options["url"]
        if url and database(url, None, None) is None:
            table.wrong("url", f"begins with none of {', '.join(KINDS)}")
        name, origin, mode = common
        options["url"] = beside(url, table.findings.folder)
        return cls(name, origin, place, mode, options=options, changes=changes, schema=schema)

    @property
    def destination(self) -> str:
        """The table and its database, without user and password."""
        place = f"table {self.place} of {redacted(self.options['url'])}"
        return place + self.changes.describe()

    def require(self) -> None:
        """Raises PipelineError if the driver's package is not installed."""
        self.require_packages(self._database.module)

    def open(self) -> Any:
        """The table, as the database knows it."""
        keys, order = self.changes.keys, self.changes.order_by
        return Target(self._database, self.place, keys, self.name, self.schema, order)

    def noted(self, opened: Any, batch: Batch) -> BatchMark | None:
        """The last batch that the database holds."""
        return last_batch(opened, f"{batch.query}/{self.name}")

    def commit(self, opened: Any, rows: pa.Table, removed: pa.Table | None, batch: Batch) -> None:
        """Writes a batch in one transaction that notes query and batch."""
        write_batch(opened, rows, removed, f"{batch.query}/{self.name}", batch.mark)

    @property
    def refusals(self) -> Sequence[Refusal]:
        """The values that the database does not take."""
        from penstock_pipeline.sinks import refused

        found: tuple[Refusal, ...] = tuple(getattr(refused, n) for n in self._database.refused)
        return found

    @property
    def whose(self) -> str:
        """The database."""
        return self._database.name

    @property
    def refuses_nul(self) -> bool:
        """Whether it is PostgreSQL."""
        return "NUL" in self._database.refused

    @property
    def _database(self) -> Database:
        options = self.options
        found = database(options["url"], options.get("user"), options.get("password"))
        assert found is not None, "otherwise it is another kind of sink"
        return found

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Says of what the driver raises whether another attempt may help."""
        driver = self._database.driver
        hopeless = (driver.DataError, driver.IntegrityError, driver.ProgrammingError)
        try:
            yield
        except (*hopeless, driver.NotSupportedError) as error:
            where = _COLUMN.search(str(error))
            if where is None:
                raise self.not_writable(error) from None
            raise NotWritable(
                f"sink '{self.name}': column '{where[1]}': {first_line(error)}; cast it in SQL, or "
                "leave such rows out"
            ) from None
        except driver.Error as error:
            # SQLite has one class for what is wrong in a statement and for what passes.
            kind = NotWritable if "ON CONFLICT clause" in str(error) else PipelineError
            raise kind(f"sink '{self.name}': {first_line(error)}") from None


_COLUMN: Final = re.compile(r"^CONTEXT:  COPY .+, line \d+, column (.+?):", re.MULTILINE)
"""Where PostgreSQL names the column of a value that it refuses."""


def redacted(url: str) -> str:
    """A database's URL without parameters, user and password: ``jdbc:mysql:***@host/database``."""
    bare = re.split(r"[?;]", url)[0]
    before, at, place = bare.rpartition("@")
    count = 2 if url.startswith("jdbc:") else 1
    return f"{':'.join(before.split(':')[:count])}:***@{place}" if at else bare


# --- Writing a batch -----------------------------------------------------------------------------


REGISTER: Final = "penstock_batches"
"""The table with the last batch of each query, beside the table that is written."""

_END: Final = "batch_end"
_STAGED: Final = "penstock_staged"
_REMOVED: Final = "penstock_removed"
_SLICE: Final = 10_000


class Target(NamedTuple):
    """A table of a database, as its SQL names it, and the columns by which rows are found.

    ``schema`` says whether the table may get columns, ``order`` names those in which a row must not
    be lower than that of its key in the table.
    """

    database: Database
    table: str
    keys: tuple[str, ...]
    sink: str
    schema: str = EVOLVE
    order: tuple[str, ...] = ()

    @property
    def register(self) -> str:
        """The table of batches in the same schema."""
        return "".join((*self.table.rpartition(".")[:2], REGISTER))


def last_batch(target: Target, query: str) -> BatchMark | None:
    """The last batch of the query that the database holds."""
    with closing(target.database.connect()) as connection, closing(connection.cursor()) as cursor:
        if _columns(cursor, connection, target.register) is None:
            return None
        return _last(target, cursor, query)


def write_batch(
    target: Target, written: pa.Table, removed: pa.Table | None, query: str, mark: BatchMark
) -> None:
    """Adds, replaces and removes rows, and notes the batch; nothing of that if it is noted.

    Raises NotWritable for columns that the table does not have and must not get, CheckpointError
    if another batch is noted in its place, and what the driver raises.
    """
    with closing(target.database.connect()) as connection, closing(connection.cursor()) as cursor:
        columns = _prepared(target, connection, cursor, written)
        try:
            target.database.begin(cursor)
            noted = _last(target, cursor, query)
            if not is_written(noted, mark, f"sink '{target.sink}': the table"):
                if removed is not None and len(removed):
                    _remove(target, cursor, removed, columns)
                if len(written):
                    _add(target, cursor, written, columns)
                _note(target, cursor, query, mark)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise


def _prepared(target: Target, connection: Any, cursor: Any, rows: pa.Table) -> dict[str, str]:
    """Makes both tables if they are not there, and adds columns; their quoted names.

    That is a step of its own, which a repetition finds done: MySQL changes no table in a
    transaction.
    """
    quoted = target.database.quoted
    _prepare_register(target, connection, cursor)
    _make(connection, cursor, target.table, _definition(target, rows.schema))
    known = {name.lower(): name for name in _known(target, connection, cursor, rows.schema)}
    if target.keys and not target.database.is_unique(cursor, target.table, target.keys):
        raise NotWritable(
            f"sink '{target.sink}': table {target.table} has no unique index of "
            f"{', '.join(target.keys)}, which 'keys' needs"
        )
    return {name: quoted(column) for name, column in known.items()}


def _prepare_register(target: Target, connection: Any, cursor: Any) -> None:
    register = target._replace(table=target.register)
    end = f"{_END} text"
    types = f"query varchar(200) PRIMARY KEY, batch bigint NOT NULL, {end}"
    _make(connection, cursor, register.table, types)
    # Earlier versions remembered the number only.
    if not _is_in(_END, _columns(cursor, connection, register.table) or []):
        _add_column(register, connection, cursor, _END, end)


def _known(target: Target, connection: Any, cursor: Any, schema: pa.Schema) -> list[str]:
    """The columns of the table, after those have been added that it lacks."""
    found = _columns(cursor, connection, target.table) or []
    lacking = [field for field in schema if not _is_in(field.name, found)]
    if not lacking:
        return found
    keys = [field for field in lacking if _is_in(field.name, target.keys)]
    if keys or target.schema != EVOLVE:
        named = ", ".join(f"'{field.name}' ({field.type})" for field in keys or lacking)
        why, advice = "schema = 'freeze'", "use schema = 'evolve', or leave the column out in SQL"
        if keys:
            why, advice = "'keys' needs it", "add it there, with a unique index"
        raise NotWritable(
            f"sink '{target.sink}': table {target.table} has no column {named}, and {why}; it has "
            f"{', '.join(found)}; {advice}"
        )
    definitions = [_column(target, field) for field in lacking]
    for field, definition in zip(lacking, definitions, strict=True):
        _add_column(target, connection, cursor, field.name, definition)
    return _columns(cursor, connection, target.table) or []


def _is_in(name: str, names: Sequence[str]) -> bool:
    return name.lower() in (each.lower() for each in names)


def _add_column(target: Target, connection: Any, cursor: Any, name: str, definition: str) -> None:
    try:
        cursor.execute(f"ALTER TABLE {target.table} ADD COLUMN {definition}")
        connection.commit()
    except Exception:
        # Another query may have added it in the same moment.
        connection.rollback()
        if not _is_in(name, _columns(cursor, connection, target.table) or []):
            raise


def _make(connection: Any, cursor: Any, table: str, definition: str) -> None:
    if _columns(cursor, connection, table) is not None:
        return
    try:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} ({definition})")
        connection.commit()
    except Exception:
        # Another query may have made it in the same moment.
        connection.rollback()
        if _columns(cursor, connection, table) is None:
            raise


def _definition(target: Target, schema: pa.Schema) -> str:
    columns = [_column(target, field) for field in schema]
    named = [field.name for field in schema if _is_in(field.name, target.keys)]
    if named:
        columns.append(f"PRIMARY KEY ({', '.join(map(target.database.quoted, named))})")
    return ", ".join(columns)


def _column(target: Target, field: pa.Field) -> str:
    is_key = _is_in(field.name, target.keys)
    kind = target.database.column_type(field.type, is_key)
    if kind is None:
        raise NotWritable(
            f"sink '{target.sink}': column '{field.name}' is {field.type}, which no column of "
            "a database holds; make a text of it in SQL, as to_json does"
        )
    return f"{target.database.quoted(field.name)} {kind}{' NOT NULL' if is_key else ''}"


def _columns(cursor: Any, connection: Any, table: str) -> list[str] | None:
    """The columns of a table; None if there is no such table."""
    try:
        cursor.execute(f"SELECT * FROM {table} WHERE 1 = 0")
    except Exception as error:
        connection.rollback()
        if _is_missing(error):
            return None
        raise
    found = [column[0] for column in cursor.description]
    connection.commit()
    return found


def _is_missing(error: Exception) -> bool:
    """Whether the error says that there is no such table."""
    state = getattr(error, "sqlstate", None)
    is_mysql = bool(error.args) and error.args[0] == 1146
    return state == "42P01" or is_mysql or str(error).startswith("no such table")


def _last(target: Target, cursor: Any, query: str) -> BatchMark | None:
    """The last batch of the query, None before the first; others have to wait until the commit."""
    database = target.database
    cursor.execute(
        f"SELECT * FROM {target.register} WHERE query = {database.mark}{database.lock}",
        (query,),
    )
    row = cursor.fetchone()
    if row is None:
        return None
    found = dict(zip((column[0] for column in cursor.description), row, strict=True))
    return BatchMark(int(found["batch"]), found.get(_END) or "")


def _note(target: Target, cursor: Any, query: str, batch: BatchMark) -> None:
    # A new row first, so that a number is never raised by a statement that changed none.
    mark = target.database.mark
    cursor.execute(f"DELETE FROM {target.register} WHERE query = {mark}", (query,))
    cursor.execute(
        f"INSERT INTO {target.register} (query, batch, {_END}) VALUES ({mark}, {mark}, {mark})",
        (query, *batch),
    )


def _stage(target: Target, cursor: Any, name: str, rows: pa.Table, columns: Sequence[str]) -> None:
    """Puts rows into a table that only this connection sees, with the types of the target."""
    temporary = "TEMP" if target.database.quotes == '"' else "TEMPORARY"
    select = f"SELECT {', '.join(columns)} FROM {target.table} WHERE 1 = 0"
    cursor.execute(f"CREATE {temporary} TABLE {name} AS {select}")
    for batch in rows.to_batches(_SLICE):
        target.database.insert(cursor, name, columns, _values(target.database, batch))


def _values(database: Database, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = (map(database.value, column.to_pylist()) for column in batch.columns)
    return zip(*columns, strict=True)


def _add(target: Target, cursor: Any, rows: pa.Table, columns: dict[str, str]) -> None:
    names = _quoted(columns, rows.column_names)
    _stage(target, cursor, _STAGED, rows, names)
    listed = ", ".join(names)
    statement = f"INSERT INTO {target.table} ({listed}) SELECT {listed} FROM {_STAGED} excluded"
    if target.keys:
        keys, order = _quoted(columns, target.keys), _quoted(columns, target.order)
        # MySQL compares with what has been set, so the column that counts most is the last.
        changed = [name for name in names if name not in order] + order[::-1]
        when = _not_above(target, rows, columns, "excluded")
        # Without WHERE SQLite would take ON for that of a join.
        statement += " WHERE true " + target.database.upsert(target.table, changed, keys, when)
    cursor.execute(statement)


def _remove(target: Target, cursor: Any, rows: pa.Table, columns: dict[str, str]) -> None:
    _stage(target, cursor, _REMOVED, rows, _quoted(columns, rows.column_names))
    keys = _quoted(columns, target.keys)
    same = " AND ".join(f"{_REMOVED}.{key} = {target.table}.{key}" for key in keys)
    same += f" AND {_not_above(target, rows, columns, _REMOVED)}"
    cursor.execute(
        f"DELETE FROM {target.table} WHERE EXISTS (SELECT 1 FROM {_REMOVED} WHERE {same})"
    )


def _not_above(target: Target, rows: pa.Table, columns: dict[str, str], given: str) -> str:
    kinds = {field.name.lower(): str(field.type).partition("(")[0] for field in rows.schema}
    pairs = []
    for name in map(str.lower, target.order):
        form, column = target.database.orders.get(kinds[name], "{}"), columns[name]
        pairs.append((form.format(f"{target.table}.{column}"), form.format(f"{given}.{column}")))
    return not_above(pairs)


def _quoted(columns: dict[str, str], names: Iterable[str]) -> list[str]:
    return [columns[name.lower()] for name in names]
