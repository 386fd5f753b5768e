"""The nouns that pass between rooms, all in this one long file: whoever reads a signature finds what it means here.

Objects made once per exchange or less are slotted classes. What is made once per packet is a plain tuple,
because at that rate an object costs more than everything that is done with it.

Packet references: one int. The low 40 bits are the packet's number in its capture file, counted from 1; the
rest is the index of the file in the order of reading, so with a single file the reference is the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from mypy_extensions import mypyc_attr

from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.base.observations import ConnectionAttempt as ConnectionAttempt
from kwiresniff.base.observations import Problem as Problem
from kwiresniff.base.observations import Unacknowledged as Unacknowledged
from kwiresniff.base.packet_references import PACKET_BITS, PACKET_MASK
from kwiresniff.digest import Digest

if TYPE_CHECKING:
    from mypy_extensions import i64

Direction: TypeAlias = Literal["request", "response"]
Outcome: TypeAlias = Literal["ok", "error", "no_response_expected", "unanswered", "request_missing", "undecoded"]
#: All of them; numbers stand for outcomes by their place in it.
OUTCOMES: Final[tuple[Outcome, ...]] = (
    "ok", "error", "no_response_expected", "unanswered", "request_missing", "undecoded",
)  # fmt: skip
RecordsMode: TypeAlias = Literal["full", "shown", "headers", "skip"]
Body: TypeAlias = dict[str, Any]

#: One TCP segment as it leaves the capture room:
#: ``(packet, timestamp_ns, flow, seq, ack, flags, buffer, start, end, missing)``.
#: ``flow`` is source address, destination address, source port, destination port as raw network-order bytes
#: (12 bytes for IPv4, 36 for IPv6). The payload is ``buffer[start:end]``; ``missing`` more bytes were on the wire
#: but are not in the capture (snap length). ``flags`` are the TCP flag bits (FIN 1, SYN 2, RST 4, PSH 8, ACK 16),
#: or DECRYPTED alone: then this is no segment from the wire but what a TLS connection carries, and ``seq`` counts the
#: plaintext of its direction from 0.
Segment: TypeAlias = tuple[int, int, bytes, int, int, int, bytes, int, int, int]

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10
DECRYPTED: Final = 0x100


class SegmentSink:
    """Takes segments, the members of ``Segment`` as arguments; a base class, because both sides are compiled."""

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
        """Take one segment; True asks the caller to pause, because there is something to do with what came of it."""
        raise NotImplementedError


class SegmentList(SegmentSink):
    """Keeps segments as tuples."""

    def __init__(self) -> None:
        self.taken: list[Segment] = []

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
        self.taken.append((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
        return False


#: Segments between two returns to whoever reads, of a source that gives one after the other.
SEGMENTS_AT_A_TIME: Final = 1_024


def feed_of(segments: Iterable[Segment]) -> Callable[[SegmentSink], bool]:
    """Returns a function that feeds ``segments`` to a sink in pieces, as ``CaptureSet.feed`` does."""
    rest = iter(segments)

    def feed(sink: SegmentSink) -> bool:
        found = False
        for packet, ns, flow, seq, ack, flags, buffer, start, end, missing in islice(rest, SEGMENTS_AT_A_TIME):
            found = True
            if sink.segment(packet, ns, flow, seq, ack, flags, buffer, start, end, missing):
                break
        return found

    return feed


def packet_number(reference: int) -> int:
    """The number of a packet inside its file, from 1, by its ``reference``."""
    return reference & PACKET_MASK


def file_index(reference: int) -> int:
    """The index of the file that a packet was read from, from 0, by the packet's ``reference``."""
    return reference >> PACKET_BITS


