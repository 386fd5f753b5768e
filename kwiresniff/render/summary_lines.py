"""Lines of a summary for a pipe, of exchanges with nothing unusual about them, at little cost.

They are what ``SummaryWriter`` makes, a test holds them equal; what repeats is kept. Written for mypyc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from kwiresniff.model import Connection, Exchange, TopicNames
from kwiresniff.render import units
from kwiresniff.render.escape import escape
from kwiresniff.render.info_column import facts
from kwiresniff.render.line_wrapping import pad, pad_left
from kwiresniff.render.theme import OUTCOME_STYLE, Paint

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Texts of a sort that are kept; then all are forgotten.
KEPT: Final = 4096
SECOND_NS: Final = 1_000_000_000
#: Times beyond this, some 146 years from 1970, are not written here.
MAX_NS: Final = 1 << 62
#: A packet reference (``kwiresniff.model``): its number lies below the file.
NUMBER_MASK: Final = (1 << 40) - 1


#: A queue that is shorter is nobody's trouble.
_WORTH_A_WORD_NS: Final = 1_000_000


def queued_long(exchange: Exchange) -> bool:
    """Whether a request was queued longer than it was worked on, and so long that it is worth a word."""
    return exchange.queued >= _WORTH_A_WORD_NS and exchange.queued > (exchange.broker_ns or 0)


@final
class SummaryLines:
    """Makes lines; ``widths`` are those of the columns by their names."""

    def __init__(self, paint: Paint, widths: dict[str, int], topic_name: TopicNames | None) -> None:
        self._paint = paint
        self._widths = widths
        self._topic_name = topic_name
        self._titles: dict[tuple[str, int], str] = {}
        self._latencies: dict[str, str] = {}
        self._waits: dict[str, str] = {}
        self._sizes: dict[int, tuple[str, str]] = {}
        self._peers: dict[tuple[Connection, str | None], str] = {}
        self._dim, _, self._off = paint.text("dim", "x").partition("x")
        self._second: i64 = -1
        self._day = ""

    def line(self, exchange: Exchange) -> str | None:
        """The line of an exchange; None for one that needs ``SummaryWriter``."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or exchange.outcome != "ok":
            return None
        if exchange.problems or exchange.errors or queued_long(exchange):
            return None
        if not -MAX_NS < request.first_ns < MAX_NS:
            return None
        ns: i64 = request.first_ns
        second: i64 = ns // SECOND_NS
        if second != self._second:
            self._second = second
            self._day = self._dim + units.instant(second * SECOND_NS)[:-7]
        micros: i64 = (ns - second * SECOND_NS) // 1000 + 1_000_000
        packet = str(request.first_packet & NUMBER_MASK).rjust(self._widths["packet"])
        about = " ".join([escape(fact) for fact in facts(exchange, self._topic_name)])
        if exchange.waiting:
            about = f"{self._paint.text('wait', escape(exchange.waiting))}{' ' if about else ''}{about}"
        latency = self._latency(response.first_ns - request.last_ns, exchange.waiting)
        return (
            f"{self._day}{str(micros)[1:]}Z{self._off} {self._title(exchange)} "
            f"{latency} {self._size(request.size_bytes)[0]} "
            f"{self._size(response.size_bytes)[1]} {self._peer(exchange)} {self._dim}{packet}{self._off} {about}\n"
        )

    def _title(self, exchange: Exchange) -> str:
        key = (exchange.api, exchange.api_version)
        text = self._titles.get(key)
        if text is None:
            if len(self._titles) >= KEPT:
                self._titles.clear()
            version = f" v{exchange.api_version}" if exchange.api_version >= 0 else ""
            api = pad(f"{escape(exchange.api) or '?'}{version}", self._widths["api"])
            mark = self._paint.text(OUTCOME_STYLE["ok"], self._paint.glyphs.marks["ok"])
            text = self._titles[key] = f"{mark} {self._paint.text('api', api)}"
        return text

    def _latency(self, latency_ns: int, waiting: str) -> str:
        text = units.duration(latency_ns, micro=self._paint.glyphs.micro)
        kept = self._waits if waiting else self._latencies
        padded = kept.get(text)
        if padded is None:
            if len(kept) >= KEPT:
                kept.clear()
            padded = self._paint.text("wait" if waiting else "value", pad_left(text, self._widths["latency"]))
            kept[text] = padded
        return padded

    def _size(self, size: int) -> tuple[str, str]:
        """A size in bytes, padded for the column of requests and for the column of responses."""
        both = self._sizes.get(size)
        if both is None:
            if len(self._sizes) >= KEPT:
                self._sizes.clear()
            text = units.size(size)
            both = (
                self._paint.text("dim", pad_left(text, self._widths["request"])),
                self._paint.text("dim", pad_left(text, self._widths["response"])),
            )
            self._sizes[size] = both
        return both

    def _peer(self, exchange: Exchange) -> str:
        key = (exchange.connection, exchange.client_id)
        text = self._peers.get(key)
        if text is None:
            if len(self._peers) >= KEPT:
                self._peers.clear()
            connection, client_id, paint = exchange.connection, exchange.client_id, self._paint
            address = f"{escape(connection.client)} {paint.glyphs.arrow} {escape(connection.broker)}"
            client = "-" if client_id is None else escape(client_id) or '""'
            address = paint.text("value", pad(address, self._widths["address"]))
            text = f"{address} {paint.text('client', pad(client, self._widths['client']))}"
            self._peers[key] = text
        return text
