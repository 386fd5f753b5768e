"""The one loop that all commands run: segments in; exchanges, connections and problems out, to one sink.

Everything that reads Kafka traffic goes through :class:`Analyzer`, whether the segments come from a file, a network
interface or a partition of a cluster job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.depths import Depth
from kwiresniff.base.needs import Needs
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.model import (
    DECRYPTED,
    FIN,
    RST,
    SYN,
    Event,
    EventList,
    Exchange,
    RecordsMode,
    SegmentSink,
    Sink,
)
from kwiresniff.session import problems
from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.session.connection_table import ConnectionTable
from kwiresniff.session.decode import BodyDecoder
from kwiresniff.session.fetch_sessions import FetchSessions
from kwiresniff.session.flow_table import Endpoint
from kwiresniff.session.services import NONE_EARLY, SECRETS_LATE_NS, ConnectionServices
from kwiresniff.session.shallow import ShallowReader
from kwiresniff.session.topic_ids import MAX_TOPIC_NAMES, TopicNameTable
from kwiresniff.stream.frame_reader import MAX_KEPT_BYTES

if TYPE_CHECKING:
    from mypy_extensions import i64


#: Kept of a request whose body is not wanted: enough for the client's name, SASL mechanism and ``acks``.
FRONT_BYTES = 1024
#: Flags of the segments that the short path is not for.
UNUSUAL: Final = FIN | SYN | RST | DECRYPTED
#: What is kept of a response when its body is not wanted: the correlation id and a leading error code.
RESPONSE_FRONT_BYTES = 64


class Analyzer(ConnectionServices):
    """Follows every connection of one stream of segments, and gives what it finds to ``sink``.

    ``needs`` says how far frames are read, and in which form bodies may come; a depth alone is the same as
    ``Needs(depth)``. ``exchange_filter`` is asked about each complete exchange before its bodies are decoded; False
    drops it, True or None keeps it. ``ports`` are known to be brokers': what goes there is Kafka on weaker evidence,
    and what comes from there is no client. ``tls_secrets`` decrypt TLS; whoever reads key logs adds to them.

    Without a sink, events are collected until somebody takes them (``events``). With ``pauses``, control returns to
    the caller after each segment that something came of.

    ``connections`` counts those recognised so far, ``opaque_token_bytes`` what SASL tokens without a header took,
    lengths included: the only bytes of Kafka connections that belong to no event.
    """

    STATE: ClassVar[tuple[str, ...]] = ("table", "topics")

    def __init__(
        self,
        needs: Needs | Depth = "records",
        *,
        sink: Sink | None = None,
        exchange_filter: Callable[[Exchange], bool | None] | None = None,
        show_secrets: bool = False,
        ports: Iterable[int] = (),
        tls_secrets: TlsSecrets | None = None,
    ) -> None:
        needs = needs if isinstance(needs, Needs) else Needs(needs)
        self._events = EventList()
        self.pauses = sink is None
        super().__init__(
            exchange_filter,
            sink or self._events,
            broker_ports=frozenset(port.to_bytes(2, "big") for port in ports),
            attempts=needs.attempts,
            tls_secrets=tls_secrets or TlsSecrets(),
        )
        self._secrets_seen = 0
        self.topics = TopicNameTable()
        output = self.output
        errors, topics = needs.depth != "headers", needs.topics and not needs.decodes
        if needs.topics or needs.sessions:
            output.fetch_sessions = FetchSessions()
        whole = needs.decodes or needs.topics or needs.sessions
        self.keep_request = MAX_KEPT_BYTES if whole else FRONT_BYTES
        self.keep_response = MAX_KEPT_BYTES if errors or topics else RESPONSE_FRONT_BYTES
        records: RecordsMode = "headers" if needs.depth != "records" else "shown" if needs.shown else "full"
        if needs.decodes:
            output.decoder = BodyDecoder(
                records,
                self.topics,
                show_secrets=show_secrets,
                encode=needs.text,
                digests=needs.digests,
            )
        if errors or topics:
            output.shallow = ShallowReader(self.topics, errors=errors, topics=topics)
        self.filters = (errors or topics) and not needs.decodes  # large responses are kept without their record sets
        self.table = ConnectionTable(self)

    # -- the loop -----------------------------------------------------------------------------------------------

    def read(self, feed: Callable[[SegmentSink], bool]) -> Iterator[None]:
        """Reads all segments of ``feed``, returning to the caller after each buffer; connections stay open."""
        while feed(self):
            self.look_for_secrets()
            yield
            if self.paused:
                yield from self._resumed()

    def end(self) -> Iterator[None]:
        """Ends everything that is open."""
        self.close()
        yield
        yield from self._resumed()

    def end_idle(self, idle_ns: int) -> Iterator[None]:
        """Ends the connections that were silent for ``idle_ns`` at the last segment."""
        before = len(self.output.events)
        self.table.expire(idle_ns)
        self._end_without_secrets(self.now_ns)
        self._put_in_order(before)
        self.output.deliver()
        yield
        yield from self._resumed()

    def _resumed(self) -> Iterator[None]:
        """Has those go on who had to pause, one by one, and returns to the caller after each."""
        while self.paused:
            paused, self.paused = self.paused, {}
            for handler, is_ending in paused.items():
                if is_ending:
                    assert isinstance(handler, ConnectionAnalyzer)
                    handler.close()
                else:
                    handler.resume_delivery()
                self.output.deliver()
                yield

    def events(self) -> list[Event]:
        """Removes and returns the events that are complete."""
        return self._events.take()

    def segment(
        self,
        packet: i64,
        ns: int,
        flow: bytes,
        seq: i64,
        ack: i64,
        flags: i64,
        buffer: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> bool:
        """Take a segment (the members of ``Segment``), and deliver what came of it; True asks the caller to pause."""
        self.now_ns = ns
        one = self.table.open.get(flow)
        if (
            one is None
            or flags & UNUSUAL
            or not (one.half.reading or one.begin(start < end or missing > 0))
            or not one.half.feed(one.connection, one.peer, packet, ns, seq, ack, buffer, start, end, missing)
        ):
            self.table.feed(packet, ns, flow, seq, ack, flags, buffer, start, end, missing)
        if self.budget.held > self.budget.limit:
            self._enforce_budget()
        if not self.output.events:
            return False
        self.output.deliver()
        return self.pauses or len(self.paused) > 0

    def look_for_secrets(self) -> None:
        """Decrypts what waits for secrets, where some have come since; what comes of it is delivered."""
        if self.tls_ending:
            self._end_without_secrets(self.now_ns - SECRETS_LATE_NS)
            self.output.deliver()
        if self._secrets_seen == self.tls_secrets.changes:
            return
        self._secrets_seen = self.tls_secrets.changes
        for waiting in list(self.tls_waiting):
            assert isinstance(waiting, ConnectionAnalyzer)
            waiting.look_for_secrets()
        self.output.deliver()

    def _end_without_secrets(self, before_ns: int) -> None:
        """Ends the connections that ended before then and whose secrets have not come."""
        self.waits_at_end = False
        for ending, since_ns in list(self.tls_ending.items()):
            if since_ns > before_ns:
                break
            assert isinstance(ending, ConnectionAnalyzer)
            ending.close()
        self.waits_at_end = True

    def _enforce_budget(self) -> None:
        """Makes connections release bytes until all together hold no more than the limit."""
        for owner, size in self.budget.enforce(self.table.owners()):
            what = "requests without an answer"
            if isinstance(owner, Endpoint):
                connection = owner.connection
                what = f"what the {'client' if owner.half is connection.client else 'broker'} sent"
            else:
                assert isinstance(owner, ConnectionAnalyzer)
                connection = owner
            ns = connection.last_ns()
            self.output.report(problems.too_much_held(connection.connection, what, size, self.budget.limit, ns))

    def _put_in_order(self, start: int) -> None:
        """Sorts the events from ``start`` on, exchanges first and by time: several connections have ended at once."""
        events = self.output.events
        ended = events[start:]
        asked = [one for one in ended if isinstance(one, Exchange)]
        asked.sort(key=_seen_ns)
        events[start:] = [*asked, *[one for one in ended if not isinstance(one, Exchange)]]

    def give_to(self, sink: Sink) -> None:
        """Gives what is found from now on to ``sink``."""
        self.output.sink = sink
        self.pauses = False

    def end_attempts(self) -> None:
        """Ends attempts that nobody has answered for long; they are among the next events."""
        self.table.end_attempts()

    def in_flight(self) -> tuple[int, int]:
        """The number of requests without a response, and when the oldest was sent (ns since 1970)."""
        count, oldest_ns = 0, 0
        for one in self.table.connections():
            inner = one.carried if one.carried is not None else one
            if inner.started and inner.in_flight.by_id:
                count += len(inner.in_flight.by_id) + inner.in_flight.reused
                sent_ns = inner.in_flight.oldest_ns()
                oldest_ns = min(oldest_ns, sent_ns) if oldest_ns else sent_ns
        return count, oldest_ns

    def close(self) -> None:
        """Ends all connections, unanswered requests in the order of their times, and reports other traffic."""
        before = len(self.output.events)
        self.waits_at_end = False
        for ending in list(self.tls_ending):
            assert isinstance(ending, ConnectionAnalyzer)
            ending.close()
        self.table.close()
        self._put_in_order(before)
        if self.topics.forgotten:
            self.output.report(problems.too_many_topic_names(MAX_TOPIC_NAMES, self.topics.forgotten))
            self.topics.forgotten = 0
        self.output.events.extend(self.non_kafka.problems())
        for by_time, (count, packet, ns, most_ns) in enumerate(self.early):
            if count:
                self.output.report(problems.early_responses(bool(by_time), count, packet, ns, most_ns))
        self.early = [NONE_EARLY, NONE_EARLY]
        self.output.deliver()

    def forget(self, flow: bytes, other_flow: bytes, counts: list[int]) -> None:
        """Stops following a connection that is not Kafka; further bytes on its flows only add to ``counts``."""
        self.non_kafka.remember(flow, counts)
        self.non_kafka.remember(other_flow, counts)
        self.table.forget(flow, other_flow)


def _seen_ns(exchange: Exchange) -> int:
    """When an exchange was first seen."""
    first = exchange.request or exchange.response
    return first.first_ns if first is not None else 0
