"""The last exchanges of the live view: kept in bounded memory, listed, and one of them shown in full."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable

from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes, value_bytes
from kwiresniff.cli.event_output import tree_of
from kwiresniff.cli.event_source import EventSource
from kwiresniff.model import Exchange, Message
from kwiresniff.render.summary import SummaryWriter
from kwiresniff.session import BodyDecoder

#: Exchanges kept to be shown: more than any screen has lines.
LAST_EXCHANGES = 500
#: And what their messages may hold together, in memory.
LAST_BYTES = 32 << 20
#: Lines of an exchange shown in full; whoever wants more reads the file that -w wrote.
MAX_LINES = 10_000


class LastExchanges:
    """The newest exchanges that match a filter, oldest first."""

    def __init__(self, matches: Callable[[Exchange], bool] | None = None) -> None:
        self._matches = matches
        self._kept: deque[tuple[Exchange, int]] = deque()  # and their memory
        self._bytes = 0

    def add(self, exchange: Exchange) -> None:
        """One more; the oldest make room for it."""
        if self._matches is not None and not self._matches(exchange):
            return
        kept, size = self._kept, _size(exchange)
        if size > LAST_BYTES:  # more than all of them may hold; its bodies can be decoded once more
            exchange, size = _without_bodies(exchange), 0
        kept.append((exchange, size))
        self._bytes += size
        while len(kept) > LAST_EXCHANGES or self._bytes > LAST_BYTES:
            self._bytes -= kept.popleft()[1]

    def newest(self, count: int) -> list[Exchange]:
        """The last ``count`` of them, in order."""
        return [exchange for exchange, _ in self._kept][-count:]

    def narrowed(self, matches: Callable[[Exchange], bool]) -> LastExchanges:
        """A copy that holds the exchanges of this one that match, and takes only such from now on."""
        found = LastExchanges(matches)
        for exchange, _ in self._kept:
            found.add(exchange)
        return found


def _size(exchange: Exchange) -> int:
    size = ENTRY_BYTES * (len(exchange.errors) + len(exchange.problems)) + text_bytes(*exchange.topics)
    for message in (exchange.request, exchange.response):
        if message is not None:
            size += message.size_bytes + (0 if message.body is None else value_bytes(message.body))
    return size


def _without_bodies(exchange: Exchange) -> Exchange:
    """A copy of an exchange as it was before its bodies were decoded."""
    found = Exchange(
        exchange.connection,
        exchange.api_key,
        exchange.api_version,
        exchange.correlation_id,
        exchange.client_id,
        _same(exchange.request),
        _same(exchange.response),
    )
    found.api, found.outcome, found.notes = exchange.api, exchange.outcome, exchange.notes
    return found


class ExchangeRenderer:
    """Draws exchanges as lines ready to print."""

    def __init__(self, source: EventSource, color: bool) -> None:
        self._source = source
        self._color = color
        self._decoder = BodyDecoder("headers", source.analyzer.topics, show_secrets=source.options.show_secrets)

    def summary(self, exchanges: list[Exchange], width: int) -> list[str]:
        """A line of titles, then one of each exchange; bodies are decoded now, because only these are looked at."""
        out = io.StringIO()
        writer = SummaryWriter(out, width, self._color, topic_name=self._source.topic_name, legend=False)
        for exchange in exchanges:
            writer.write(self._decoded(exchange))
        lines = out.getvalue().splitlines()
        # A day that changes has titles of its own, which would push the lines out of step with the exchanges.
        return [lines[0], *lines[-len(exchanges) :]] if exchanges and len(lines) <= len(exchanges) + 1 else lines

    def _decoded(self, exchange: Exchange) -> Exchange:
        """A copy with its bodies decoded; the exchange that is kept stays as it is."""
        if exchange.request is None or exchange.request.body is not None:
            return exchange
        found = _without_bodies(exchange)
        self._decoder.decode(found)
        return found

    def tree(self, exchange: Exchange, width: int) -> list[str]:
        """The annotated tree."""
        out = io.StringIO()
        tree = tree_of(self._source, out, width, self._color)(self._decoded(exchange))
        return tree.decode().splitlines()[:MAX_LINES]


def _same(message: Message | None) -> Message | None:
    """A copy of a message without its body."""
    if message is None:
        return None
    found = Message(
        message.first_packet,
        message.first_ns,
        message.last_packet,
        message.last_ns,
        message.size_bytes,
        message.frame,
    )
    found.header_version, found.body_offset = message.header_version, message.body_offset
    return found
