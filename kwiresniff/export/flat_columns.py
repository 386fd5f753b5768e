"""The columns of ``kwiresniff.export.flat``, and the bodies, for Parquet. Written for mypyc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kwiresniff.export.column_buffers import Column, NameColumn, NumberColumn, TextColumn
from kwiresniff.export.exchange_columns import ExchangeColumns
from kwiresniff.export.times import rfc3339
from kwiresniff.model import Exchange, Message


class FlatColumns:
    """The columns of one row group; ``encode`` gives the JSON text of a body."""

    def __init__(self, files: Sequence[str], encode: Callable[[Any], bytes]) -> None:
        self.exchanges = ExchangeColumns(files if len(files) > 1 else (), encode, "")
        self._request_time = TextColumn()
        self._response_time = TextColumn()
        self._errors = NameColumn()
        self._error_count = NumberColumn(8)
        self._problems = NameColumn()

    def named(self) -> dict[str, Column]:
        """By the names of ``COLUMNS``."""
        return {
            **self.exchanges.named(),
            "request_time": self._request_time,
            "response_time": self._response_time,
            "errors": self._errors,
            "error_count": self._error_count,
            "problems": self._problems,
        }

    def add(self, exchange: Exchange) -> None:
        """One more row."""
        self.exchanges.add(exchange, exchange.connection.id)
        self._add_time(self._request_time, exchange.request)
        self._add_time(self._response_time, exchange.response)
        errors, problems = exchange.errors, exchange.problems
        self._errors.put(" ".join(dict.fromkeys([name for _, _, name, _ in errors])) if errors else None)
        self._error_count.add(len(errors))
        self._problems.put(" ".join(dict.fromkeys([one.code for one in problems])) if problems else None)

    def _add_time(self, column: TextColumn, message: Message | None) -> None:
        text = None if message is None else rfc3339(message.first_ns)
        if text is None:
            column.add_none()
        else:
            column.add(text.encode())
