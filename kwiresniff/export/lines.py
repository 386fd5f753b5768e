"""Exchanges whose bodies are text already, as lines of JSON.

The members are those of ``exchange_json`` in the same order; a test holds the two equal. What repeats is kept as text:
connections, names, and the second that a time lies in. Compiled this takes less than half of what making the dict and
encoding it does; uncompiled it takes as long, so it is for text alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kwiresniff.export.objects import SCHEMA_VERSION, errors_json, file_name, frame_problem_json
from kwiresniff.export.times import SECOND_NS, rfc3339
from kwiresniff.model import PACKET_BITS, PACKET_MASK, Connection, Exchange, Message

#: Connections and names whose text is kept; then all are forgotten.
MAX_KEPT: Final = 4096


def has_text(exchange: Exchange) -> bool:
    """Whether one of the bodies is text."""
    request, response = exchange.request, exchange.response
    return (request is not None and request.text is not None) or (response is not None and response.text is not None)


class ExchangeLines:
    """Makes lines; ``encode`` gives the JSON text of any value. ``files`` are the captures in reading order."""

    def __init__(self, encode: Callable[[Any], bytes], files: Sequence[str] = ()) -> None:
        self._encode = encode
        self._files = files
        self._connections: dict[Connection, str] = {}
        self._names: dict[str | None, str] = {}
        self._file_names: dict[int, str] = {}
        self._begin_second(0)

    def line(self, exchange: Exchange) -> list[bytes]:
        """The exchange as UTF-8 in pieces, the last one with a newline at its end."""
        request, response = exchange.request, exchange.response
        latency = request_time = response_time = "null"
        if request is not None:
            request_time = str(request.last_ns - request.first_ns)
            if response is not None:
                latency = str(response.first_ns - request.last_ns)
        if response is not None:
            response_time = str(response.last_ns - response.first_ns)
        timing = "null"
        if request is not None or response is not None:
            timing = f'{{"request_ns":{request_time},"wait_ns":{latency},"response_ns":{response_time}}}'
        front = (
            f'{self._connection(exchange.connection)},"api_key":{exchange.api_key},"api":{self._name(exchange.api)}'
            f',"api_version":{exchange.api_version},"correlation_id":{exchange.correlation_id}'
            f',"client_id":{self._name(exchange.client_id)},"outcome":"{exchange.outcome}","latency_ns":{latency}'
            f',"timing":{timing},"request":'
        )
        pieces: list[bytes] = []
        if request is not None:
            pieces.append(f"{front}{self._message(request)}".encode())
            pieces += request.text or [self._encode(request.body)]
            front = '},"response":'
        else:
            front = f'{front}null,"response":'
        if response is not None:
            pieces.append(f"{front}{self._message(response)}".encode())
            pieces += response.text or [self._encode(response.body)]
            front = "}"
        else:
            front = f"{front}null"
        if exchange.errors or exchange.problems or exchange.notes:
            pieces.append(front.encode() + self._remarks(exchange))
        else:
            pieces.append(f'{front},"errors":[],"problems":[]}}\n'.encode())
        return pieces

    def _remarks(self, exchange: Exchange) -> bytes:
        errors = self._encode(errors_json(exchange))
        problems = self._encode([frame_problem_json(problem) for problem in exchange.problems])
        notes = b',"notes":' + self._encode(list(exchange.notes)) if exchange.notes else b""
        return b',"errors":%b,"problems":%b%b}\n' % (errors, problems, notes)

    def _message(self, message: Message) -> str:
        """The members of a message up to its body."""
        ns = message.first_ns
        second = ns // SECOND_NS
        if second != self._second:
            self._begin_second(second)
        fraction = str(ns - second * SECOND_NS + SECOND_NS)[1:]
        time = f'"{self._second_text}{fraction}Z"' if self._second_text else "null"
        number = f"{self._second_number}{fraction}" if second > 0 else str(ns)
        file = self._file(message.first_packet >> PACKET_BITS) if len(self._files) > 1 else ""
        return (
            f'{{"time":{time},"timestamp_ns":{number}{file},"first_packet":{message.first_packet & PACKET_MASK}'
            f',"last_packet":{message.last_packet & PACKET_MASK},"size_bytes":{message.size_bytes}'
            f',"header_version":{message.header_version},"body":'
        )

    def _begin_second(self, second: int) -> None:
        self._second = second
        self._second_number = str(second)
        text = rfc3339(second * SECOND_NS)
        self._second_text = "" if text is None else text[: text.index(".") + 1]

    def _connection(self, connection: Connection) -> str:
        text = self._connections.get(connection)
        if text is None:
            client, broker = self._text(connection.client), self._text(connection.broker)
            text = (
                f'{{"schema_version":{SCHEMA_VERSION},"kind":"exchange","connection":{connection.id}'
                f',"client":{client},"broker":{broker}'
            )
            if len(self._connections) >= MAX_KEPT:
                self._connections.clear()
            self._connections[connection] = text
        return text

    def _name(self, name: str | None) -> str:
        """A client id or an API's name."""
        text = self._names.get(name)
        if text is None:
            if len(self._names) >= MAX_KEPT:
                self._names.clear()
            text = self._names[name] = self._text(name)
        return text

    def _file(self, index: int) -> str:
        text = self._file_names.get(index)
        if text is None:
            name = self._text(file_name(index << PACKET_BITS, self._files))
            text = self._file_names[index] = f',"file":{name}'
        return text

    def _text(self, value: str | None) -> str:
        return self._encode(value).decode()
