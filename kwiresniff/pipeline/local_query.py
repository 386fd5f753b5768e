"""SQL of DuckDB over the pipeline's tables of one reading, without Spark.

The SQL is checked before captures are read, against tables without rows. It sees the Parquet files of this reading and
nothing else: DuckDB keeps whoever asks out of all other files, and its settings are locked. What does not fit into
memory lies beside the tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any, Final
from uuid import UUID

from kwiresniff.errors import KwiresniffError
from kwiresniff.export.table_columns import PARTITIONED_BY, SKETCH, TABLES, WRITABLE, arrow_schema
from kwiresniff.pipeline.query import percentile_ns
from kwiresniff.pipeline.table_writer import TableWriter

#: The tables that SQL may name; ``audit`` needs a release to hold clients against.
LOCAL_TABLES: Final = tuple(table for table in WRITABLE if table != "audit")
#: What DuckDB may hold at a time, however large the tables are.
MEMORY_LIMIT: Final = "512MiB"
_WORD: Final = re.compile(r"\w+")
#: Rows that are fetched at a time.
_FETCHED: Final = 1024


class LocalQuery:
    """A question to tables in ``folder``, which nobody else may read. ``tables`` are those that it names.

    Write them with ``writer``, and ask for ``rows``. Raises KwiresniffError for SQL that DuckDB does not understand,
    and for anything but one question: what changes data or settings is none.
    """

    def __init__(self, sql: str, folder: str) -> None:
        self._folder, self._sql = folder, sql
        try:
            self._duckdb, arrow = import_module("duckdb"), import_module("pyarrow")
            import_module("numpy")  # which functions in Python need
        except ImportError as error:
            raise KwiresniffError(f'query needs DuckDB ({error}); pip install "kwiresniff[query]"') from error
        self._connection = self._duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": os.path.join(folder, "overflow"),
                "python_enable_replacements": False,  # variables of this program are no tables
            },
        )
        self.writer = TableWriter(folder, os.path.join(folder, "staging"), "0")
        run = self._connection.execute
        for table in LOCAL_TABLES:
            self._connection.from_arrow(arrow.Table.from_batches([], arrow_schema(table))).create(table)
        run("CREATE MACRO collect_list(one) AS list(one)")
        kind = SKETCH.replace("ARRAY<STRUCT<bucket: BIGINT, count: BIGINT>>", "STRUCT(bucket BIGINT, count BIGINT)[]")
        kind = kind.replace("STRUCT<", "STRUCT(").replace(":", "").replace(">", ")")
        types = [self._duckdb.sqltype(f"{kind}[]"), self._duckdb.sqltype("DOUBLE")]
        number = self._duckdb.sqltype("BIGINT")
        self._connection.create_function("percentile_ns", percentile_ns, types, number, null_handling="special")
        run("SET TimeZone = 'UTC'")
        run(f"SET allowed_directories = [{_text(folder)}]")
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")
        with self._errors():
            self.tables = self._checked()

    def _checked(self) -> Sequence[str]:
        """The tables that the SQL names, which must be one question that makes sense."""
        statements = self._connection.extract_statements(self._sql)
        kinds = [statement.type.name for statement in statements]
        if not kinds:
            raise KwiresniffError("query: there is no SQL in it")
        if kinds != ["SELECT"]:
            what = kinds[0] if len(kinds) == 1 else f"{len(kinds)} statements"
            raise KwiresniffError(f"query: one SELECT can be asked for, alone or behind WITH, and this is {what}")
        self._connection.execute(f"EXPLAIN {statements[0].query}")
        words = _WORD.findall(self._sql.lower())  # a column may be called as a table is, which is only more work
        return [table for table in LOCAL_TABLES if table in words]

    def rows(self) -> tuple[list[str], Iterator[list[Any]]]:
        """Column names and rows of the answer, once all is written. DuckDB's errors are KwiresniffError, also those
        that show when a row comes.
        """
        files = [os.path.join(self._folder, name) for name in self.writer.publish()]
        with self._errors():
            for table in self.tables:
                self._show(table, [file for file in files if file.startswith(os.path.join(self._folder, table, ""))])
            answer = self._interruptible(self._connection.execute, self._sql)
            return [column[0] for column in answer.description], self._fetched(answer)

    def _show(self, table: str, files: Sequence[str]) -> None:
        """Makes a table of files; one without any stays empty."""
        if not files:
            return
        folders = PARTITIONED_BY.get(table, ())
        columns = [f'"{one.name}"' for one in TABLES[table]]
        kinds = ", ".join(f"'{name}': DATE" for name in folders)
        how = f"hive_partitioning = true, hive_types = {{{kinds}}}" if folders else "hive_partitioning = false"
        self._connection.execute(f"DROP TABLE {table}")
        self._connection.execute(
            f"CREATE VIEW {table} AS SELECT {', '.join(columns)} "
            f"FROM read_parquet([{', '.join(map(_text, files))}], {how})"
        )

    def _fetched(self, answer: Any) -> Iterator[list[Any]]:
        with self._errors():
            while rows := self._interruptible(answer.fetchmany, _FETCHED):
                for row in rows:
                    yield [_plain(value) for value in row]

    def _interruptible(self, work: Callable[[Any], Any], argument: Any) -> Any:
        """Has DuckDB work in another thread: in the first one it would keep signals waiting until it has an answer."""
        with ThreadPoolExecutor(1) as pool:
            try:
                return pool.submit(work, argument).result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._duckdb.Error as error:  # behind its message stands the line of the SQL
            raise KwiresniffError(f"query: {str(error).split(chr(10) + 'LINE ')[0]}") from error

    def close(self) -> None:
        """Ends DuckDB, and what was not written to its end."""
        self.writer.discard()
        self._connection.close()


def _text(value: str) -> str:
    """A text as SQL has it."""
    return "'" + value.replace("'", "''") + "'"


def _plain(value: Any) -> Any:
    """A value of DuckDB's as ``kwiresniff.pipeline.query`` gives it: times in UTC (RFC 3339), and what JSON has no form
    for as text.
    """
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="microseconds")
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, Decimal):
        return float(value)
    return str(value) if isinstance(value, date | time | timedelta | UUID) else value
