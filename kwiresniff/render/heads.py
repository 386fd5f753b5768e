"""The headlines of trees and their messages, made cheaply for exchanges with nothing unusual about them.

They are what ``headline`` and ``TreeWriter`` make, a test holds them equal; what repeats is kept. Written for mypyc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter

from kwiresniff.base.json_text import write_number, write_padded
from kwiresniff.base.packet_references import PACKET_MASK
from kwiresniff.base.time_units import MAX_NS, SECOND_NS
from kwiresniff.model import Connection, Exchange, Message
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.guides import GuidedRows
from kwiresniff.render.headline import broker_words, correlation_chunk, headline, parts_chunk, peers_chunks, title_chunk
from kwiresniff.render.quick_lines import QuickLines
from kwiresniff.render.style import Style
from kwiresniff.render.theme import OUTCOME_STYLE, OUTCOME_WORDS, Paint
from kwiresniff.render.wording import Words

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Texts of a sort that are kept; then all are forgotten.
KEPT: Final = 4096
#: Rows of a message whose guides are kept.
MAX_ROWS: Final = 64
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
        self.packet = words.on("dim") + b"packet "
        self.packets = words.on("dim") + b"packets "
        self.between = words.off("dim") + gap + words.on("dim")
        self.end = b"Z" + words.off("dim")
        self.ok = gap + words.span("good", "ok") + gap
        self.undecoded = gap + words.span(OUTCOME_STYLE["undecoded"], OUTCOME_WORDS["undecoded"]) + gap
        name, value = [words.span(kind, text) for kind, text in correlation_chunk(0)]
        self.correlation = name + value.partition(b"0")[0]
        self.value_off = value.partition(b"0")[2]
        self.request = words.span("title", "request") + gap
        self.response = words.span("title", "response") + gap


@final
class Heads(QuickLines):
    """Makes headlines by ``words``, and whole trees of exchanges whose bodies are rows, with an empty line before each.

    ``guided`` has the guides of their rows.
    """

    def __init__(self, words: Words, paint: Paint, style: Style, guided: GuidedRows) -> None:
        self._words = words
        self._paint = paint
        self._style = style
        self._guided = guided
        self._micro = paint.glyphs.micro
        self._titles: dict[int, bytes] = {}  # by API key and version, twice, one more for what could not be decoded
        self._peers: dict[int, tuple[Connection, str | None, bytes]] = {}  # by the number of the connection
        self._durations: dict[int, bytes] = {}  # by ``format_units.rounded``, eight times, and what they stand for
        self._sizes: dict[int, bytes] = {}
        # Of the rows of requests and of responses, by their depths.
        self._guides: list[dict[bytes, list[bytes]]] = [{}, {}]
        self._leads = [guided.lead(True), guided.lead(False)]
        self._second: i64 = -1
        self._day = b""
        self._marks = _Marks(words)
        self._waits: dict[str, tuple[bytes, bytes]] = {}

    def write(self, exchange: Exchange, out: BytesWriter) -> bool:
        """Write the tree of an exchange with nothing to show beside the rows of its bodies."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or exchange.problems or exchange.notes:
            return False
        asked, answered = request.text, response.text
        if asked is None or answered is None:
            return False
        start = len(out)
        out.append(10)
        if not self._write_headline(exchange, out):
            out.write(self._words.row(headline(exchange, self._paint, self._style)))
        if self._write_message(exchange, request, 0, asked, out) and self._write_message(
            exchange, response, 1, answered, out
        ):
            out.append(10)
            return True
        out.truncate(start)
        return False

    def _write_message(
        self, exchange: Exchange, message: Message, side: int, rows: list[bytes], out: BytesWriter
    ) -> bool:
        out.write(self._leads[side])
        if not self._write_head(exchange, message, side == 0, out):
            return False
        depths = rows[0]
        known = self._guides[side]
        guides = known.get(depths)
        if guides is None:
            guides = self._guided.below(depths, side == 0)
            if len(depths) <= MAX_ROWS:
                if len(known) >= KEPT:
                    known.clear()
                known[depths] = guides
        index: i64 = 0
        while index < len(guides):
            out.write(guides[index])
            index += 1
            out.write(rows[index])
        return True

    def headline(self, exchange: Exchange) -> bytes | None:
        """The headline of an exchange that went well, or could not be decoded; None for any other."""
        out = BytesWriter()
        return out.getvalue() if self._write_headline(exchange, out) else None

    def _write_headline(self, exchange: Exchange, out: BytesWriter) -> bool:
        request, response = exchange.request, exchange.response
        is_ok = exchange.outcome == "ok"
        if request is None or response is None or exchange.errors or not (is_ok or exchange.outcome == "undecoded"):
            return False
        if response.first_ns < request.last_ns:
            return False
        key = 2 * ((exchange.api_key << 16) + exchange.api_version) + (0 if is_ok else 1)
        title = self._titles.get(key)
        if title is None:
            if len(self._titles) >= KEPT:
                self._titles.clear()
            title = self._words.chunk(title_chunk(exchange, self._paint.glyphs)) + self._marks.gap
            self._titles[key] = title
        connection, client_id = exchange.connection, exchange.client_id
        kept = self._peers.get(connection.id)
        if kept is None or kept[0] is not connection or kept[1] != client_id:
            if len(self._peers) >= KEPT:
                self._peers.clear()
            peers = self._words.row(peers_chunks(exchange, self._paint.glyphs, self._style)) + self._marks.gap
            kept = self._peers[connection.id] = (connection, client_id, peers + self._marks.correlation)
        out.write(title)
        self._write_latency(exchange, response.first_ns - request.last_ns, out)
        out.write(self._marks.ok if is_ok else self._marks.undecoded)
        out.write(kept[2])
        write_number(out, exchange.correlation_id)
        out.write(self._marks.value_off)
        return True

    def _write_latency(self, exchange: Exchange, latency_ns: int, out: BytesWriter) -> None:
        """How long it took, what for, and what that is made of."""
        waiting = exchange.waiting
        words = self._waits.get(waiting)
        if words is None:
            reason = self._words.span("wait", f" {escape(waiting)}") if waiting else b""
            words = self._waits[waiting] = (reason, self._words.span("name", broker_words(waiting)))
        out.write(self._duration(WAITED if waiting else TAKEN, latency_ns))
        out.write(words[0])
        queued, held = exchange.queued, exchange.held
        if queued <= 0 and held <= 0:
            return
        own = latency_ns - queued - held
        out.write(self._marks.gap)
        if queued < 0 or held < 0 or not own:  # what is not known, or nothing
            out.write(self._words.chunk(parts_chunk(exchange, self._micro)))
            return
        if queued:
            out.write(self._duration(QUEUED, queued))
        if held:
            out.write(self._duration(HELD, held))
        out.write(words[1])
        out.write(self._duration(OWN, own))

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
        out = BytesWriter()
        return out.getvalue() if self._write_head(exchange, message, is_request, out) else None

    def _write_head(self, exchange: Exchange, message: Message, is_request: bool, out: BytesWriter) -> bool:
        if message.version != exchange.api_version or not -MAX_NS < message.first_ns < MAX_NS:
            return False
        ns: i64 = message.first_ns
        second: i64 = ns // SECOND_NS
        if second != self._second:
            self._second = second
            self._day = self._marks.between + format_units.instant(second * SECOND_NS)[:-7].encode()
        size = self._sizes.get(message.size_bytes)
        if size is None:
            if len(self._sizes) >= KEPT:
                self._sizes.clear()
            text = self._words.span("value", format_units.size(message.size_bytes)) + self._marks.gap
            size = self._sizes[message.size_bytes] = text
        out.write(self._marks.request if is_request else self._marks.response)
        out.write(size)
        first: i64 = message.first_packet & PACKET_MASK
        last: i64 = message.last_packet & PACKET_MASK
        if first == last:
            out.write(self._marks.packet)
        else:
            out.write(self._marks.packets)
            write_number(out, first)
            out.append(45)
        write_number(out, last)
        out.write(self._day)
        write_padded(out, (ns - second * SECOND_NS) // 1000, 6)
        out.write(self._marks.end)
        return True
