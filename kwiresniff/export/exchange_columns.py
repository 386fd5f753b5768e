"""Exchanges as columns, bodies as JSON text: what Parquet and the pipeline's tables are made of. Written for mypyc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwiresniff.base.packet_references import PACKET_BITS, PACKET_MASK
from kwiresniff.export.column_buffers import Column, NameColumn, NumberColumn, TextColumn
from kwiresniff.model import Exchange, Message

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What a row takes besides its texts, about: its columns, and Arrow's copy of them.
ROW_BYTES: Final = 512


class MessageColumns:
    """One side of an exchange."""

    def __init__(self, files: Sequence[str], encode: Callable[[Any], bytes]) -> None:
        self._files = files
        self._encode = encode
        self._index: i64 = -1
        self._file: str | None = None
        self.timestamp_ns = NumberColumn(8)
        self.file = NameColumn()
        self.first_packet = NumberColumn(8)
        self.last_packet = NumberColumn(8)
        self.size_bytes = NumberColumn(8)
        self.header_version = NumberColumn(2)
        self.body = TextColumn()

    def named(self, side: str) -> dict[str, Column]:
        """The columns by their names."""
        return {
            f"{side}_timestamp_ns": self.timestamp_ns,
            f"{side}_file": self.file,
            f"{side}_first_packet": self.first_packet,
            f"{side}_last_packet": self.last_packet,
            f"{side}_size_bytes": self.size_bytes,
            f"{side}_header_version": self.header_version,
            f"{side}_body": self.body,
        }

    def add(self, message: Message | None) -> i64:
        """One more message, or none; returns how much its texts take."""
        body = self.body
        if message is None:
            for column in (self.timestamp_ns, self.first_packet, self.last_packet, self.size_bytes):
                column.add_none()
            self.header_version.add_none()
            self.file.put(None)
            body.add_none()
            return 0
        self.timestamp_ns.add(message.first_ns)
        first: i64 = message.first_packet
        last: i64 = message.last_packet
        index: i64 = first >> PACKET_BITS
        if index != self._index:
            self._index = index
            self._file = self._files[index] if index < len(self._files) else None
        file = self.file
        before: i64 = body.size_bytes + file.size_bytes
        file.put(self._file)
        self.first_packet.put(first & PACKET_MASK)
        self.last_packet.put(last & PACKET_MASK)
        self.size_bytes.put(message.size_bytes)
        self.header_version.put(message.header_version)
        text = message.text
        if text is not None:
            for piece in text:
                body.write(piece)
            body.end(True)
        elif message.body is not None:
            body.add(self._encode(message.body))
        else:
            body.add_none()
        return body.size_bytes + file.size_bytes - before


class ExchangeColumns:
    """The columns that every table of exchanges has."""

    def __init__(self, files: Sequence[str], encode: Callable[[Any], bytes], no_api: str | None) -> None:
        """``files`` are the captures in reading order, ``encode`` gives the JSON text of a value, ``no_api`` stands for
        the API of a request that is missing."""
        self._no_api = no_api
        self.rows: i64 = 0
        self.held_bytes: i64 = 0
        self.names = [NameColumn() for _ in range(6)]
        self.keys = [NumberColumn(8), NumberColumn(2), NumberColumn(2), NumberColumn(4)]
        self.times = [NumberColumn(8) for _ in range(6)]
        self.request = MessageColumns(files, encode)
        self.response = MessageColumns(files, encode)

    def named(self) -> dict[str, Column]:
        """The columns by their names."""
        names = ("client", "broker", "api", "client_id", "outcome", "waiting")
        keys = ("connection", "api_key", "api_version", "correlation_id")
        times = ("latency_ns", "queued_ns", "held_ns", "broker_ns", "request_ns", "response_ns")
        return {
            **dict(zip(names, self.names, strict=True)),
            **dict(zip(keys, self.keys, strict=True)),
            **dict(zip(times, self.times, strict=True)),
            **self.request.named("request"),
            **self.response.named("response"),
        }

    def add(self, exchange: Exchange, connection: i64) -> None:
        """One more exchange, of the connection with that number."""
        request, response = exchange.request, exchange.response
        names = self.names
        before: i64 = names[0].size_bytes + names[3].size_bytes
        names[0].put(exchange.connection.client)
        names[1].put(exchange.connection.broker)
        names[2].put(exchange.api or self._no_api)
        names[3].put(exchange.client_id)
        names[4].put(exchange.outcome)
        names[5].put(exchange.waiting or None)
        keys = self.keys
        keys[0].put(connection)
        keys[1].put(exchange.api_key)
        keys[2].put(exchange.api_version)
        keys[3].put(exchange.correlation_id)
        self._add_times(exchange, request, response)
        self.held_bytes += names[0].size_bytes + names[3].size_bytes - before
        self.held_bytes += self.request.add(request) + self.response.add(response) + ROW_BYTES
        self.rows += 1

    def _add_times(self, exchange: Exchange, request: Message | None, response: Message | None) -> None:
        latency, queued, held, broker, request_ns, response_ns = self.times
        queued_ns, held_ns = exchange.queued, exchange.held
        if queued_ns < 0:
            queued.add_none()
        else:
            queued.add(queued_ns)
        if held_ns < 0:
            held.add_none()
        else:
            held.add(held_ns)
        if request is not None:
            request_ns.add(request.last_ns - request.first_ns)
        else:
            request_ns.add_none()
        if response is not None:
            response_ns.add(response.last_ns - response.first_ns)
        else:
            response_ns.add_none()
        if request is None or response is None:
            latency.add_none()
            broker.add_none()
            return
        latency_ns = response.first_ns - request.last_ns
        if latency_ns < 0:
            latency.add_none()
            broker.add_none()
            return
        latency.add(latency_ns)
        if queued_ns < 0 or held_ns < 0:
            broker.add_none()
        else:
            broker.add(latency_ns - exchange.path - queued_ns - held_ns)
