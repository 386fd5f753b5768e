"""Choice of exchanges: a filter expression, and conditions on columns that a query pushes down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, NamedTuple

from kwiresniff.analysis.filter import compile_filter
from kwiresniff.base.needs import Needs
from kwiresniff.base.time_units import EPOCH_ORDINAL
from kwiresniff.model import Exchange, TopicNames
from kwiresniff.pipeline.exchange_table import NO_DAY, day_of, seen_ns


class Condition(NamedTuple):
    """A column is one of ``values``; of ``date``, texts like 2026-01-31, between two of them where ``between``."""

    column: str
    values: tuple[str, ...]
    between: bool = False


def _day(exchange: Exchange) -> str | None:
    day = day_of(seen_ns(exchange))
    return None if day == NO_DAY else date.fromordinal(EPOCH_ORDINAL + day).isoformat()


#: What conditions may be on: what is known of an exchange before its bodies are read.
COLUMNS: dict[str, Callable[[Exchange], str | None]] = {
    "api": lambda exchange: exchange.api or None,
    "client": lambda exchange: exchange.connection.client,
    "broker": lambda exchange: exchange.connection.broker,
    "client_id": lambda exchange: exchange.client_id,
    "date": _day,
}


class Choice:
    """The exchanges that are wanted.

    ``connections`` are those that are open and have had an exchange that is wanted. ``decodes`` says that records are
    read.
    """

    def __init__(
        self,
        where: str | None,
        conditions: Iterable[Condition],
        topic_name: TopicNames,
        always_decoded: frozenset[int] = frozenset(),
    ) -> None:
        """The APIs that are ``always_decoded`` may have what plugins learn from. Raises FilterError for an expression
        that makes no sense.
        """
        self._always_decoded = always_decoded
        self.decodes = False
        self._filter = None if where is None else compile_filter(where, topic_name)
        self._conditions = tuple(conditions)
        self.connections: set[int] = set()

    @property
    def needs(self) -> Needs:
        """The needs of ``matches``."""
        return Needs("headers") if self._filter is None else self._filter.needs

    @property
    def reads_decoded(self) -> bool:
        """Whether ``matches`` looks at what plugins make of keys and values."""
        return self._filter is not None and self._filter.reads_decoded

    @property
    def chooses(self) -> bool:
        """Whether there may be exchanges that are not wanted."""
        return self._filter is not None or bool(self._conditions)

    def header_verdict(self, exchange: Exchange) -> bool | None:
        """The verdict before any body is decoded; None is a maybe."""
        fits: bool | None = self._fits(exchange)
        if fits and self._filter is not None:
            fits = self._filter.matches_header(exchange)
        return None if fits is False and exchange.api_key in self._always_decoded else fits

    def matches(self, exchange: Exchange) -> bool:
        """The verdict, once bodies are decoded as ``needs`` says."""
        return self._fits(exchange) and (self._filter is None or self._filter.matches(exchange))

    def _fits(self, exchange: Exchange) -> bool:
        for column, values, between in self._conditions:
            value = COLUMNS[column](exchange)
            if value is None or not (values[0] <= value <= values[1] if between else value in values):
                return False
        return True


def conditions(filters: Iterable[Any]) -> list[Condition]:
    """What of Spark's filters, all of which must hold, can be said of an exchange before its bodies are read.

    They are ``pyspark.sql.datasource`` filters, told apart by the names of their classes.
    """
    found = []
    for one in filters:
        column = one.attribute[0] if len(getattr(one, "attribute", ())) == 1 else ""
        if column not in COLUMNS:
            continue
        kind, value = type(one).__name__, getattr(one, "value", None)
        if kind in ("EqualTo", "EqualNullSafe") and value is not None:
            found.append(Condition(column, (str(value),)))
        elif kind == "In" and value is not None:
            found.append(Condition(column, tuple(str(item) for item in value if item is not None)))
        elif column == "date" and kind in ("GreaterThan", "GreaterThanOrEqual"):
            found.append(Condition(column, (str(value), "9999-12-31"), True))
        elif column == "date" and kind in ("LessThan", "LessThanOrEqual"):
            found.append(Condition(column, ("0001-01-01", str(value)), True))
    return found
