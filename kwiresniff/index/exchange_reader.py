"""One exchange of an index with its bodies, read again from the capture when somebody looks at it.

It is decoded from its own packets where these tell everything. Where they do not (segments out of order, repeated or
missing, TLS that was decrypted, a problem), the captures are read again up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwiresniff.base.flows import flow_between, reverse
from kwiresniff.base.header_fields import pack_correlation_id, pack_request_header_v0
from kwiresniff.base.needs import Needs
from kwiresniff.capture import CaptureSet, SegmentSource, feed_from
from kwiresniff.capture.packet_places import PacketPlaces
from kwiresniff.capture.packet_range import packet_range
from kwiresniff.index.exchange_index import PROBLEMS, ExchangeIndex
from kwiresniff.index.stream_bytes import frame_in
from kwiresniff.model import Exchange, Message, Segment
from kwiresniff.session import Analyzer, TopicNameTable
from kwiresniff.session.apis import api_facts
from kwiresniff.session.decode import BodyDecoder
from kwiresniff.session.peek import skip_tagged_fields

#: The front of a request with a client id: API, version, correlation id, length of the client id.
_CLIENT_ID_AT = 10


class ExchangeReader:
    """Reads exchanges of ``index``.

    ``captures`` are those that the index is of, which can be read again, ``places`` those that its reading noted;
    ``topics`` are the names that it has learned. ``whole`` opens the captures as they were read for the index.
    """

    def __init__(
        self,
        index: ExchangeIndex,
        captures: CaptureSet,
        places: PacketPlaces,
        topics: TopicNameTable,
        whole: Callable[[], tuple[SegmentSource, Analyzer]],
        *,
        show_secrets: bool = False,
    ) -> None:
        self._index = index
        self._captures = captures
        self._places = places
        self._topics = topics
        self._whole = whole
        self._show_secrets = show_secrets

    def exchange(self, row: int) -> Exchange | None:
        """The exchange of a row with all that its frames hold; None where it is not found any more, because the files
        have changed.
        """
        return self.from_packets(row) or self.from_captures(row)

    def from_packets(self, row: int) -> Exchange | None:
        """The exchange from its own packets alone; None where they are not enough."""
        if self._index.flags[row] & PROBLEMS:
            return None
        exchange = self._index.exchange(row)
        request, response = exchange.request, exchange.response
        if request is None:
            return None
        flow = flow_between(exchange.connection.client, exchange.connection.broker)
        last = max(request.last_packet, response.last_packet if response is not None else 0)
        segments = packet_range(self._captures, self._places, flow, request.first_packet, last)
        if segments is None:
            return None
        front = pack_request_header_v0(exchange.api_key, exchange.api_version, exchange.correlation_id)
        request.frame = _frame(request, flow, segments, front)
        if request.frame is None:
            return None
        if response is not None:
            response.frame = _frame(response, reverse(flow), segments, pack_correlation_id(exchange.correlation_id))
            if response.frame is None:
                return None
        outcome = exchange.outcome
        if outcome in ("error", "undecoded"):  # as bodies say
            exchange.outcome = "ok"
        _find_bodies(exchange, request, response)
        BodyDecoder("full", self._topics, show_secrets=self._show_secrets).decode(exchange)
        return exchange if exchange.outcome == outcome else None

    def from_captures(self, row: int) -> Exchange | None:
        """The exchange from the captures, read again up to it."""
        wanted = self._index.exchange(row)
        found: list[Exchange] = []

        def is_wanted(exchange: Exchange) -> bool:
            return _is_same(exchange, wanted)

        source, analyzer = self._whole()
        analyzer.output.exchange_filter = is_wanted
        feed = feed_from(source)
        try:
            for step in (analyzer.read(feed), analyzer.end()):
                for _ in step:
                    found += [event for event in analyzer.events() if isinstance(event, Exchange)]
                    if found:
                        break
                if found:
                    break
        finally:
            source.close()
        if not found:
            return None
        exchange = found[0]
        exchange.connection = wanted.connection
        exchange.queued, exchange.held, exchange.path = wanted.queued, wanted.held, wanted.path
        exchange.waiting = wanted.waiting
        return exchange


#: What ``ExchangeReader.from_captures`` reads: everything.
WHOLE = Needs("records")


def _frame(message: Message, flow: bytes, segments: Sequence[Segment], header: bytes) -> bytes | None:
    """The frame of a message whose packets are among ``segments``."""
    own = [
        segment
        for segment in segments
        if segment[2] == flow
        and message.first_packet <= segment[0] <= message.last_packet
        and segment[7] < segment[8] + segment[9]
    ]
    if not own or own[0][0] != message.first_packet or own[-1][0] != message.last_packet:
        return None
    return frame_in(own, header, message.size_bytes)


def _find_bodies(exchange: Exchange, request: Message, response: Message | None) -> None:
    """Sets where the bodies begin, and the name of the API."""
    facts = api_facts(exchange.api_key, exchange.api_version)
    exchange.api = facts.name
    frame = request.frame or b""
    request.header_version = facts.request_header_version
    request.body_offset = 8
    if request.header_version:
        length = int.from_bytes(frame[8:_CLIENT_ID_AT], "big", signed=True)
        request.body_offset = _CLIENT_ID_AT + max(length, 0)
    if request.header_version == 2:
        request.body_offset = skip_tagged_fields(frame, request.body_offset)
    if response is not None:
        response.header_version = facts.response_header_version
        response.body_offset = skip_tagged_fields(response.frame or b"", 4) if response.header_version else 4


def _is_same(exchange: Exchange, wanted: Exchange) -> bool:
    """Whether two exchanges are the same one: by their ends, packets and correlation ids."""
    if exchange.correlation_id != wanted.correlation_id or exchange.api_key != wanted.api_key:
        return False
    for one, other in ((exchange.request, wanted.request), (exchange.response, wanted.response)):
        if (one is None) != (other is None):
            return False
        if one is not None and other is not None and _place(one) != _place(other):
            return False
    there, here = exchange.connection, wanted.connection  # whose numbers differ where the beginning is gone
    return (there.client, there.broker) == (here.client, here.broker)


def _place(message: Message) -> tuple[int, int, int]:
    return message.first_packet, message.last_packet, message.size_bytes
