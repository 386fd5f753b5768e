"""Conditions on columns that a query pushes down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, NamedTuple

from kwiresniff.base.time_units import EPOCH_ORDINAL
from kwiresniff.model import Exchange
from kwiresniff.pipeline.moments import day_of, seen_ns


class Condition(NamedTuple):
    """A column is one of ``values``; of ``date``, texts like 2026-01-31, between two of them where ``between``."""

    column: str
    values: tuple[str, ...]
    between: bool = False


def _day(exchange: Exchange) -> str | None:
    day = day_of(seen_ns(exchange))
    return None if day is None else date.fromordinal(EPOCH_ORDINAL + day).isoformat()


#: The columns of conditions: those that are known before bodies are read.
COLUMNS: dict[str, Callable[[Exchange], str | None]] = {
    "api": lambda exchange: exchange.api or None,
    "client": lambda exchange: exchange.connection.client,
    "broker": lambda exchange: exchange.connection.broker,
    "client_id": lambda exchange: exchange.client_id,
    "date": _day,
}


def fits(conditions: Iterable[Condition], exchange: Exchange) -> bool:
    """Whether an exchange fulfils all conditions."""
    for column, values, between in conditions:
        value = COLUMNS[column](exchange)
        if value is None or not (values[0] <= value <= values[1] if between else value in values):
            return False
    return True


def conditions(filters: Iterable[Any]) -> list[Condition]:
    """The conditions among Spark's filters, all of which must hold, that are known before bodies are read.

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