class Connection:
    """A TCP connection that speaks Kafka (or TLS), and what has been counted on it.

    ``id`` numbers connections from 1 in the order in which they showed what they are. ``client`` and ``broker`` are
    ``ip:port`` texts, IPv6 in brackets. Index 0 of every pair is client to broker, index 1 broker to client.
    ``client_id`` is that of the first request. ``closed_by`` is ``client`` or ``broker``, whoever sent the first FIN or
    RST, or empty; ``was_reset`` says that it was a RST. ``captured_twice`` counts those of the ``retransmits`` that
    came so soon after another segment that they may be copies made by the capture, ``copies`` those of each direction
    that no loss explains: what followed itself at once, doubled by the capture or the network, and what came after all
    when it had been sent again. Where a capture ``is_twice``, having nearly everything from two capture points, it
    counts the segments of the second one, which are none of the ``retransmits`` then, nor are their ``bytes`` counted;
    requests passed it ``later_ns`` after the first one, the least of all, or None where no request shows that.
    ``unacknowledged`` is the last segment with data that was sent again, if it never was acknowledged. ``recovered``
    counts segments that were lost before the capture point and sent again, ``largest_segments`` are the bytes of data
    in the largest segment. ``path_ns`` passed at the capture point between the SYN, sent once, and its answer: what
    packets take from there to the broker and back, None where that is not known. ``proxied`` says what a proxy's
    preamble tells: ``client`` and ``broker``, the real ones behind the proxy (``host:port`` or None), and ``by``, the
    names of the preambles; None where there is none.

    ``client_iss`` and ``broker_iss`` are the sequence numbers of their SYNs (RFC 9293: ISS), -1 where they are not
    known; ``end_seq`` is the one behind the latest request, whose correlation id is ``correlation_id``. ``copy_of`` is
    the number of the connection of which this is another view, None where it is none; ``via`` then says what is between
    both views (``nat`` or ``proxy``), and ``apart_ns`` by how much longer requests wait for their responses at the view
    that is farther from the broker, the median of the first ones. ``tls_session`` names the session of a connection
    that was decrypted: the client's random, and the session's id (``base.tls_secrets``).
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "apart_ns", "broker", "broker_iss", "bytes", "captured_twice", "client", "client_id", "client_iss",
        "client_software", "closed_by", "closed_ns", "closed_packet", "copies", "copy_of", "correlation_id", "end_seq",
        "exchanges", "first_ns", "first_packet", "handshake_rtt_ns", "handshake_seen", "id", "is_twice",
        "largest_segments", "last_ns", "later_ns", "packets", "path_ns", "protocol", "proxied", "recovered",
        "retransmits", "sasl", "skipped_bytes", "syn_retransmits", "tls", "tls_session", "unacknowledged",
        "via", "was_reset",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, id: int, client: str, broker: str) -> None:
        self.id = id
        self.client = client
        self.broker = broker
        self.protocol = "kafka"
        self.proxied: dict[str, Any] | None = None
        self.first_ns = 0
        self.last_ns = 0
        self.bytes = [0, 0]
        self.packets = [0, 0]
        self.largest_segments = [0, 0]
        self.recovered = [0, 0]
        self.retransmits = [0, 0]
        self.captured_twice = 0
        self.copies = (0, 0)
        self.is_twice = False
        self.later_ns: int | None = None
        self.client_iss: i64 = -1
        self.broker_iss: i64 = -1
        self.end_seq: i64 = -1
        self.correlation_id: i64 = -1
        self.copy_of: int | None = None
        self.via = ""
        self.apart_ns: int | None = None
        self.unacknowledged: Unacknowledged | None = None
        self.skipped_bytes = [0, 0]
        self.handshake_seen = False
        self.handshake_rtt_ns: int | None = None
        self.path_ns: int | None = None
        self.client_software: dict[str, str] | None = None
        self.sasl: dict[str, Any] | None = None
        self.tls: dict[str, Any] | None = None
        self.tls_session: tuple[bytes, bytes] | None = None
        self.exchanges: dict[str, int] = {}
        self.client_id: str | None = None
        self.first_packet = 0
        self.syn_retransmits = 0
        self.closed_by = ""
        self.was_reset = False
        self.closed_ns = 0
        self.closed_packet = 0

    @property
    def initial_seqs(self) -> tuple[int, int] | None:
        """The sequence numbers of both SYNs, client's first, or None."""
        return None if self.client_iss < 0 or self.broker_iss < 0 else (self.client_iss, self.broker_iss)


#: ``body, end = decode(frame, body_offset, problems)``
DecodeBody: TypeAlias = Callable[[bytes, int, list[Problem]], tuple[Body, int]]


