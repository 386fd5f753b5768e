"""Exchanges as lines of JSON, quickly where their bodies are text already.

The members are those of ``exchange_json`` in the same order; a test holds the two equal. What repeats is kept as text:
connections, names, and the second that a time lies in. Written for mypyc, where it takes a fifth of what making the
dict and encoding it does; uncompiled it would take longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import BytesWriter

from kwiresniff.base.json_text import write_fraction, write_number
from kwiresniff.base.packet_references import PACKET_BITS, PACKET_MASK
from kwiresniff.base.time_units import MAX_NS, SECOND_NS
from kwiresniff.export.json_objects import SCHEMA_VERSION, errors_json, file_name, frame_problem_json
from kwiresniff.export.times import rfc3339
from kwiresniff.model import Connection, Exchange, Message

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Connections and names whose text is kept; then all are forgotten.
MAX_KEPT: Final = 4096


@final
class ExchangeLines:
    """Makes lines; ``encode`` gives the JSON text of any value. ``files`` are the captures in reading order."""

    def __init__(self, encode: Callable[[Any], bytes], files: Sequence[str] = ()) -> None:
        self._encode = encode
        self._files = files
        self._out = BytesWriter()
        self._connections: dict[Connection, bytes] = {}
        self._names: dict[str | None, bytes] = {}
        self._file_names: dict[int, bytes] = {}
        self._second: i64 = 0
        self._second_text = b""
        self._begin_second(0)

    def line(self, exchange: Exchange) -> list[bytes] | None:
        """The exchange as UTF-8 in pieces, the last one with a newline at its end; None for times that are beyond what
        is written here.
        """
        request, response = exchange.request, exchange.response
        first_ns: int = 0
        request_ns: i64 = 0
        response_ns: i64 = 0
        wait_ns: i64 = 0
        if request is not None:
            first_ns = request.first_ns
            if not (-MAX_NS < first_ns < MAX_NS and -MAX_NS < request.last_ns < MAX_NS):
                return None
            request_ns = request.last_ns - first_ns
        if response is not None:
            first_ns = response.first_ns
            if not (-MAX_NS < first_ns < MAX_NS and -MAX_NS < response.last_ns < MAX_NS):
                return None
            response_ns = response.last_ns - first_ns
            if request is not None:
                wait_ns = first_ns - request.last_ns
        out = self._out
        out.truncate(0)
        pieces: list[bytes] = []
        out.write(self._connection(exchange.connection))
        out.write(b',"api_key":')
        write_number(out, exchange.api_key)
        out.write(b',"api":')
        out.write(self._name(exchange.api))
        out.write(b',"api_version":')
        write_number(out, exchange.api_version)
        out.write(b',"correlation_id":')
        write_number(out, exchange.correlation_id)
        out.write(b',"client_id":')
        out.write(self._name(exchange.client_id))
        out.write(b',"outcome":')
        out.write(self._name(exchange.outcome))
        out.write(b',"latency_ns":')
        both = request is not None and response is not None and wait_ns >= 0
        self._number(both, wait_ns)
        out.write(b',"timing":{"request_ns":')
        self._number(request is not None, request_ns)
        out.write(b',"wait_ns":')
        self._number(both, wait_ns)
        out.write(b',"response_ns":')
        self._number(response is not None, response_ns)
        self._parts(exchange, both, wait_ns)
        out.write(b'},"request":')
        self._message(request, pieces)
        out.write(b',"response":')
        self._message(response, pieces)
        if exchange.errors or exchange.problems or exchange.notes:
            self._remarks(exchange)
        else:
            out.write(b',"errors":[],"problems":[]}\n')
        pieces.append(out.getvalue())
        return pieces

    def _parts(self, exchange: Exchange, both: bool, wait_ns: i64) -> None:
        """What the wait was made of."""
        queued, held = exchange.queued, exchange.held
        if both and not queued and not held and not exchange.path:
            self._out.write(b',"queued_ns":0,"held_ns":0,"broker_ns":')
            write_number(self._out, wait_ns)
            return
        self._out.write(b',"queued_ns":')
        self._number(queued >= 0, queued)
        self._out.write(b',"held_ns":')
        self._number(held >= 0, held)
        if exchange.path:
            self._out.write(b',"path_ns":')
            write_number(self._out, exchange.path)
        self._out.write(b',"broker_ns":')
        self._number(both and queued >= 0 and held >= 0, wait_ns - exchange.path - queued - held)

    def _number(self, there: bool, number: i64) -> None:
        if there:
            write_number(self._out, number)
        else:
            self._out.write(b"null")

    def _message(self, message: Message | None, pieces: list[bytes]) -> None:
        out = self._out
        if message is None:
            out.write(b"null")
            return
        ns: i64 = message.first_ns
        second: i64 = ns // SECOND_NS
        if second != self._second:
            self._begin_second(second)
        fraction: i64 = ns - second * SECOND_NS
        out.write(self._second_text)
        if self._second_text:
            write_fraction(out, fraction)
            out.write(b'Z","timestamp_ns":')
        else:
            out.write(b'{"time":null,"timestamp_ns":')
        write_number(out, ns)
        first: i64 = message.first_packet
        last: i64 = message.last_packet
        if len(self._files) > 1:
            out.write(self._file(first >> PACKET_BITS))
        out.write(b',"first_packet":')
        write_number(out, first & PACKET_MASK)
        out.write(b',"last_packet":')
        write_number(out, last & PACKET_MASK)
        out.write(b',"size_bytes":')
        write_number(out, message.size_bytes)
        out.write(b',"header_version":')
        write_number(out, message.header_version)
        out.write(b',"body":')
        text = message.text
        if text is None:
            out.write(self._encode(message.body))
        elif len(text) == 1:
            out.write(text[0])
        else:
            pieces.append(out.getvalue())
            pieces += text
            out.truncate(0)
        out.append(125)

    def _remarks(self, exchange: Exchange) -> None:
        out = self._out
        out.write(b',"errors":')
        out.write(self._encode(errors_json(exchange)) if exchange.errors else b"[]")
        out.write(b',"problems":')
        out.write(self._encode([frame_problem_json(problem) for problem in exchange.problems]))
        if exchange.notes:
            out.write(b',"notes":')
            out.write(self._encode(list(exchange.notes)))
        out.write(b"}\n")

    def _begin_second(self, second: i64) -> None:
        self._second = second
        text = rfc3339(second * SECOND_NS)
        self._second_text = b"" if text is None else f'{{"time":"{text[: text.index(".") + 1]}'.encode()

    def _connection(self, connection: Connection) -> bytes:
        text = self._connections.get(connection)
        if text is None:
            text = b'{"schema_version":%d,"kind":"exchange","connection":%d,"client":%b,"broker":%b' % (
                SCHEMA_VERSION,
                connection.id,
                self._encode(connection.client),
                self._encode(connection.broker),
            )
            if connection.proxied is not None:
                text += b',"proxied":' + self._encode(connection.proxied)
            if len(self._connections) >= MAX_KEPT:
                self._connections.clear()
            self._connections[connection] = text
        return text

    def _name(self, name: str | None) -> bytes:
        """A client id, an API or an outcome."""
        text = self._names.get(name)
        if text is None:
            if len(self._names) >= MAX_KEPT:
                self._names.clear()
            text = self._names[name] = self._encode(name)
        return text

    def _file(self, index: int) -> bytes:
        text = self._file_names.get(index)
        if text is None:
            name = self._encode(file_name(index << PACKET_BITS, self._files))
            text = self._file_names[index] = b',"file":' + name
        return text
