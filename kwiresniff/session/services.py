"""What a connection needs of its surroundings: names, numbers, the budget, and where exchanges and problems go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.api_keys import FETCH, SHARE_ACKNOWLEDGE, SHARE_FETCH
from kwiresniff.model import Event, Exchange, ExchangeSink, SegmentSink
from kwiresniff.session.strangers import Strangers
from kwiresniff.stream.budget import Budget
from kwiresniff.stream.frame_handler import FrameFilter

if TYPE_CHECKING:
    from kwiresniff.session.decode import BodyDecoder
    from kwiresniff.session.fetch_sessions import FetchSessions
    from kwiresniff.session.scan import Scanner

#: The APIs whose requests belong to fetch sessions.
SESSION_APIS: Final = frozenset({FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE})
#: Different client ids remembered by name, and the longest of them. Escaped, a byte is four characters.
MAX_CLIENT_IDS = 10_000
MAX_REMEMBERED_ID_BYTES = 255


class ConnectionServices(SegmentSink):
    """The analyzer, as its connections see it.

    ``keep_request`` and ``keep_response`` bytes are kept of each frame, once it is known which it is; with
    ``filters``, large responses are kept without their record sets. Without ``attempts``, connections that never came
    to be are not reported. ``now_ns`` is the time of the last segment. It derives from ``SegmentSink`` because the
    analyzer is one, and a compiled class has one base.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "bare_token_bytes", "budget", "client_ids", "connections", "fetch_sessions", "non_kafka", "now_ns",
    )  # fmt: skip

    def __init__(self, *, broker_ports: frozenset[bytes], attempts: bool) -> None:
        self.broker_ports = broker_ports
        self.attempts = attempts
        self.keep_request = 0
        self.keep_response = 0
        self.filters = False
        self.budget = Budget()
        self.non_kafka = Strangers()
        self.client_ids: dict[bytes, str] = {}
        self.connections = 0  # met so far; each is numbered
        self.bare_token_bytes = 0
        self.now_ns = 0
        self.fetch_sessions: FetchSessions | None = None
        self._want: Callable[[Exchange], bool | None] | None = None
        self._decoder: BodyDecoder | None = None
        self._scanner: Scanner | None = None
        self._sink: ExchangeSink | None = None
        self._out: list[Event] = []

    def forget(self, flow: bytes, other_flow: bytes, counts: list[int]) -> None:
        """A connection has shown that it is not Kafka: what else comes on its flows only adds to the ``counts``."""
        raise NotImplementedError

    def next_number(self) -> int:
        """The number of a connection that has shown what it is."""
        self.connections += 1
        return self.connections

    def client_id(self, raw: bytes) -> str:
        """A client id as text, the same object every time; undecodable bytes are shown escaped."""
        text = raw.decode("utf-8", "backslashreplace")
        if len(self.client_ids) < MAX_CLIENT_IDS and len(raw) <= MAX_REMEMBERED_ID_BYTES:
            self.client_ids[raw] = text
        return text

    def response_filter(self, exchange: Exchange, body_offset: int) -> FrameFilter | None:
        """Who keeps the response of an exchange without its record sets, as far as it has any."""
        return self._scanner.sieve(exchange, body_offset) if self._scanner is not None else None

    def report(self, event: Event) -> None:
        """Something that is not an exchange has happened."""
        self._out.append(event)

    def complete(self, exchange: Exchange) -> None:
        """An exchange is as complete as it will ever be: decode as far as wanted and report it."""
        if self.fetch_sessions is not None and exchange.api_key in SESSION_APIS:
            self.fetch_sessions.follow(exchange)
        if self._want is not None and self._want(exchange) is False:
            if self._scanner is not None:
                self._scanner.scan(exchange)
        else:
            if self._decoder is not None:
                self._decoder.decode(exchange)
            elif self._scanner is not None:
                self._scanner.scan(exchange)
            if self._sink is not None:
                self._sink.exchange(exchange)
            else:
                self._out.append(exchange)
        counts = exchange.connection.exchanges
        outcome = exchange.outcome
        counts[outcome] = counts.get(outcome, 0) + 1