class Message:
    """One frame, request or response, without its 4-byte length.

    ``frame`` is header and body as bytes, or None when nobody asked for the body. ``body_offset`` is where the
    body starts in it. ``first_ns`` and ``last_ns`` are the times of the packets that carried the first byte of
    the length and the last byte of the frame; ``last_ns`` is not below ``first_ns``, in whatever order the capture has
    them. ``text`` is the body as JSON text in UTF-8, in pieces, without ``body`` when only that was asked for. With a
    ``digest`` the body is decoded when somebody asks for it (``is_deferred``). ``dissection`` is the annotated body
    where it had to be read for what is wrong with it, or for what its records hold, and a tree will show it.
    ``end_seq`` is the TCP sequence number behind it, or -1.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "_body", "_decode", "body_offset", "digest", "dissection", "end_seq", "first_ns", "first_packet", "frame",
        "header_version", "last_ns", "last_packet", "size_bytes", "text", "version",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(
        self, first_packet: int, first_ns: int, last_packet: int, last_ns: int, size_bytes: int, frame: bytes | None
    ) -> None:
        self.first_packet = first_packet
        self.first_ns = first_ns
        self.last_packet = last_packet
        self.last_ns = last_ns if last_ns > first_ns else first_ns
        self.size_bytes = size_bytes
        self.frame = frame
        self.header_version = 0
        self.body_offset = 0
        self.version = -1  # the version the body is read as; differs from api_version in a downgraded ApiVersions
        self._body: Body | None = None
        self._decode: DecodeBody | None = None
        self.text: list[bytes] | None = None
        self.digest: Digest | None = None
        self.dissection: Dissection | None = None
        self.end_seq: i64 = -1

    @property
    def body(self) -> Body | None:
        """The decoded body, None for one that is not wanted or cannot be read."""
        decode, frame = self._decode, self.frame
        if decode is not None and frame is not None:
            self._decode = None
            self._body, _ = decode(frame, self.body_offset, [])
        return self._body

    @body.setter
    def body(self, body: Body | None) -> None:
        self._decode = None
        self._body = body

    @property
    def is_deferred(self) -> bool:
        """Whether the body is sound and will be decoded on demand."""
        return self._decode is not None

    def defer(self, digest: Digest | None, decode: DecodeBody) -> None:
        """The body is as it should be; ``decode`` reads it when it is asked for."""
        self.digest = digest
        self._decode = decode


class SessionIdentity:
    """A fetch session in tables of what is known of its fetches, on whichever connections they come."""

    STATE: ClassVar[tuple[str, ...]] = ()
    __slots__ = STATE


class SessionMembers:
    """The topics or partition numbers of a fetch session after the first ``end`` changes of its log: ``values``, and
    whether each was ``added``. ``count`` is their number.
    """

    STATE: ClassVar[tuple[str, ...]] = ("added", "count", "end", "values")
    __slots__ = STATE

    def __init__(self, values: list[Any], added: list[bool], count: int) -> None:
        self.values = values
        self.added = added
        self.end = len(values)
        self.count = count

    def present(self) -> list[Any]:
        """The members, in the order in which they came."""
        if self.count == self.end:
            return self.values[: self.end]
        found: dict[Any, None] = {}
        for at in range(self.end):
            if self.added[at]:
                found[self.values[at]] = None
            else:
                del found[self.values[at]]
        return list(found)

    def since(self, earlier: SessionMembers | None) -> list[tuple[Any, bool]]:
        """Members that came (true) and went (false) since an earlier fetch of the session; all of them without one."""
        if earlier is not None and earlier.values is self.values and earlier.end <= self.end:
            return [(self.values[at], self.added[at]) for at in range(earlier.end, self.end)]
        before: dict[Any, None] = {} if earlier is None else dict.fromkeys(earlier.present())
        now: dict[Any, None] = dict.fromkeys(self.present())
        gone = [(value, False) for value in before if value not in now]
        return gone + [(value, True) for value in now if value not in before]


class FetchedTopics:
    """The topics (by name or id) and partitions of a fetch session; ``is_whole`` if seen from its start."""

    STATE: ClassVar[tuple[str, ...]] = ("is_whole", "names", "numbers", "session")
    __slots__ = STATE

    def __init__(
        self, session: SessionIdentity, names: SessionMembers, numbers: SessionMembers, is_whole: bool
    ) -> None:
        self.session = session
        self.names = names
        self.numbers = numbers
        self.is_whole = is_whole

    @property
    def topics(self) -> list[str]:
        """The topics, by name or id."""
        return self.names.present()

    @property
    def partitions(self) -> list[int]:
        """The numbers of their partitions, each once."""
        return self.numbers.present()


#: Error codes that are steps of an ordinary conversation: a first join is sent back with the member's id (KIP-394), a
#: member learns that its group rebalances, a producer that the transaction before is being completed, somebody that
#: the controller is another, and whoever asks first after a start that the coordinator loads.
STEPS: Final = frozenset({
    "MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS", "CONCURRENT_TRANSACTIONS", "NOT_CONTROLLER",
    "COORDINATOR_LOAD_IN_PROGRESS",
})  # fmt: skip
#: In answer to an ApiVersions request too new, which is then asked again (KIP-511).
_FALLBACK: Final = "UNSUPPORTED_VERSION"

#: A part of a wait that is not known.
UNKNOWN_NS: Final = -1


class Exchange:
    """A request and its response, or the one of them that was seen.

    ``api_key`` and ``api_version`` are -1 when the request is missing. ``errors`` holds
    ``(path, code, name, retriable)`` for every non-zero error code in the response. ``notes`` is what plugins had to
    say, each a JSON-ready dict with the ``plugin``'s name. ``topics`` are topic names collected without decoding
    bodies, ``fetched`` what the fetch session is about that an incremental fetch belongs to.

    Of the wait for the response ``path`` nanoseconds are what packets take to the broker and back, 0 where that is
    short or not known, ``queued_ns`` passed until the answer before it on the connection had gone, the
    ``muted_ns`` of it that the broker muted the channel of a throttled client included, ``held_ns`` while the broker
    held it back on purpose, and ``broker_ns`` is the rest; each is None where that is not known. ``waiting`` names the
    reason of a deliberate wait (``long poll``, ``rebalance``, ``throttled``) or is empty. ``queued`` and ``held`` are
    the same as numbers for hot code, UNKNOWN_NS where they are not known.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "api", "api_key", "api_version", "client_id", "connection", "correlation_id", "errors", "fetched", "held",
        "muted_ns", "notes", "outcome", "path", "problems", "queued", "request", "response", "topics", "waiting",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(
        self,
        connection: Connection,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        request: Message | None,
        response: Message | None,
    ) -> None:
        self.connection = connection
        self.api = ""
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.request = request
        self.response = response
        self.outcome: Outcome = "ok"
        self.errors: list[tuple[str, int, str, bool]] = []
        self.problems: list[Problem] = []
        self.waiting = ""
        self.path: int = 0
        self.queued: int = UNKNOWN_NS
        self.held: int = UNKNOWN_NS
        self.muted_ns: int = 0
        self.topics: tuple[str, ...] = ()
        self.fetched: FetchedTopics | None = None
        self.notes: Sequence[dict[str, Any]] = ()

    @property
    def is_negotiation(self) -> bool:
        """Whether nothing went wrong although there is an error: all its errors are ordinary steps of a conversation,
        or it is a long poll that was under way when the connection ended.
        """
        if not self.errors:
            return self.outcome == "unanswered" and self.waiting != ""
        for _, _, name, _ in self.errors:
            if name not in STEPS and not (name == _FALLBACK and self.api_key == API_VERSIONS):
                return False
        return True

    @property
    def latency_ns(self) -> int | None:
        """Last byte of the request to first byte of the response at the capture point; None if negative or unknown."""
        if self.request is None or self.response is None:
            return None
        latency_ns = self.response.first_ns - self.request.last_ns
        return latency_ns if latency_ns >= 0 else None

    @property
    def queued_ns(self) -> int | None:
        """Nanoseconds until the previous answer had gone and its mute was over, or None."""
        return self.queued if self.queued >= 0 else None

    @property
    def held_ns(self) -> int | None:
        """The nanoseconds for which the broker held the response back on purpose, or None."""
        return self.held if self.held >= 0 else None

    @property
    def broker_ns(self) -> int | None:
        """The rest of the latency, the time the broker itself needed, in nanoseconds, or None."""
        latency_ns = self.latency_ns
        if latency_ns is None or self.queued < 0 or self.held < 0:
            return None
        return latency_ns - self.path - self.queued - self.held


