"""The table ``exchanges``, as columns by day and API. Written for mypyc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, final

from kwiresniff.base.time_units import DAY_NS
from kwiresniff.export.column_buffers import BooleanColumn, Column, NameColumn, NumberColumn, TextColumn
from kwiresniff.export.exchange_columns import ExchangeColumns
from kwiresniff.export.json_objects import frame_problem_json
from kwiresniff.export.nested_columns import ListColumn, StructColumn
from kwiresniff.model import Exchange
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.shards import ConnectionNumbers

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Spark and Python have years 1 to 9999, and a column 64 bits of nanoseconds; a capture may claim any time. Year 1 is
#: before what 64 bits hold.
LEAST_NS: Final = -(1 << 63) + 1
MOST_NS: Final = (1 << 63) - 1
#: Moments that need no look at those: mypyc holds them without a Python object.
_SMALL: Final = 1 << 61
#: What the columns take before there is a value in them.
PART_BYTES: Final = 64 << 10
#: The day of what no calendar here can hold.
NO_DAY: Final = -(1 << 31)


@final
class ExchangeRows:
    """Rows of one date and API, or of all of them."""

    def __init__(self, source: str, files: Sequence[str], encode: Callable[[Any], bytes]) -> None:
        """``files`` are the source's in reading order, ``encode`` gives the JSON text of a value."""
        self._source_name = source
        self._encode = encode
        self.columns = ExchangeColumns(files, encode, None)
        self._date = NumberColumn(4)
        self._time = NumberColumn(8)
        self._source = NameColumn()
        self._topics = NameColumn()
        self._partitions = NumberColumn(4)
        self._groups = NameColumn()
        self._error_names = NameColumn()
        self._codes = NameColumn()
        self._errors = StructColumn([TextColumn(), NumberColumn(4), TextColumn(), BooleanColumn()])
        listed = (self._topics, self._partitions, self._groups, self._error_names, self._errors, self._codes)
        self._lists = [ListColumn(one) for one in listed]
        self._problems = TextColumn()

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.columns.rows

    @property
    def held_bytes(self) -> int:
        """About what they take in memory."""
        return self.columns.held_bytes

    def named(self) -> dict[str, Column]:
        """The columns by their names."""
        lists = ("topics", "partitions", "groups", "error_names", "errors", "problem_codes")
        named = self.columns.named()
        named["connection_id"] = named.pop("connection")
        return {
            **named,
            **dict(zip(lists, self._lists, strict=True)),
            "date": self._date,
            "time": self._time,
            "source": self._source,
            "problems": self._problems,
        }

    def arrays(self, schema: Any) -> list[Any]:
        """The columns of a schema as arrays."""
        arrow, named = import_module("pyarrow"), self.named()
        return [named[field.name].array(arrow, field.type) for field in schema]

    def add(self, exchange: Exchange, number: i64, ns: int, day: int, entities: Entities) -> None:
        """One more row: ``number`` is the connection's, ``ns`` the moment that the exchange counts for, on ``day``."""
        columns = self.columns
        before: i64 = self._topics_bytes()
        columns.add(exchange, number)
        if day == NO_DAY:
            self._date.add_none()
            self._time.add_none()
        else:
            self._date.put(day)
            self._time.put(ns // 1000)
        self._source.put(self._source_name)
        for name in entities.topics:
            self._topics.put(name)
        for index in entities.partitions:
            self._partitions.put(index)
        for name in entities.groups:
            self._groups.put(name)
        errors, problems = exchange.errors, exchange.problems
        if errors:
            for name in dict.fromkeys([name for _, _, name, _ in errors]):
                self._error_names.put(name)
            for error in errors:
                self._errors.append(error)
        if problems:
            for name in dict.fromkeys([problem.code for problem in problems]):
                self._codes.put(name)
            self._problems.add(self._encode([frame_problem_json(problem) for problem in problems]))
        else:
            self._problems.add_none()
        for column in self._lists:
            column.end(True)
        columns.held_bytes += self._topics_bytes() - before + 200 * len(errors) + 4 * len(entities.partitions)

    def _topics_bytes(self) -> i64:
        return self._topics.size_bytes + self._groups.size_bytes + self._problems.size_bytes


@final
class ExchangeTable:
    """Rows by date and API, until they are taken."""

    def __init__(
        self, source: str, files: Sequence[str], encode: Callable[[Any], bytes], numbers: ConnectionNumbers
    ) -> None:
        self._source = source
        self._files = files
        self._encode = encode
        self._numbers = numbers
        self.held_bytes: i64 = 0
        self.parts: dict[tuple[int, str], ExchangeRows] = {}
        self._day = NO_DAY
        self._of_day: dict[str, ExchangeRows] = {}  # those of the last exchange's day by their APIs

    def add(self, exchange: Exchange, entities: Entities) -> None:
        """One more exchange, and what it speaks of."""
        ns = seen_ns(exchange)
        day = day_of(ns)
        part = self._part(day, exchange.api)
        before: i64 = part.columns.held_bytes
        part.add(exchange, self._numbers.of(exchange.connection.id), ns, day, entities)
        self.held_bytes += part.columns.held_bytes - before

    def add_to(self, part: ExchangeRows, exchange: Exchange, entities: Entities) -> None:
        """One more exchange, for whoever has all in one place."""
        ns = seen_ns(exchange)
        part.add(exchange, self._numbers.of(exchange.connection.id), ns, day_of(ns), entities)

    def part(self) -> ExchangeRows:
        """A place for exchanges."""
        return ExchangeRows(self._source, self._files, self._encode)

    def take(self, key: tuple[int, str]) -> ExchangeRows:
        """The rows of a day and an API, which are not held here any longer."""
        part = self.parts.pop(key)
        self.held_bytes -= part.columns.held_bytes
        self._of_day.clear()
        return part

    def fullest(self) -> tuple[int, str]:
        """The day and the API with the most bytes."""
        return max(self.parts, key=lambda key: self.parts[key].held_bytes)

    def _part(self, day: int, api: str) -> ExchangeRows:
        if day != self._day:
            self._day = day
            self._of_day.clear()
        found = self._of_day.get(api)
        if found is not None:
            return found
        key = (day, api)
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = self.part()
            part.columns.held_bytes = PART_BYTES
            self.held_bytes += PART_BYTES
        self._of_day[api] = part
        return part


def seen_ns(exchange: Exchange) -> int:
    """The moment an exchange counts for: its request's first byte, its response's when the request is missing."""
    message = exchange.request or exchange.response
    return message.first_ns if message is not None else 0


def day_of(ns: int) -> int:
    """The UTC day of a moment, counted from 1970; ``NO_DAY`` for what no calendar here can hold."""
    return ns // DAY_NS if -_SMALL < ns < _SMALL or LEAST_NS <= ns <= MOST_NS else NO_DAY


def micros_of(ns: int) -> int | None:
    """Microseconds since 1970, None for what no calendar here can hold."""
    return ns // 1000 if LEAST_NS <= ns <= MOST_NS else None
