"""Lines of a summary for a pipe, made cheaply.

They are what ``SummaryWriter`` makes, a test holds them equal; what repeats is kept. Written for mypyc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter

from kwiresniff.base.json_text import write_number, write_padded
from kwiresniff.base.packet_references import PACKET_MASK
from kwiresniff.base.time_units import MAX_NS, SECOND_NS
from kwiresniff.model import Connection, Exchange, TopicNames
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.headline import path_text
from kwiresniff.render.info_column import facts, queued_long, words
from kwiresniff.render.line_wrapping import pad, pad_left
from kwiresniff.render.theme import OUTCOME_STYLE, Paint

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Texts of a sort that are kept; then all are forgotten.
KEPT: Final = 4096


@final
class SummaryLines:
    """Makes lines in UTF-8; ``widths`` are those of the columns by their names."""

    def __init__(self, paint: Paint, widths: dict[str, int], topic_name: TopicNames | None) -> None:
        self._paint = paint
        self._widths = widths
        self._topic_name = topic_name
        self._titles: dict[int, bytes] = {}  # by API key and version, three of each
        self._latencies: dict[int, bytes] = {}  # by ``format_units.rounded``, twice, one more for those that are waits
        self._requests: dict[int, bytes] = {}  # by size, as are these
        self._responses: dict[int, bytes] = {}
        self._peers: dict[int, tuple[Connection, str | None, bytes]] = {}  # by the number of the connection
        dim, _, off = paint.text("dim", "x").partition("x")
        self._dim = dim
        self._behind_time = f"Z{off} ".encode()
        self._behind_packet = f"{off} ".encode()
        self._packet_width: i64 = widths["packet"]
        self._second: i64 = -1
        self._day = b""

    def line(self, exchange: Exchange) -> bytes | None:
        """The line of an exchange; None for one whose time only ``SummaryWriter`` can write."""
        request, response = exchange.request, exchange.response
        first = request if request is not None else response
        if first is None or not -MAX_NS < first.first_ns < MAX_NS:
            return None
        ns: i64 = first.first_ns
        second: i64 = ns // SECOND_NS
        if second != self._second:
            self._second = second
            self._day = (self._dim + format_units.instant(second * SECOND_NS)[:-7]).encode()
        plain = exchange.outcome == "ok" and not exchange.errors
        queued = queued_long(exchange)
        out = BytesWriter()
        out.write(self._day)
        write_padded(out, (ns - second * SECOND_NS) // 1000, 6)
        out.write(self._behind_time)
        if not plain:
            out.write(self._mark(exchange))
        out.write(self._title(exchange, plain, exchange.outcome == "error" and not exchange.is_negotiation))
        waited = queued or exchange.waiting != ""
        if request is not None and response is not None and response.first_ns >= request.last_ns:
            out.write(self._latency(response.first_ns - request.last_ns, waited))
        else:
            out.write(self._latency_text(None, waited))
        out.write(self._size(self._requests, -1 if request is None else request.size_bytes, "request"))
        out.write(self._size(self._responses, -1 if response is None else response.size_bytes, "response"))
        out.write(self._peer(exchange))
        self._packet(first.first_packet & PACKET_MASK, out)
        if plain and not queued and not exchange.problems:
            self._about(exchange, out)
        else:
            paint = self._paint
            spans = words(exchange, self._topic_name, paint.glyphs.micro)
            out.write(" ".join([paint.text(kind, word) for kind, word in spans]).encode())
        out.append(10)
        return out.getvalue()

    def _mark(self, exchange: Exchange) -> bytes:
        """What stands before the line, with the space behind it."""
        outcome = exchange.outcome
        calm = exchange.is_negotiation
        mark = self._paint.glyphs.marks["ok" if calm else outcome]
        return f"{self._paint.text('dim' if calm else OUTCOME_STYLE[outcome], mark)} ".encode()

    def _about(self, exchange: Exchange, out: BytesWriter) -> None:
        """What was waited for and what it was about, of an exchange with which nothing is wrong."""
        about = facts(exchange, self._topic_name)
        if exchange.waiting:
            out.write(self._paint.text("wait", escape(exchange.waiting)).encode())
            if about:
                out.append(32)
        text = " ".join(about)
        if not (text.isascii() and text.isprintable()):
            text = " ".join([escape(fact) for fact in about])
        out.write(text.encode())

    def _packet(self, number: i64, out: BytesWriter) -> None:
        """A packet's number in its column, and what is between that and the next one."""
        left: i64 = self._packet_width - 1
        limit: i64 = 10
        while left > 0 and number >= limit:
            limit *= 10
            left -= 1
        while left > 0:
            out.append(32)
            left -= 1
        write_number(out, number)
        out.write(self._behind_packet)

    def _title(self, exchange: Exchange, plain: bool, wrong: bool) -> bytes:
        """API and version, in ``plain`` lines behind the mark."""
        key = 3 * ((exchange.api_key << 16) + exchange.api_version) + (0 if plain else 2 if wrong else 1)
        text = self._titles.get(key)
        if text is None:
            if len(self._titles) >= KEPT:
                self._titles.clear()
            version = f" v{exchange.api_version}" if exchange.api_version >= 0 else ""
            api = pad(f"{escape(exchange.api) or '?'}{version}", self._widths["api"])
            text = f"{self._paint.text('bad' if wrong else 'api', api)} ".encode()
            if plain:
                text = self._mark(exchange) + text
            self._titles[key] = text
        return text

    def _latency(self, latency_ns: int, waited: bool) -> bytes:
        if not -MAX_NS < latency_ns < MAX_NS:
            return self._latency_text(latency_ns, waited)
        number: i64 = format_units.rounded(latency_ns)
        key: int = 2 * number + (1 if waited else 0)
        text = self._latencies.get(key)
        if text is None or number < 0:
            if len(self._latencies) >= KEPT:
                self._latencies.clear()
            text = self._latencies[key] = self._latency_text(latency_ns, waited)
        return text

    def _latency_text(self, latency_ns: int | None, waited: bool) -> bytes:
        padded = pad_left(format_units.duration(latency_ns, micro=self._paint.glyphs.micro), self._widths["latency"])
        return f"{self._paint.text('wait' if waited else 'value', padded)} ".encode()

    def _size(self, kept: dict[int, bytes], size: int, column: str) -> bytes:
        """A size in its column; -1 for none."""
        text = kept.get(size)
        if text is None:
            if len(kept) >= KEPT:
                kept.clear()
            padded = pad_left(format_units.size(size if size >= 0 else None), self._widths[column])
            text = kept[size] = f"{self._paint.text('dim', padded)} ".encode()
        return text

    def _peer(self, exchange: Exchange) -> bytes:
        connection, client_id = exchange.connection, exchange.client_id
        kept = self._peers.get(connection.id)
        if kept is not None and kept[0] is connection and kept[1] == client_id:
            return kept[2]
        if len(self._peers) >= KEPT:
            self._peers.clear()
        paint = self._paint
        client = "-" if client_id is None else escape(client_id) or '""'
        address = paint.text("value", pad(path_text(connection, paint.glyphs.arrow), self._widths["address"]))
        text = f"{address} {paint.text('client', pad(client, self._widths['client']))} {self._dim}".encode()
        self._peers[connection.id] = (connection, client_id, text)
        return text
