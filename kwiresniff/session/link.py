"""One connection: who is the broker, where frames begin, which response answers which request.

Roles come from the handshake when it was seen, else from content: the side that sends request headers that make
sense is the client. The port is never asked.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, TypeAlias

from kwiresniff import codec
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Connection, Exchange, Message, Problem
from kwiresniff.session.apis import FACTS, api_facts
from kwiresniff.session.decode import response_version
from kwiresniff.session.pairing import LARGE_BYTES, MAX_PENDING, MAX_PENDING_BYTES, Pending
from kwiresniff.session.recognize import is_gssapi_token, protocol_of
from kwiresniff.session.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, Sasl
from kwiresniff.session.tls import Tls, find_records
from kwiresniff.stream.footing import (
    MIN_REQUEST_BYTES,
    REQUEST_FRONT_BYTES,
    STRONG,
    WEAK,
    find_request,
    find_response,
    grade_request,
    is_near,
)
from kwiresniff.stream.half import LOST_BAD_LENGTH, LOST_GAP, LOST_UNRECOGNIZED, MAX_FRAME_BYTES, SEQ_MASK, Half

if TYPE_CHECKING:
    from kwiresniff.session.analyzer import Analyzer

PRODUCE, API_VERSIONS = 0, 18
#: APIs that every depth looks into, for the software and the principal of a connection.
_PEEKED = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})

#: A new connection whose first frame cannot be judged by its header alone is judged by this much of it.
OPENING_BYTES = 2048
#: A connection found in mid-stream that has shown this much in one direction without a footing is called not Kafka
#: in the end, if it never shows one; less is too little to say anything.
JUDGE_BYTES = 256

#: Responses held back because they may have overtaken their requests, and the longest one that is: capture points
#: with several queues swap neighbouring packets, so what is overtaken is a packet or two away.
MAX_EARLY = 16
MAX_EARLY_BYTES = 64 << 10

_request_header = Struct(">hhih").unpack_from
_request_header_v0 = Struct(">hhi").unpack_from
_correlation_id = Struct(">i").unpack_from
_length = Struct(">i").unpack_from


#: The arguments of a frame callback.
Frame: TypeAlias = tuple[Half, int, int, int, int, int, bytes, int]

#: Stands for the connection until it is known to be Kafka.
UNSETTLED = Connection(0, "", "")


class Link:
    """What is known of one TCP connection, and the callbacks of its two halves."""

    __slots__ = (
        "analyzer", "broker", "carrier", "client", "client_ids", "closed", "connection", "doubtful", "early",
        "early_resume", "first_correlation_id", "first_ns", "handshake_rtt_ns", "lingering", "opened_by_syn", "pending",
        "protocol", "replaying", "sasl", "syn_ns", "tls",
    )  # fmt: skip

    def __init__(self, analyzer: Analyzer, flow: bytes, other_flow: bytes, keep: int, ns: int) -> None:
        self.analyzer = analyzer
        # Which of them is the client is a guess until the connection is settled; so are their frame callbacks.
        self.client = one = Half(flow, self.request, self.lost, self.locate, keep)
        self.broker = other = Half(other_flow, self.response, self.lost, self.locate, keep)
        self.connection = UNSETTLED
        self.pending = Pending()
        self.client_ids = analyzer.client_ids
        self.first_correlation_id: int | None = None
        self.first_ns = ns
        self.syn_ns = -1
        self.handshake_rtt_ns: int | None = None
        self.opened_by_syn = False
        self.closed = False
        self.lingering = False
        self.early: list[Frame] = []  # responses held back for a request that they may have overtaken
        self.early_resume = one.frame  # the client's frame callback before that
        self.replaying = False
        self.doubtful = False  # one side may be the client, if the other one answers it
        self.protocol = ""
        self.sasl: Sasl | None = None
        self.tls: Tls | None = None
        self.carrier: Tls | None = None  # set when this is what a TLS connection carries
        for half, peer in ((one, other), (other, one)):
            half.owner = self
            half.peer = peer
            half.lose_footing("mid_stream")

    # -- roles --------------------------------------------------------------------------------------------------

    def opened(self, client: Half, ns: int) -> None:
        """A SYN from ``client``: its next byte is the first of the first frame."""
        self.client, self.broker = client, client.peer
        self.opened_by_syn = True
        self.syn_ns = ns

    def _settle(self, client: Half) -> Connection:
        """Now it is known to be Kafka, and who the client is."""
        self.client, self.broker = client, client.peer
        connection = self.analyzer.new_connection(self)
        self.connection = connection
        self.protocol = "kafka"
        client.index, client.peer.index = 0, 1
        client.frame, client.peer.frame = self.request, self.response
        client.min_frame_bytes = 0
        client.peer.min_frame_bytes = 0
        if not client.peer.run and client.peer.run_is_whole():
            client.peer.resume()  # nothing has come from the broker, so the first that comes is a response
        return connection

    def locate(self, half: Half) -> int:
        """Answer a half that asks for a footing in its run."""
        if self.connection is UNSETTLED:
            records = find_records(half)
            if records >= 0:
                self._encrypted(half, records)
                return -1
            if self.opened_by_syn and half.run_is_whole():
                return self._locate_opening(half)
            return self._locate_unknown(half)
        if half is self.client:
            confirm = believe if half.flow[-2:] in self.analyzer.broker_ports else self._confirm_request
            return find_request(half, self.analyzer.versions, confirm, known_client=True)
        if half.run_is_whole():
            return 0
        return find_response(half, self.pending.by_id, self.first_correlation_id, self._confirm_response)

    def _locate_opening(self, half: Half) -> int:
        """The very first bytes of a direction whose handshake was seen."""
        run = half.run
        if half is not self.client:
            if len(run) >= 4 and not 4 <= _length(run)[0] <= MAX_FRAME_BYTES:
                self._not_kafka(half)
            return -1
        if len(run) < 4:
            return -1
        (size,) = _length(run)
        if not 4 <= size <= MAX_FRAME_BYTES:
            self._not_kafka(half)
            return -1
        if is_gssapi_token(bytes(run[4:40])):
            connection = self._settle(half)
            self.sasl = Sasl(connection)
            self.sasl.begin("GSSAPI", half.last_ns)
            self._expect_raw_tokens(self.sasl)
            return 0
        if len(run) < min(REQUEST_FRONT_BYTES, size + 4):
            return -1
        grade = grade_request(run, 0, self.analyzer.versions, opening=True)
        if grade == WEAK:
            if protocol_of(bytes(run[:64])) != "unknown":
                grade = 0
            elif half.flow[-2:] in self.analyzer.broker_ports:
                pass
            elif len(run) >= size + 4:
                grade = WEAK if self._reads_as_request(bytes(run[4 : size + 4])) else 0
            elif len(run) < OPENING_BYTES:
                return -1
        if not grade:
            self._not_kafka(half)
            return -1
        self._settle(half)
        return 0

    def _locate_unknown(self, half: Half) -> int:
        """A connection that was there before the capture: whoever makes sense as a client is the client."""
        for one in (half, half.peer) if self.doubtful else (half,):
            if self.opened_by_syn and one is not self.client:
                continue
            ports = self.analyzer.broker_ports
            to_broker = one.flow[-2:] in ports
            if one.flow[-4:-2] in ports and not to_broker:
                continue
            self.doubtful = False
            confirm = believe if to_broker else partial(self._confirm_client, one.peer)
            found = find_request(one, self.analyzer.versions, confirm, known_client=to_broker)
            if found >= 0:
                self._settle(one)
                if one is half:
                    return found
                one.step_in(found)
                return self.locate(half)
        return -1

    def _reads_as_request(self, frame: bytes) -> bool | None:
        if len(frame) < MIN_REQUEST_BYTES:
            return False
        api_key, api_version, _, _ = _request_header(frame)
        try:
            offset = codec.decode_request_header(frame)[4]
        except DecodeError:
            return False
        except SchemaError:
            return None
        return self.analyzer.reads(api_key, api_version, "request", frame, offset)

    def _confirm_request(self, frame: bytes, grade: int) -> bool | None:
        return self._reads_as_request(frame)

    def _confirm_client(self, peer: Half, frame: bytes, grade: int) -> bool | None:
        """Whether a frame shows that its sender, on the other side of ``peer``, is the client.

        Without a client id, zeros read like a request too easily, and a version that nobody knows cannot be checked:
        then the other side must have answered it.
        """
        verdict = self._reads_as_request(frame)
        if verdict is False or (verdict and grade == STRONG):
            return verdict
        self.doubtful = True
        return echoes(peer, frame[4:8])

    def _confirm_response(self, frame: bytes) -> bool | None:
        """Whether a frame reads as the response to the outstanding request with its correlation id."""
        found = self.pending.by_id.get(_correlation_id(frame)[0])
        if found is None:
            return False
        exchange = found if isinstance(found, Exchange) else found[-1]
        facts = api_facts(exchange.api_key, exchange.api_version)
        version = response_version(exchange.api_key, facts.read_as, frame)
        offset = skip_tagged_fields(frame, 4) if facts.response_header_version else 4
        return self.analyzer.reads(exchange.api_key, version, "response", frame, offset)

    def _not_kafka(self, half: Half) -> None:
        self.protocol = protocol_of(bytes(half.run[:64]))
        if self.protocol == "tls":
            self._encrypted(half, 0)
        else:
            self.analyzer.ignore(self, self.protocol)

    def _encrypted(self, half: Half, offset: int) -> None:
        self.protocol = "tls"
        self.tls = Tls(self, half, offset)
        self.connection = self.tls.connection

    def carry(self) -> Link:
        """What this TLS connection carries, as a link of its own that begins with the first byte each way."""
        carried = Link(self.analyzer, self.client.flow, self.broker.flow, self.client.keep, self.first_ns)
        carried.carrier = self.tls
        carried.opened(carried.client, -1)
        for half in (carried.client, carried.broker):
            half.syn_seq, half.next_seq = SEQ_MASK, 0
        return carried

    def guess_protocol(self) -> str:
        """A name for a connection that never showed what it was."""
        for half in (self.client, self.broker):
            if half.run:
                name = protocol_of(bytes(half.run[:64]))
                if name != "unknown":
                    return name
        return "unknown"

    # -- frames -------------------------------------------------------------------------------------------------

    def request(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """A frame from the client."""
        message = Message(packet, ns, last_packet, last_ns, size, data)
        if len(data) < MIN_REQUEST_BYTES:
            self._short_request(half, message, data, lost)
            return
        api_key, api_version, correlation_id, length = _request_header(data)
        facts = FACTS.get((api_key << 16) + api_version) or api_facts(api_key, api_version)
        client_id: str | None = None
        problem: Problem | None = None
        offset = 10
        if length > 0 and facts.request_header_version:
            offset += length
            if offset <= len(data):
                raw = data[10:offset]
                client_id = self.client_ids.get(raw) or self.analyzer.client_id(raw)
            else:  # what stands there is something else, a password perhaps
                problem = Problem("bad_client_id", f"client id of {length} bytes is longer than the frame", 8)
        elif facts.request_header_version == 0:
            offset = 8
        elif length == 0:
            client_id = ""
        elif length < -1:
            problem = Problem("bad_client_id", f"client id with a length of {length}", 8)
        if facts.request_header_version == 2:
            if offset < len(data) and data[offset] == 0:
                offset += 1
            else:
                offset = skip_tagged_fields(data, offset)
        message.header_version = facts.request_header_version
        message.body_offset = offset
        exchange = Exchange(self.connection, api_key, api_version, correlation_id, client_id, message, None)
        exchange.api = facts.name
        if problem is not None:
            exchange.problems.append(problem)
        if lost:
            exchange.problems.append(missing_bytes("request", lost, size))
        if api_key == PRODUCE:
            if acks_of_produce(data, offset, api_version) == 0:
                exchange.outcome = "no_response_expected"
                if self.first_correlation_id is None:
                    self.first_correlation_id = correlation_id
                self.analyzer.complete(exchange)
                return
        elif api_key in _PEEKED:
            self._peek_request(exchange)
        self._await(exchange)
        if size > LARGE_BYTES:
            self._make_room()

    def _make_room(self) -> None:
        """Give up the oldest requests when large ones that nobody answers pile up."""
        pending = self.pending
        excess = pending.held_bytes() - MAX_PENDING_BYTES
        while excess > 0 and len(pending.by_id) + pending.reused > 1:
            given_up = pending.take_oldest()
            if given_up.request is not None:
                excess -= len(given_up.request.frame or b"")
            self._give_up(given_up)

    def _give_up(self, exchange: Exchange) -> None:
        exchange.outcome = "unanswered"
        self.analyzer.complete(exchange)

    def _await(self, exchange: Exchange) -> None:
        """Remember a request until its response comes."""
        pending = self.pending
        by_id = pending.by_id
        correlation_id = exchange.correlation_id
        if correlation_id in by_id:
            pending.add_reused(exchange)
        else:
            by_id[correlation_id] = exchange
        if len(by_id) + pending.reused > MAX_PENDING:
            self._give_up(pending.take_oldest())
        if self.first_correlation_id is None:
            self.first_correlation_id = correlation_id

    def raw_request(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """A frame from the client while bare SASL tokens are exchanged, or the request that ends that."""
        sasl = self.sasl
        assert sasl is not None
        grade = grade_request(size.to_bytes(4, "big") + data[:1100], 0, self.analyzer.versions)
        if grade == STRONG or (grade == WEAK and self._reads_as_request(data)):
            sasl.end_raw(ns)
            half.frame = self.request
            self.request(half, packet, ns, last_packet, last_ns, size, data, lost)
            return
        sasl.awaiting_token += 1
        sasl.token(size - lost)
        sasl.client_token(data)

    def raw_response(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """A frame from the broker that answers a bare SASL token, or a response before or after them."""
        sasl = self.sasl
        assert sasl is not None
        answers = False
        if len(data) >= 4:
            (correlation_id,) = _correlation_id(data)
            answers = correlation_id in self.pending.by_id
            if not sasl.awaiting_token:  # the token or the request that this answers was lost
                answers = answers or is_near(correlation_id, self.first_correlation_id)
        if not answers and (sasl.raw or sasl.awaiting_token):
            sasl.awaiting_token = max(sasl.awaiting_token - 1, 0)
            sasl.token(size - lost)
            return
        if not sasl.raw:
            half.frame = self.response
        self.response(half, packet, ns, last_packet, last_ns, size, data, lost)

    def _expect_raw_tokens(self, sasl: Sasl) -> None:
        sasl.raw = True
        self.client.frame, self.broker.frame = self.raw_request, self.raw_response

    def _short_request(self, half: Half, message: Message, data: bytes, lost: int) -> None:
        """A frame too short for a header with a client id: ControlledShutdown v0, a request mostly lost, or none."""
        size = message.size_bytes
        if size < 8:
            half.lose_footing(LOST_BAD_LENGTH)
            self.lost(half, message.first_packet, message.first_ns, 0, size + 4, LOST_BAD_LENGTH)
            return
        if len(data) < 8:
            self.analyzer.lost_message("request", message.first_packet, message.first_ns, size, lost, self)
            return
        api_key, api_version, correlation_id = _request_header_v0(data)
        facts = api_facts(api_key, api_version)
        exchange = Exchange(self.connection, api_key, api_version, correlation_id, None, message, None)
        exchange.api = facts.name
        message.body_offset = 8
        if facts.request_header_version:
            exchange.problems.append(Problem("bad_header", "the frame ends inside its header", 8))
        if lost:
            exchange.problems.append(missing_bytes("request", lost, size))
        self._await(exchange)

    def response(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """A frame from the broker."""
        if len(data) < 4:
            self._short_response(half, packet, ns, size, lost)
            return
        (correlation_id,) = _correlation_id(data)
        found = self.pending.by_id.pop(correlation_id, None)
        if found is None and self._hold_early((half, packet, ns, last_packet, last_ns, size, data, lost)):
            return
        message = Message(packet, ns, last_packet, last_ns, size, data)
        message.body_offset = 4
        if found is None:
            exchange = Exchange(self.connection, -1, -1, correlation_id, None, None, message)
            exchange.outcome = "request_missing"
            if lost:
                exchange.problems.append(missing_bytes("response", lost, size))
            self.analyzer.complete(exchange)
            return
        exchange = found if found.__class__ is Exchange else self.pending.first_of(correlation_id, found)
        exchange.response = message
        api_key = exchange.api_key
        facts = FACTS.get((api_key << 16) + exchange.api_version) or api_facts(api_key, exchange.api_version)
        if facts.response_header_version:
            message.header_version = facts.response_header_version
            message.body_offset = 5 if len(data) > 4 and data[4] == 0 else skip_tagged_fields(data, 4)
        if lost:
            exchange.problems.append(missing_bytes("response", lost, size))
        if api_key in _PEEKED and api_key != API_VERSIONS:
            self._peek_sasl_response(exchange, last_ns)
        self.analyzer.complete(exchange)

    def _short_response(self, half: Half, packet: int, ns: int, size: int, lost: int) -> None:
        """A frame without a correlation id: most of it is lost, or it never was one."""
        if size < 4:
            half.lose_footing(LOST_BAD_LENGTH)
            self.lost(half, packet, ns, 0, size + 4, LOST_BAD_LENGTH)
        else:
            self.analyzer.lost_message("response", packet, ns, size, lost, self)

    # -- order --------------------------------------------------------------------------------------------------

    def _hold_early(self, response: Frame) -> bool:
        """Hold a response without a request back until the client's next frame: capture points swap packets."""
        client = self.client
        size = response[5]
        if self.replaying or self.closed or size > MAX_EARLY_BYTES or len(self.early) >= MAX_EARLY:
            return False
        if client.frame != self._overtaken_request:
            self.early_resume = client.frame
            client.frame = self._overtaken_request
        self.early.append(response)
        return True

    def _overtaken_request(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """The first frame from the client after responses that may have overtaken it."""
        half.frame = self.early_resume
        half.frame(half, packet, ns, last_packet, last_ns, size, data, lost)
        self._replay_early()

    def _replay_early(self) -> None:
        """Let the responses that were held back come in now; what has no request yet has lost it."""
        if self.client.frame == self._overtaken_request:
            self.client.frame = self.early_resume
        early, self.early = self.early, []
        self.replaying = True
        for response in early:
            self.response(*response)
        self.replaying = False

    def _response_after_loss(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """The first frame from the broker after bytes were lost.

        Brokers answer in order, so a request older than the one that is answered now will not be answered any more.
        """
        if len(data) >= 4:
            for exchange in self.pending.overtaken_by(_correlation_id(data)[0]):
                self._give_up(exchange)
            half.frame = self.response
        self.response(half, packet, ns, last_packet, last_ns, size, data, lost)

    # -- what is read at every depth ----------------------------------------------------------------------------

    def _peek_request(self, exchange: Exchange) -> None:
        body = self.analyzer.peek(exchange, "request") or {}
        if exchange.api_key == API_VERSIONS:
            name = body.get("client_software_name")
            if name:
                version = body.get("client_software_version") or ""
                self.connection.client_software = {"name": name, "version": version}
            return
        sasl = self.sasl
        if sasl is None:
            sasl = self.sasl = Sasl(self.connection)
        if exchange.api_key == SASL_HANDSHAKE:
            assert exchange.request is not None
            sasl.begin(body.get("mechanism"), exchange.request.first_ns)
            if exchange.api_version == 0:
                self._expect_raw_tokens(sasl)
        else:
            sasl.client_token(body.get("auth_bytes") or b"")

    def _peek_sasl_response(self, exchange: Exchange, ns: int) -> None:
        body = self.analyzer.peek(exchange, "response")
        if body is None or self.sasl is None:
            return
        if exchange.api_key == SASL_HANDSHAKE:
            self.sasl.handshake_answered(body.get("error_code", 0))
        else:
            self.sasl.authenticate_answered(body, ns)

    # -- losses and the end -------------------------------------------------------------------------------------

    def lost(self, half: Half, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """A half gave up bytes. Before it is known to be Kafka nobody is told yet, but they are counted."""
        if half is self.client:
            if self.early:
                self._replay_early()
        elif half.frame == self.response:
            half.frame = self._response_after_loss
        self.analyzer.lost(self, half, packet, ns, missing, skipped, code)

    def close(self) -> None:
        """The connection, or the capture, is over: say what was left unfinished."""
        if self.closed:
            return
        halves = (self.client, self.broker)
        for half in halves:
            half.flush()
        for half in (*halves, self.broker):
            half.search()  # the other side may have shown since the last search what there is to find
        self._replay_early()
        self.closed = True
        if self.connection is UNSETTLED:
            for half in halves:
                if self.tls is None and half.run and protocol_of(bytes(half.run[:64])) == "tls":
                    self._encrypted(half, 0)
        if self.connection is UNSETTLED or self.tls is not None:
            for half in halves:
                half.closed = True
            if self.tls is None:
                self.analyzer.unrecognized(self)
            else:
                self.tls.close()
                self.analyzer.connection_ended(self)
            return
        self._unfinished_request()
        self._unfinished_response()
        for half in (self.client, self.broker):
            if half.run or half.skipped:
                self.analyzer.lost(self, half, 0, half.last_ns, 0, len(half.run), LOST_UNRECOGNIZED)
                half.drop_run()
            half.closed = True
        for exchange in self.pending.drain():
            self._give_up(exchange)
        self.analyzer.connection_ended(self)

    def _unfinished_request(self) -> None:
        half = self.client
        size, present, data = half.unfinished()
        if not present:
            return
        what = "a request"
        if len(data) >= 10:
            api_key, api_version, correlation_id, _ = _request_header(data)
            what = f"{api_facts(api_key, api_version).name} v{api_version} request {correlation_id}"
        self.analyzer.incomplete("incomplete_request", what, self, half, size, present)

    def _unfinished_response(self) -> None:
        half = self.broker
        size, present, data = half.unfinished()
        if not present:
            return
        what = f"response {_correlation_id(data)[0]}" if size and len(data) >= 4 else "a response"
        self.analyzer.incomplete("incomplete_response", what, self, half, size, present)


def believe(frame: bytes, grade: int) -> bool:
    """The judge of requests that needs no convincing."""
    return True


def echoes(half: Half, correlation_id: bytes) -> bool:
    """Whether a segment under search begins like a response with this correlation id."""
    run = half.run
    return any(run[offset + 4 : offset + 8] == correlation_id for offset, _, _ in half.marks)


def missing_bytes(which: str, lost: int, size: int) -> Problem:
    """The problem of a frame with a hole in it."""
    what = f"{lost} of the {which}'s {size} bytes are missing from the capture"
    return Problem(LOST_GAP, what, path=which, details={"missing_bytes": lost})


def skip_tagged_fields(data: bytes, offset: int) -> int:
    """The offset behind a tagged-field section (KIP-482), or the end of the data when it does not fit."""
    end = len(data)

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 35:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        return 0, end

    count, offset = varint(offset)
    while count > 0 and offset < end:
        _, offset = varint(offset)
        size, offset = varint(offset)
        offset += size
        count -= 1
    return min(offset, end)


def acks_of_produce(data: bytes, offset: int, version: int) -> int:
    """The ``acks`` field of a Produce request; -1 when it cannot be read.

    It leads the body up to v2; from v3 on a transactional id comes first, compact from v9 on.
    """
    end = len(data)
    if version >= 9:
        if offset >= end:
            return -1
        length, at = data[offset], offset + 1
        if length >= 0x80:
            if at >= end:
                return -1
            length, at = (length & 0x7F) | (data[at] << 7), at + 1
        offset = at + max(length - 1, 0)
    elif version >= 3:
        if offset + 2 > end:
            return -1
        offset += 2 + max(int.from_bytes(data[offset : offset + 2], "big", signed=True), 0)
    if offset + 2 > end:
        return -1
    return int.from_bytes(data[offset : offset + 2], "big", signed=True)
