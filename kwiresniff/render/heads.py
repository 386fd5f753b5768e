"""The headlines of trees and their messages, made cheaply for exchanges with nothing unusual about them.

They are what ``headline`` and ``TreeWriter`` make, a test holds them equal; what repeats is kept. Written for mypyc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from kwiresniff.base.packet_references import PACKET_MASK
from kwiresniff.base.time_units import MAX_NS, SECOND_NS
from kwiresniff.model import Connection, Exchange, Message
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.guides import GuidedRows
from kwiresniff.render.headline import broker_words, correlation_chunk, headline, parts_chunk, peers_chunks, title_chunk
from kwiresniff.render.theme import Paint
from kwiresniff.render.values import Style
from kwiresniff.render.wording import Words

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Texts of a sort that are kept; then all are forgotten.
KEPT: Final = 4096
#: What a time in a headline stands for, and the style of the first three.
TAKEN: Final = 0
WAITED: Final = 1
OWN: Final = 2
QUEUED: Final = 3
HELD: Final = 4
_STYLES: Final = ("ident", "wait", "value")


@final
class _Marks:
    """Texts that stand in every head, put together once; a plain record."""

    def __init__(self, words: Words) -> None:
        gap = words.gap
        self.gap = gap
        self.dim = words.on("dim").decode()
        self.off = words.off("dim").decode()
        self.between = self.off + gap.decode() + self.dim
        self.ok = gap + words.span("good", "ok") + gap
        name, value = [words.span(kind, text) for kind, text in correlation_chunk(0)]
        self.correlation = name + value.partition(b"0")[0]
        self.value_off = value.partition(b"0")[2]
        self.request = words.span("title", "request") + gap
        self.response = words.span("title", "response") + gap


@final
class Heads:
    """Makes headlines by ``words``; None for what only ``TreeWriter`` can show."""

    def __init__(self, words: Words, paint: Paint, style: Style) -> None:
        self._words = words
        self._paint = paint
        self._style = style
        self._micro = paint.glyphs.micro
        self._titles: dict[int, bytes] = {}  # by API key and version
        self._peers: dict[int, tuple[Connection, str | None, bytes]] = {}  # by the number of the connection
        self._durations: dict[int, bytes] = {}  # by ``units.rounded``, eight times, and what they stand for
        self._sizes: dict[int, bytes] = {}
        self._second: i64 = -1
        self._day = ""
        self._marks = _Marks(words)
        self._waits: dict[str, tuple[bytes, bytes]] = {}

    def tree(self, exchange: Exchange, guided: GuidedRows) -> bytes | None:
        """The lines of an exchange whose bodies are rows, with nothing to show beside them; None for any other."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or exchange.problems or exchange.notes:
            return None
        asked, answered = request.text, response.text
        if asked is None or answered is None:
            return None
        first = self.message(exchange, request, True)
        second = self.message(exchange, response, False)
        if first is None or second is None:
            return None
        head = self.headline(exchange)
        if head is None:
            head = self._words.row(headline(exchange, self._paint, self._style))
        guided.add(0, first)
        guided.add_all(1, asked)
        guided.add(0, second)
        guided.add_all(1, answered)
        return guided.lines(head)

    def headline(self, exchange: Exchange) -> bytes | None:
        """The headline of an exchange that went well; None for any other."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or exchange.outcome != "ok" or exchange.errors:
            return None
        key = (exchange.api_key << 16) + exchange.api_version
        title = self._titles.get(key)
        if title is None:
            if len(self._titles) >= KEPT:
                self._titles.clear()
            title = self._titles[key] = self._words.chunk(title_chunk(exchange, self._paint.glyphs))
        connection, client_id = exchange.connection, exchange.client_id
        kept = self._peers.get(connection.id)
        if kept is None or kept[0] is not connection or kept[1] != client_id:
            if len(self._peers) >= KEPT:
                self._peers.clear()
            peers = self._words.row(peers_chunks(exchange, self._paint.glyphs, self._style)) + self._marks.gap
            kept = self._peers[connection.id] = (connection, client_id, peers)
        latency = self._latency(exchange, response.first_ns - request.last_ns)
        number = str(exchange.correlation_id).encode()
        marks = self._marks
        return b"".join([title, marks.gap, latency, marks.ok, kept[2], marks.correlation, number, marks.value_off])

    def _latency(self, exchange: Exchange, latency_ns: int) -> bytes:
        """How long it took, what for, and what that is made of."""
        waiting = exchange.waiting
        words = self._waits.get(waiting)
        if words is None:
            told = self._words.span("wait", f" {escape(waiting)}") if waiting else b""
            words = self._waits[waiting] = (told, self._words.span("name", broker_words(waiting)))
        text = self._duration(WAITED if waiting else TAKEN, latency_ns) + words[0]
        queued, held = exchange.queued, exchange.held
        if queued <= 0 and held <= 0:
            return text
        own = latency_ns - queued - held
        if queued < 0 or held < 0 or not own:  # what is not known, or nothing
            return text + self._marks.gap + self._words.chunk(parts_chunk(exchange, self._micro))
        parts = [text, self._marks.gap]
        if queued:
            parts.append(self._duration(QUEUED, queued))
        if held:
            parts.append(self._duration(HELD, held))
        parts.append(words[1])
        parts.append(self._duration(OWN, own))
        return b"".join(parts)

    def _duration(self, role: int, ns: int) -> bytes:
        """A time that stands for one of the things above."""
        number: i64 = -1
        if -MAX_NS < ns < MAX_NS:
            number = format_units.rounded(ns)
        key: int = 8 * number + role
        text = self._durations.get(key)
        if text is None or number < 0:
            if len(self._durations) >= KEPT:
                self._durations.clear()
            duration = format_units.duration(ns, micro=self._micro)
            if role >= QUEUED:
                name = "queued " if role == QUEUED else "held "
                text = self._words.chunk([("name", name), ("wait", duration), ("name", " ")])
            else:
                text = self._words.span(_STYLES[role], duration)
            self._durations[key] = text
        return text

    def message(self, exchange: Exchange, message: Message, is_request: bool) -> bytes | None:
        """The headline of a message that was read as the requested version, from the only file; None for any other."""
        ns: i64 = 0
        if message.version != exchange.api_version or not -MAX_NS < message.first_ns < MAX_NS:
            return None
        ns = message.first_ns
        second: i64 = ns // SECOND_NS
        if second != self._second:
            self._second = second
            self._day = self._marks.between + format_units.instant(second * SECOND_NS)[:-7]
        size = self._sizes.get(message.size_bytes)
        if size is None:
            if len(self._sizes) >= KEPT:
                self._sizes.clear()
            text = self._words.span("value", format_units.size(message.size_bytes)) + self._marks.gap
            size = self._sizes[message.size_bytes] = text
        first: i64 = message.first_packet & PACKET_MASK
        last: i64 = message.last_packet & PACKET_MASK
        packets = f"packet {first}" if first == last else f"packets {first}-{last}"
        micros: i64 = (ns - second * SECOND_NS) // 1000 + 1_000_000
        tail = f"{self._marks.dim}{packets}{self._day}{str(micros)[1:]}Z{self._marks.off}"
        return (self._marks.request if is_request else self._marks.response) + size + tail.encode()