#: What a ``Sink`` is given. Attempts only if it asks for them.
Event: TypeAlias = Exchange | Connection | Problem | ConnectionAttempt


@mypyc_attr(allow_interpreted_subclasses=True)
class Sink:
    """Receives what an analyzer finds, at the end of the segment that completed it, with the names known then. An
    exchange may be changed by earlier sinks, and is dropped after the last: keeping one keeps its frames.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        """Receives a complete exchange."""

    def on_connection(self, connection: Connection) -> None:
        """Receives a connection that has ended."""

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        """Receives a connection attempt that was refused or not answered."""

    def on_problem(self, problem: Problem) -> None:
        """Receives a problem of the captures or of a connection; those of an exchange are in ``Exchange.problems``."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ForwardingSink(Sink):
    """Gives everything to the ``next`` sink: the base of sinks that change or choose what the next one gets."""

    def __init__(self, next: Sink) -> None:
        self.next = next

    def on_exchange(self, exchange: Exchange) -> None:
        self.next.on_exchange(exchange)

    def on_connection(self, connection: Connection) -> None:
        self.next.on_connection(connection)

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        self.next.on_attempt(attempt)

    def on_problem(self, problem: Problem) -> None:
        self.next.on_problem(problem)


class EventList(Sink):
    """Collects events until they are taken."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def on_exchange(self, exchange: Exchange) -> None:
        self._events.append(exchange)

    def on_connection(self, connection: Connection) -> None:
        self._events.append(connection)

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        self._events.append(attempt)

    def on_problem(self, problem: Problem) -> None:
        self._events.append(problem)

    def take(self) -> list[Event]:
        """Removes and returns the events collected."""
        events, self._events = self._events, []
        return events


class Node:
    """One field of an annotated message: where it lies, what it holds, what that means.

    ``offset`` and ``length`` are bytes from the start of the frame; a node made of decompressed bytes has ``derived``
    set and its offset counts inside the decompressed data. ``type`` is the wire type as the protocol guide names it,
    ``STRUCT``, ``ARRAY``, or a record-batch part (``RECORD_BATCH``, ``RECORD``, ``HEADER``, ...); ``tag`` is the number
    of a tagged field. ``value`` is the plain value of a leaf; a container has None there and its ``children``. ``null``
    distinguishes a null container from an empty one. ``meaning`` is what a person would want to read beside the value,
    or empty; ``hint`` how more could be seen of it. What lies nowhere in the frame, nor in decompressed data, has an
    offset of -1.
    """

    __slots__ = (
        "children", "derived", "hint", "length", "meaning", "name", "null", "offset", "problem", "tag", "type", "value",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        type: str,
        offset: int,
        length: int,
        value: Any = None,
        meaning: str = "",
        null: bool = False,
        derived: bool = False,
        tag: int | None = None,
        problem: str = "",
        hint: str = "",
        children: list[Node] | None = None,
    ) -> None:
        self.name = name
        self.type = type
        self.offset = offset
        self.length = length
        self.value = value
        self.meaning = meaning
        self.null = null
        self.derived = derived
        self.tag = tag
        self.problem = problem
        self.hint = hint
        self.children: list[Node] = children if children is not None else []


class Dissection:
    """An annotated message up to ``end``, with problems; ``is_whole`` if nothing read lacks its node."""

    __slots__ = ("end", "is_whole", "problems", "root")

    def __init__(self, root: Node, end: int, problems: list[Problem] | None = None, *, is_whole: bool = True) -> None:
        self.root = root
        self.end = end
        self.is_whole = is_whole
        self.problems: list[Problem] = problems if problems is not None else []


#: ``topic_name(topic_id_text) -> name or None``: what a capture has shown of topic ids so far.
TopicNames: TypeAlias = Callable[[str], "str | None"]
