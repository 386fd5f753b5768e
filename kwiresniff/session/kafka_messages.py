"""Kafka's frames to exchanges: pairs requests with responses, and peeks at what every depth needs of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.api_keys import API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwiresniff.base.fastint import i16, i32
from kwiresniff.base.header_fields import unpack_correlation_id, unpack_request_header_v0
from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK
from kwiresniff.model import Direction, Exchange, Message, Problem
from kwiresniff.session import problems
from kwiresniff.session.apis import FACTS, api_facts
from kwiresniff.session.channel import Channel
from kwiresniff.session.frame_search import MIN_REQUEST_BYTES
from kwiresniff.session.in_flight import (
    MANY_IN_FLIGHT_BYTES,
    MAX_IN_FLIGHT,
    MAX_IN_FLIGHT_BYTES,
    InFlightRequests,
    request_bytes,
)
from kwiresniff.session.peek import (
    GUARDED_REQUESTS,
    acks_of_produce,
    missing_bytes,
    runs_into_body,
    skip_tagged_fields,
    software_of,
)
from kwiresniff.session.readings import FAILS, read_response
from kwiresniff.session.response_reordering import (
    MAX_REORDERED_BYTES,
    Response,
    ResponseReorderBuffer,
    response_bytes,
)
from kwiresniff.session.sasl_phase import SaslPhase
from kwiresniff.stream.frame_handler import LOST_BAD_LENGTH, FrameFilter
from kwiresniff.stream.half_stream import HalfStream

if TYPE_CHECKING:
    from mypy_extensions import i64

#: A correlation id and an empty tag section.
MIN_RESPONSE_FRONT_BYTES: Final = 5
FRAME_LENGTH_BYTES: Final = 4
#: Requests looked through for those in a copied segment, the newest first: what is between two capture points.
MAX_COPIED_REQUESTS: Final = 256
#: Characters reported of the name of a client's software, and of its version. Real ones have some tens.
MAX_SOFTWARE_CHARACTERS = 255
#: APIs that every depth looks into, for the software and the principal of a connection.
_PEEKED: Final = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})


class KafkaMessages(SaslPhase):
    """The requests and responses of one connection: ``in_flight`` without a response, ``reordering`` without a request.
    While ``releasing`` these, ``released_seq`` is the sequence number behind the current one.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "channel", "client_ids", "reordering", "first_correlation_id", "in_flight", "released_seq", "releasing",
    )  # fmt: skip
    __slots__ = STATE

    def start(self) -> None:
        """Makes what reads messages, too."""
        super().start()
        self.client_ids = self.services.client_ids
        self.in_flight = InFlightRequests()
        self.reordering = ResponseReorderBuffer()
        self.releasing = False
        self.released_seq: i64 = -1
        self.channel = Channel()
        self.first_correlation_id: int | None = None

    def identify(self, client: HalfStream, protocol: str) -> None:
        """Gives the connection its number, and its channel the time of the path."""
        super().identify(client, protocol)
        self.channel.path_ns = self.services.far_path_ns(self.connection)

    # -- requests -----------------------------------------------------------------------------------------------

    def request(self, packet: i64, ns: int, last_packet: i64, last_ns: int, size: i64, data: bytes, lost: i64) -> None:
        """A frame from the client."""
        message = Message(packet, ns, last_packet, last_ns, size, data)
        message.end_seq = self.client.frame_end()
        present: i64 = len(data)
        if present < MIN_REQUEST_BYTES:
            self._short_request(message, data, lost)
            return
        api_key: i64
        api_version: i64
        correlation_id: i64
        length: i64
        api_key, api_version, correlation_id, length = i16(data, 0), i16(data, 2), i32(data, 4), i16(data, 8)
        self.connection.end_seq, self.connection.correlation_id = message.end_seq, correlation_id
        facts = FACTS.get((api_key << 16) + api_version) or api_facts(api_key, api_version)
        if not facts.known and self.is_stray_token(packet, ns, size, data, lost):
            return
        header_version = facts.request_header_version
        client_id: str | None = None
        problem: Problem | None = None
        offset = 10
        if length > 0 and header_version:
            offset += length
            if offset <= present:
                raw = data[10:offset]
                client_id = self.client_ids.get(raw)
                if client_id is None:
                    client_id, problem = self._new_client_id(api_key, raw)
            elif 10 + length > size:  # what stands there is something else, a password perhaps
                problem = Problem("bad_client_id", f"client id of {length} bytes is longer than the frame", 8)
        elif header_version == 0:
            offset = 8
        elif length == 0:
            client_id = ""
        elif length < -1:
            problem = Problem("bad_client_id", f"client id with a length of {length}", 8)
        if header_version == 2:
            if offset < present and data[offset] == 0:
                offset += 1
            else:
                offset = skip_tagged_fields(data, offset)
        message.header_version = header_version
        message.body_offset = offset
        exchange = Exchange(self.connection, api_key, api_version, correlation_id, client_id, message, None)
        exchange.api = facts.name
        if problem is not None:
            exchange.problems.append(problem)
        if lost:
            exchange.problems.append(missing_bytes("request", lost, size, self.client.frames.lost_code))
        if api_key == PRODUCE:
            if acks_of_produce(facts, data, offset) == 0:
                exchange.outcome = "no_response_expected"
                if self.first_correlation_id is None:
                    self._first_request(exchange)
                self.services.output.complete(exchange)
                return
        elif api_key in _PEEKED:
            self._peek_request(exchange)
        self._await(exchange)

    def _new_client_id(self, api_key: i64, raw: bytes) -> tuple[str | None, Problem | None]:
        """A client id that the connection has not had so far, or what is wrong with it."""
        if api_key in GUARDED_REQUESTS and runs_into_body(raw):
            return None, Problem("bad_client_id", f"client id of {len(raw)} bytes runs into the body", 8)
        return self.services.client_id(raw), None

    def _peek_request(self, exchange: Exchange) -> None:
        """Reads the few fields of a request that describe the client at every depth."""
        if exchange.api_key != API_VERSIONS:
            self.sasl_request(exchange)
            return
        name, version = software_of(exchange)
        if name:
            short = MAX_SOFTWARE_CHARACTERS
            self.connection.client_software = {"name": name[:short], "version": version[:short]}

    def _short_request(self, message: Message, data: bytes, lost: int) -> None:
        """A frame too short for a header with a client id: ControlledShutdown v0, a request mostly lost, or none."""
        size = message.size_bytes
        if size < 8:
            self.client.desynchronize(LOST_BAD_LENGTH)
            self.on_gap(self.client_side, message.first_packet, message.first_ns, 0, size + 4, LOST_BAD_LENGTH)
            return
        if len(data) < 8:
            self._lost("request", message.first_packet, message.first_ns, size, lost, self.client.frames.lost_code)
            return
        api_key, api_version, correlation_id = unpack_request_header_v0(data)
        facts = api_facts(api_key, api_version)
        exchange = Exchange(self.connection, api_key, api_version, correlation_id, None, message, None)
        exchange.api = facts.name
        message.body_offset = 8
        if facts.request_header_version:
            exchange.problems.append(Problem("bad_header", "the frame ends inside its header", 8))
        if lost:
            exchange.problems.append(missing_bytes("request", lost, size, self.client.frames.lost_code))
        self._await(exchange)

    def _await(self, exchange: Exchange) -> None:
        """Remember a request until its response comes."""
        in_flight = self.in_flight
        by_id = in_flight.by_id
        correlation_id = exchange.correlation_id
        if correlation_id in by_id:
            in_flight.add_reused(exchange)
        else:
            by_id[correlation_id] = exchange
        size = request_bytes(exchange)
        in_flight.bytes += size
        self.services.budget.held += size
        if in_flight.bytes > MANY_IN_FLIGHT_BYTES:
            self._evict_oldest(MAX_IN_FLIGHT_BYTES)
            if len(by_id) + in_flight.reused > MAX_IN_FLIGHT:
                self._evict(in_flight.pop_oldest())
        if self.first_correlation_id is None:
            self._first_request(exchange)

    def _first_request(self, exchange: Exchange) -> None:
        self.first_correlation_id = exchange.correlation_id
        self.connection.client_id = exchange.client_id

    def _evict_oldest(self, most: i64) -> None:
        """Give up the oldest requests until no more than ``most`` bytes are held, or only one is."""
        in_flight = self.in_flight
        while in_flight.bytes > most and len(in_flight.by_id) + in_flight.reused > 1:
            self._evict(in_flight.pop_oldest())

    def _evict(self, exchange: Exchange) -> None:
        exchange.outcome = "unanswered"
        self.services.output.complete(exchange)

    def on_copy(self, side: i64, packet: int, ns: int, seq: int, length: int) -> None:
        """Moves the times of waiting requests to the second capture point, which their responses pass first."""
        if side != self.client_side:
            return
        for looked, found in enumerate(reversed(self.in_flight.by_id.values())):
            exchange = found if isinstance(found, Exchange) else found[-1]
            request = exchange.request
            if request is None or looked == MAX_COPIED_REQUESTS:
                return
            before_end = (request.end_seq - seq) & SEQ_MASK
            if 0 < before_end <= length:
                later_ns = ns - request.last_ns
                known_ns = self.connection.later_ns
                self.connection.later_ns = later_ns if known_ns is None else min(later_ns, known_ns)
                request.last_packet, request.last_ns = packet, ns
            size: i64 = request.size_bytes + FRAME_LENGTH_BYTES
            before_start = (request.end_seq - size - seq) & SEQ_MASK
            if before_start < length:
                request.first_packet, request.first_ns = packet, ns
            if before_end == 0 or before_end >= SEQ_HALF:
                return  # it ends before the copy, as all older ones do

    # -- responses ----------------------------------------------------------------------------------------------

    def response(self, packet: i64, ns: int, last_packet: i64, last_ns: int, size: i64, data: bytes, lost: i64) -> None:
        """A frame from the broker."""
        if len(data) < 4:
            self._short_response(packet, ns, size, lost)
            return
        end_seq = self.released_seq if self.releasing else self.broker.frame_end()
        correlation_id = i32(data, 0)
        in_flight = self.in_flight
        found = in_flight.by_id.pop(correlation_id, None)
        if found is None:
            if self._hold_back((packet, ns, last_packet, last_ns, size, data, lost, self.broker.ack, end_seq)):
                return
            found = in_flight.by_id.pop(correlation_id, None)
        elif self.reordering.held:
            self.release_reordered()
        message = Message(packet, ns, last_packet, last_ns, size, data)
        message.body_offset = 4
        message.end_seq = end_seq
        request: Message | None = None
        if found is not None:
            exchange = found if isinstance(found, Exchange) else found[0]
            request = exchange.request
            if request is not None and request.last_packet >= last_packet and not self._acknowledges(request):
                in_flight.by_id[correlation_id] = found
                request = None
        if found is None or request is None:
            exchange = Exchange(self.connection, -1, -1, correlation_id, None, None, message)
            exchange.outcome = "request_missing"
            self.channel.unpaired(message)
            if lost:
                exchange.problems.append(missing_bytes("response", lost, size, self.broker.frames.lost_code))
            self.services.output.complete(exchange)
            return
        if exchange is not found:
            in_flight.first_of(correlation_id, found)
        if in_flight.by_id:
            in_flight.bytes -= request_bytes(exchange)
        else:
            in_flight.bytes = 0
        exchange.response = message
        api_key = exchange.api_key
        facts = FACTS.get((api_key << 16) + exchange.api_version) or api_facts(api_key, exchange.api_version)
        if facts.response_header_version:
            message.header_version = facts.response_header_version
            message.body_offset = 5 if len(data) > 4 and data[4] == 0 else skip_tagged_fields(data, 4)
        self.channel.answered(exchange, request, message, facts)
        if ns < request.last_ns or packet < request.last_packet:
            self._came_early(exchange, request, message)
        if lost:
            exchange.problems.append(missing_bytes("response", lost, size, self.broker.frames.lost_code))
        if api_key in _PEEKED and api_key != API_VERSIONS:
            self.sasl_response(exchange, last_ns)
        self.services.output.complete(exchange)

    def _came_early(self, exchange: Exchange, request: Message, response: Message) -> None:
        """Counts a response before its request, by its time or else by the order of packets alone."""
        ahead_ns = request.last_ns - response.first_ns
        if ahead_ns > 0:
            exchange.problems.append(problems.early_response(ahead_ns))
        self.services.count_early(ahead_ns, response.first_packet, response.first_ns)

    def _short_response(self, packet: int, ns: int, size: int, lost: int) -> None:
        """A frame without a correlation id: most of it is lost, or it never was one."""
        if size < 4:
            self.broker.desynchronize(LOST_BAD_LENGTH)
            self.on_gap(self.broker.side, packet, ns, 0, size + 4, LOST_BAD_LENGTH)
        else:
            self._lost("response", packet, ns, size, lost, self.broker.frames.lost_code)

    def _lost(self, direction: Direction, packet: int, ns: int, size: int, lost: int, code: str) -> None:
        """Reports a frame of which so many bytes are ``lost`` that it belongs to no exchange."""
        self.services.output.report(problems.lost_message(self.connection, direction, packet, ns, size, lost, code))

    def _acknowledges(self, request: Message) -> bool:
        """Whether a response acknowledges a request, as far as known; one sent before the request answers an earlier
        one with the same id, which is not in the capture.
        """
        ack = self.broker.ack
        return ack < 0 or request.end_seq < 0 or (ack - request.end_seq) & SEQ_MASK < SEQ_HALF

    def evict_overtaken(self, last_packet: int, size: int, data: bytes) -> None:
        """Gives up requests older than the one that the first frame behind lost bytes answers: brokers keep order."""
        in_flight, correlation_id = self.in_flight, unpack_correlation_id(data)[0]
        if not in_flight.may_overtake(correlation_id):
            return
        whole = len(data) == size

        def answers(exchange: Exchange) -> bool:
            if whole and read_response(exchange.api_key, exchange.api_version, data) == FAILS:
                return False
            request = exchange.request
            return request is None or request.last_packet < last_packet or self._acknowledges(request)

        for exchange in in_flight.overtaken_by(correlation_id, answers):
            self._evict(exchange)

    def frame_filter(self, side: i64, data: bytes, start: i64, end: i64) -> FrameFilter | None:
        """The filter that keeps a response without its record sets, where its request is known."""
        if side == self.client_side or self.responses_lost or self.has_opaque_answers():
            return None
        if end - start < MIN_RESPONSE_FRONT_BYTES:
            return None
        found = self.in_flight.by_id.get(i32(data, start))
        if not isinstance(found, Exchange):
            return None
        facts = api_facts(found.api_key, found.api_version)
        if facts.response_header_version and data[start + 4]:
            return None
        return self.services.output.response_filter(found, 5 if facts.response_header_version else 4)

    # -- responses before their requests ------------------------------------------------------------------------

    def _hold_back(self, response: Response) -> bool:
        """Buffers a response without a request; False when it must do without. Under pressure gaps before waiting
        requests are skipped, then the oldest responses handled: look again after False.
        """
        reordering = self.reordering
        if self.releasing or self.closed:
            return False
        data = response[5]
        size = response_bytes(data)
        if reordering.is_too_much(size):
            self.client.flush(self)
            while reordering.held and reordering.is_too_much(size):
                self.handle_reordered(1)
            if size > MAX_REORDERED_BYTES or unpack_correlation_id(data)[0] in self.in_flight.by_id:
                return False
        reordering.hold(response)
        self.services.budget.held += size
        return True

    def release_reordered(self) -> None:
        """Handles all buffered responses; those without a request by now have lost it."""
        if self.reordering.held and not self.releasing:
            self.handle_reordered(len(self.reordering.held))

    def handle_reordered(self, count: int) -> None:
        """Handles the first ``count`` buffered responses."""
        broker = self.broker
        for packet, ns, last_packet, last_ns, size, data, lost, ack, end_seq in self.reordering.pop(count):
            current, broker.ack = broker.ack, ack
            self.releasing, self.released_seq = True, end_seq
            self.response(packet, ns, last_packet, last_ns, size, data, lost)
            self.releasing = False
            broker.ack = current
