"""What an analyzer gives to its sink: exchanges, with bodies read as far as asked for, connections and problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.api_keys import FETCH, SHARE_ACKNOWLEDGE, SHARE_FETCH
from kwiresniff.model import Connection, Event, Exchange, Problem, Sink
from kwiresniff.session.topic_ids import NAMING_APIS
from kwiresniff.stream.frame_handler import FrameFilter

if TYPE_CHECKING:
    from kwiresniff.session.decode import BodyDecoder
    from kwiresniff.session.fetch_sessions import FetchSessions
    from kwiresniff.session.shallow import ShallowReader

#: The APIs whose requests belong to fetch sessions.
SESSION_APIS: Final = frozenset({FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE})


class EventOutput:
    """Collects the ``events`` of a segment and delivers them to ``sink``. ``exchange_filter`` may drop exchanges
    (False) before a ``decoder`` decodes bodies or a ``shallow`` reader looks for errors and topics; ``fetch_sessions``
    are followed for topics.
    """

    STATE: ClassVar[tuple[str, ...]] = ("fetch_sessions",)
    __slots__ = ("decoder", "events", "exchange_filter", "fetch_sessions", "shallow", "sink")

    def __init__(self, exchange_filter: Callable[[Exchange], bool | None] | None, sink: Sink) -> None:
        self.exchange_filter = exchange_filter
        self.decoder: BodyDecoder | None = None
        self.shallow: ShallowReader | None = None
        self.fetch_sessions: FetchSessions | None = None
        self.sink = sink
        self.events: list[Event] = []

    def response_filter(self, exchange: Exchange, body_offset: int) -> FrameFilter | None:
        """The filter that keeps a response without its record sets; None where it has none."""
        return self.shallow.stripper(exchange, body_offset) if self.shallow is not None else None

    def report(self, event: Event) -> None:
        """Adds a connection, a connection attempt or a problem to the events."""
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
        # Those that name topics, or tell which configs are secrets, are read in any case: others depend on them.
        if self.decoder is not None and (wanted or exchange.api_key in NAMING_APIS):
            self.decoder.decode(exchange)
        elif self.shallow is not None:
            self.shallow.scan(exchange)
        if sessions is not None:  # by the digests that the decoder has made, where it has
            sessions.follow(exchange)
        if wanted:
            self.events.append(exchange)
        counts = exchange.connection.exchanges
        outcome = exchange.outcome
        counts[outcome] = counts.get(outcome, 0) + 1

    def deliver(self) -> None:
        """Gives the events to the sink, in the order in which they were complete."""
        events, self.events = self.events, []
        sink = self.sink
        for event in events:
            if isinstance(event, Exchange):
                sink.on_exchange(event)
            elif isinstance(event, Connection):
                sink.on_connection(event)
            elif isinstance(event, Problem):
                sink.on_problem(event)
            else:
                sink.on_attempt(event)
