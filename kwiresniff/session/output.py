"""The events of an analyzer: complete exchanges, with bodies read as far as asked for, connections and problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.api_keys import FETCH, SHARE_ACKNOWLEDGE, SHARE_FETCH
from kwiresniff.model import Event, Exchange, ExchangeSink
from kwiresniff.stream.frame_handler import FrameFilter

if TYPE_CHECKING:
    from kwiresniff.session.decode import BodyDecoder
    from kwiresniff.session.fetch_sessions import FetchSessions
    from kwiresniff.session.shallow import ShallowReader

#: The APIs whose requests belong to fetch sessions.
SESSION_APIS: Final = frozenset({FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE})


class EventOutput:
    """Collects ``events``.

    ``exchange_filter`` is asked about each complete exchange before its bodies are decoded; False drops it. With a
    ``decoder`` bodies are decoded, else a ``shallow`` reader looks for error codes and topics. What a ``sink``
    takes is not among them, nor what a ``reader`` takes, who is asked after each segment. ``fetch_sessions`` are
    followed when somebody asks for topics.
    """

    STATE: ClassVar[tuple[str, ...]] = ("fetch_sessions",)
    __slots__ = ("decoder", "events", "exchange_filter", "fetch_sessions", "reader", "shallow", "sink")

    def __init__(self, exchange_filter: Callable[[Exchange], bool | None] | None) -> None:
        self.exchange_filter = exchange_filter
        self.decoder: BodyDecoder | None = None
        self.shallow: ShallowReader | None = None
        self.fetch_sessions: FetchSessions | None = None
        self.sink: ExchangeSink | None = None
        self.reader: ExchangeSink | None = None
        self.events: list[Event] = []

    def response_filter(self, exchange: Exchange, body_offset: int) -> FrameFilter | None:
        """The filter that keeps a response without its record sets; None where it has none."""
        return self.shallow.stripper(exchange, body_offset) if self.shallow is not None else None

    def report(self, event: Event) -> None:
        """Adds a connection, a connection attempt or a problem to the events, if the sink does not take it."""
        if self.sink is None or self.events or not self.sink.other(event):
            self.events.append(event)

    def complete(self, exchange: Exchange) -> None:
        """Adds an exchange that is as complete as it will be: filtered, and decoded as far as asked for."""
        sessions = self.fetch_sessions
        if sessions is not None and exchange.api_key not in SESSION_APIS:
            sessions = None
        wanted = True
        if self.exchange_filter is not None:
            if sessions is not None:  # a filter may ask for the topics
                sessions.follow(exchange)
                sessions = None
            wanted = self.exchange_filter(exchange) is not False
        if wanted and self.decoder is not None:
            self.decoder.decode(exchange)
        elif self.shallow is not None:
            self.shallow.scan(exchange)
        if sessions is not None:  # by the digests that the decoder has made, where it has
            sessions.follow(exchange)
        # What waits to be reported comes first, or the order of events would not be that of the capture.
        if wanted and (self.sink is None or self.events or not self.sink.exchange(exchange)):
            self.events.append(exchange)
        counts = exchange.connection.exchanges
        outcome = exchange.outcome
        counts[outcome] = counts.get(outcome, 0) + 1

    def is_left(self, reader: ExchangeSink) -> bool:
        """Whether anything is left among the events, of which ``reader`` takes the first ones, exchanges alone."""
        events = self.pop()
        for index, event in enumerate(events):
            if not isinstance(event, Exchange) or not reader.exchange(event):
                self.events = events[index:]
                return True
        return False

    def pop(self) -> list[Event]:
        """Removes and returns the events so far, in the order in which they were complete."""
        events, self.events = self.events, []
        return events
