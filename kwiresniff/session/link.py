"""One connection: its frames become exchanges, its losses and its end are told.

``Roles`` says who is the broker and where frames begin; here requests wait for their responses.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from kwiresniff.base.api_keys import API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwiresniff.compiled import COMPILED, i16, i32
from kwiresniff.model import Exchange, Message, Problem
from kwiresniff.session.apis import FACTS, api_facts
from kwiresniff.session.channel import Channel
from kwiresniff.session.early import Early
from kwiresniff.session.fronts import (
    SECRET_REQUESTS,
    acks_of_produce,
    client_software,
    is_swallowed,
    missing_bytes,
    skip_tagged_fields,
)
from kwiresniff.session.pairing import MAX_PENDING, MAX_PENDING_BYTES, Pending, oldest, request_bytes
from kwiresniff.session.readings import FAILS, read_response
from kwiresniff.session.recognize import answer_of, protocol_of
from kwiresniff.session.roles import UNSETTLED, Roles
from kwiresniff.session.sasl import MAX_TOKEN_FRAME_BYTES, Sasl
from kwiresniff.session.waits import LONG_POLL, under_way
from kwiresniff.stream.footing import MIN_REQUEST_BYTES
from kwiresniff.stream.half import (
    LOST_BAD_LENGTH,
    LOST_UNRECOGNIZED,
    REQUESTS,
    RESPONSES,
    SEQ_HALF,
    SEQ_MASK,
    Half,
    Owner,
    Sifter,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.session.analyzer import Analyzer
    from kwiresniff.session.bare_tokens import BareTokens
    from kwiresniff.session.tls import Tls

#: A correlation id and an empty tag section.
MIN_RESPONSE_FRONT_BYTES: Final = 5
#: What is told of the name of a client's software, and of its version. Real ones have some tens.
MAX_SOFTWARE_CHARACTERS = 255
#: APIs that every depth looks into, for the software and the principal of a connection.
_PEEKED: Final = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})

#: Outcomes of exchanges in which the broker had no part.
_WITHOUT_ANSWER: Final = frozenset({"unanswered", "no_response_expected"})

_request_header = Struct(">hhih").unpack_from
_request_header_v0 = Struct(">hhi").unpack_from
_correlation_id = Struct(">i").unpack_from
_length = Struct(">i").unpack_from


class Link(Owner):
    """What is known of one TCP connection, and the callbacks of its two halves."""

    __slots__ = (
        "analyzer", "bare_tokens", "broker", "carrier", "channel", "client", "client_ids", "closed", "connection",
        "early", "first_correlation_id", "first_ns", "first_packet", "handshake_rtt_ns", "lingering", "opened_by_syn",
        "parting", "pending", "protocol", "roles", "sasl", "syn_ns", "syn_retransmits", "tls",
    )  # fmt: skip

    def __init__(self, analyzer: Analyzer, flow: bytes, other_flow: bytes, keep: int, ns: int) -> None:
        self.analyzer = analyzer
        # Which of them is the client is a guess until the connection is settled; so are their frame callbacks.
        self.roles = roles = Roles(self)
        self.client = one = Half(flow, self.request, self.lost, roles.locate, keep, analyzer.budget)
        self.broker = other = Half(other_flow, self.response, self.lost, roles.locate, keep, analyzer.budget)
        self.connection = UNSETTLED
        self.pending = Pending()
        self.channel = Channel()
        self.client_ids = analyzer.client_ids
        self.first_correlation_id: int | None = None
        self.first_ns = ns
        self.first_packet = 0
        self.syn_ns = -1
        self.syn_retransmits = 0
        # Of the first FIN or RST: the flow it came on, its time and packet, and whether it was a RST.
        self.parting: tuple[bytes, int, int, bool] | None = None
        self.handshake_rtt_ns: int | None = None
        self.opened_by_syn = False
        self.closed = False
        self.lingering = False
        self.early = Early(self)
        self.protocol = ""
        self.sasl: Sasl | None = None
        self.bare_tokens: BareTokens | None = None
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

    def settle(self, client: Half) -> None:
        """Now it is known to be Kafka, and who the client is."""
        self.client, self.broker = client, client.peer
        self.connection = self.analyzer.new_connection(self)
        self.protocol = "kafka"
        client.index, client.peer.index = 0, 1
        client.hear(self.request, REQUESTS)
        client.peer.hear(self.response, RESPONSES)
        client.min_frame_bytes = 0
        client.peer.min_frame_bytes = 0
        for half in (client, client.peer):
            self.analyzer.tell_unseen(self, half)
        if not client.peer.run.data and client.peer.run_is_whole():
            client.peer.resume()  # nothing has come from the broker, so the first that comes is a response

    def encrypted(self, half: Half, offset: int) -> None:
        """It is TLS, in records that begin at ``offset`` of the run."""
        from kwiresniff.session.tls import Tls  # brings tables that few captures need

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

    # -- frames -------------------------------------------------------------------------------------------------

    def request(
        self, half: Half, packet: i64, ns: int, last_packet: i64, last_ns: int, size: i64, data: bytes, lost: i64
    ) -> None:
        """A frame from the client."""
        message = Message(packet, ns, last_packet, last_ns, size, data)
        message.end_seq = half.frame_end()
        if len(data) < MIN_REQUEST_BYTES:
            self._short_request(half, message, data, lost)
            return
        api_key: i64
        api_version: i64
        correlation_id: i64
        length: i64
        if COMPILED:
            api_key, api_version, correlation_id, length = i16(data, 0), i16(data, 2), i32(data, 4), i16(data, 8)
        else:
            api_key, api_version, correlation_id, length = _request_header(data)
        facts = FACTS.get((api_key << 16) + api_version) or api_facts(api_key, api_version)
        client_id: str | None = None
        problem: Problem | None = None
        offset = 10
        if length > 0 and facts.request_header_version:
            offset += length
            if offset <= len(data):
                raw = data[10:offset]
                client_id = self.client_ids.get(raw)
                if client_id is None:
                    if api_key in SECRET_REQUESTS and is_swallowed(raw):
                        problem = Problem("bad_client_id", f"client id of {length} bytes runs into the body", 8)
                    else:
                        client_id = self.analyzer.client_id(raw)
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
                    self._first_request(exchange)
                self.analyzer.complete(exchange)
                return
        elif api_key in _PEEKED:
            self._peek_request(exchange)
        self._await(exchange)

    def held_bytes(self) -> int:
        """Memory of requests that wait for their responses, of responses that wait for their requests, and of TLS."""
        held = int(self.pending.bytes) + self.early.held_bytes
        return held if self.tls is None else held + self.tls.held_bytes()

    def shed(self) -> None:
        """Give up the older half of the requests, and all the rest."""
        self.early.release()
        if self.tls is not None:
            self.tls.shed()
        self._give_up_oldest(self.pending.bytes // 2)

    def _give_up_oldest(self, most: i64) -> None:
        """Give up the oldest requests until no more than ``most`` bytes are held, or only one is."""
        pending = self.pending
        while pending.bytes > most and len(pending.by_id) + pending.reused > 1:
            self._give_up(pending.take_oldest())

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
        size = request_bytes(exchange)
        pending.bytes += size
        self.analyzer.budget.held += size
        if pending.bytes > MAX_PENDING_BYTES:
            self._give_up_oldest(MAX_PENDING_BYTES)
        if len(by_id) + pending.reused > MAX_PENDING:
            self._give_up(pending.take_oldest())
        if self.first_correlation_id is None:
            self._first_request(exchange)

    def _first_request(self, exchange: Exchange) -> None:
        self.first_correlation_id = exchange.correlation_id
        self.connection.client_id = exchange.client_id

    def begin_bare_tokens(self, mechanism: str, ns: int) -> None:
        """The connection begins with tokens of ``mechanism``, without a handshake request."""
        self.sasl = Sasl(self.connection)
        self.sasl.begin(mechanism, ns)
        self._expect_bare_tokens()

    def _expect_bare_tokens(self) -> None:
        if self.bare_tokens is None:
            from kwiresniff.session.bare_tokens import BareTokens  # few connections have any

            self.bare_tokens = BareTokens(self)
        self.bare_tokens.begin()

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
        self, half: Half, packet: i64, ns: int, last_packet: i64, last_ns: int, size: i64, data: bytes, lost: i64
    ) -> None:
        """A frame from the broker."""
        if len(data) < 4:
            self._short_response(half, packet, ns, size, lost)
            return
        correlation_id = i32(data, 0) if COMPILED else _correlation_id(data)[0]
        found = self.pending.by_id.pop(correlation_id, None)
        if found is None:
            if self.early.hold((half, packet, ns, last_packet, last_ns, size, data, lost, half.ack)):
                return
            found = self.pending.by_id.pop(correlation_id, None)
        elif self.early.held:
            self.early.release()
        if found is not None and not self._can_answer(half, last_packet, oldest(found)):
            self.pending.by_id[correlation_id] = found
            found = None
        message = Message(packet, ns, last_packet, last_ns, size, data)
        message.body_offset = 4
        if found is None:
            exchange = Exchange(self.connection, -1, -1, correlation_id, None, None, message)
            exchange.outcome = "request_missing"
            self.channel.unpaired(message)
            if lost:
                exchange.problems.append(missing_bytes("response", lost, size))
            self.analyzer.complete(exchange)
            return
        exchange = found if found.__class__ is Exchange else self.pending.first_of(correlation_id, found)
        self.pending.bytes -= request_bytes(exchange)
        exchange.response = message
        api_key = exchange.api_key
        facts = FACTS.get((api_key << 16) + exchange.api_version) or api_facts(api_key, exchange.api_version)
        if facts.response_header_version:
            message.header_version = facts.response_header_version
            message.body_offset = 5 if len(data) > 4 and data[4] == 0 else skip_tagged_fields(data, 4)
        if exchange.request is not None:
            self.channel.answered(exchange, exchange.request, message, facts)
        if lost:
            exchange.problems.append(missing_bytes("response", lost, size))
        if api_key in _PEEKED and api_key != API_VERSIONS:
            self._peek_sasl_response(exchange, last_ns)
        self.analyzer.complete(exchange)

    @staticmethod
    def _can_answer(half: Half, last_packet: i64, exchange: Exchange) -> bool:
        """Whether a response that is being handed over can be that of an exchange, by what it acknowledges.

        A capture point may put it before its request; but one that was sent before the request had come does not
        acknowledge it. It answers an earlier one with the same correlation id, which is not there.
        """
        request = exchange.request
        if request is None or request.last_packet < last_packet or half.ack < 0 or request.end_seq < 0:
            return True
        return (half.ack - request.end_seq) & SEQ_MASK < SEQ_HALF

    def sifter(self, half: Half, data: bytes, start: i64, end: i64) -> Sifter | None:
        """Who keeps a response without its record sets, where its request is known."""
        if half.usual != RESPONSES or end - start < MIN_RESPONSE_FRONT_BYTES:
            return None
        found = self.pending.by_id.get(i32(data, start) if COMPILED else _correlation_id(data, start)[0])
        if not isinstance(found, Exchange):
            return None
        facts = api_facts(found.api_key, found.api_version)
        if facts.response_header_version and data[start + 4]:
            return None
        return self.analyzer.sieve(found, 5 if facts.response_header_version else 4)

    def is_answered(self) -> bool:
        """Whether the broker has sent a response."""
        return not self.connection.exchanges.keys() <= _WITHOUT_ANSWER

    def is_foreign(self, half: Half, packet: int, ns: int, first: bytes) -> bool:
        """Whether the broker's very first bytes are another protocol's; if so, it is counted among the strangers."""
        if half is not self.broker or self.connection is UNSETTLED or self.is_answered() or self.early.held:
            return False
        answer = answer_of(first)
        if answer is None:
            return False
        self.analyzer.tracker.strangers.answered(self, answer, packet, ns)
        return True

    def _short_response(self, half: Half, packet: int, ns: int, size: int, lost: int) -> None:
        """A frame without a correlation id: most of it is lost, or it never was one."""
        if size < 4:
            half.lose_footing(LOST_BAD_LENGTH)
            self.lost(half, packet, ns, 0, size + 4, LOST_BAD_LENGTH)
        else:
            self.analyzer.lost_message("response", packet, ns, size, lost, self)

    def _response_after_loss(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """The first frame from the broker after bytes were lost.

        Brokers answer in order, so a request older than the one that is answered now will not be answered any more.
        """
        if len(data) >= 4:
            whole = len(data) == size

            def answers(exchange: Exchange) -> bool:
                reads = not whole or read_response(exchange.api_key, exchange.api_version, data) != FAILS
                return reads and self._can_answer(half, last_packet, exchange)

            for exchange in self.pending.overtaken_by(_correlation_id(data)[0], answers):
                self._give_up(exchange)
            half.hear(self.response, RESPONSES)
        self.response(half, packet, ns, last_packet, last_ns, size, data, lost)

    # -- what is read at every depth ----------------------------------------------------------------------------

    def _peek_request(self, exchange: Exchange) -> None:
        if exchange.api_key == API_VERSIONS:
            self._peek_software(exchange)
            return
        body = self.analyzer.peek(exchange, "request") or {}
        sasl = self.sasl
        if sasl is None:
            sasl = self.sasl = Sasl(self.connection)
        if exchange.api_key == SASL_HANDSHAKE:
            assert exchange.request is not None
            sasl.begin(body.get("mechanism"), exchange.request.first_ns)
            for half in (self.client, self.broker):
                half.keep = max(half.keep, MAX_TOKEN_FRAME_BYTES)
            if exchange.api_version == 0:
                self._expect_bare_tokens()
        else:
            sasl.client_token(body.get("auth_bytes") or b"")

    def _peek_software(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None or request.frame is None:
            return
        software = client_software(request.frame, request.body_offset, exchange.api_version)
        if software is None:
            body = self.analyzer.peek(exchange, "request") or {}
            software = body.get("client_software_name") or "", body.get("client_software_version") or ""
        name, version = software
        if name:
            short = MAX_SOFTWARE_CHARACTERS
            self.connection.client_software = {"name": name[:short], "version": version[:short]}

    def _peek_sasl_response(self, exchange: Exchange, ns: int) -> None:
        body = self.analyzer.peek(exchange, "response")
        if body is None or self.sasl is None:
            return
        if exchange.api_key == SASL_HANDSHAKE:
            if body.get("error_code", 0):
                self.sasl.refused()
                if self.bare_tokens is not None:
                    self.bare_tokens.expected = False
        else:
            if self.sasl.authenticate_answered(body, ns):
                self.analyzer.keep_as_wanted(self)

    # -- losses and the end -------------------------------------------------------------------------------------

    def lost(self, half: Half, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """A half gave up bytes. Before it is known to be Kafka nobody is told yet, but they are counted."""
        if half is self.broker and half.frame == self.response:
            half.hear(self._response_after_loss)
        if half is self.broker and half.searching:
            self.channel.lost_ns = ns
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
        self.roles.search_in_the_end()
        self.early.release()
        self.closed = True
        if self.connection is UNSETTLED:
            for half in halves:
                if self.tls is None and half.run.data and protocol_of(bytes(half.run.data[:64])) == "tls":
                    self.encrypted(half, 0)
        if self.connection is UNSETTLED or self.tls is not None:
            for half in halves:
                half.closed = True
            if self.tls is None:
                self.analyzer.tracker.unrecognized(self)
                for half in halves:
                    half.end()
            else:
                for half in halves:
                    half.end()
                self.tls.close()
                for half in (self.client, self.broker):
                    self.analyzer.tell_unseen(self, half)
                self.analyzer.connection_ended(self)
            return
        self._unfinished_request()
        self._unfinished_response()
        for half in (self.client, self.broker):
            if half.run.data or half.skipped:
                self.analyzer.lost(self, half, 0, half.last_ns, 0, len(half.run), LOST_UNRECOGNIZED)
            half.end()
        over_ns = self.parting[1] if self.parting is not None else self.analyzer.tracker.now_ns
        for exchange in self.pending.drain():
            if under_way(exchange, over_ns):
                exchange.waiting = LONG_POLL
            self._give_up(exchange)
        self.analyzer.connection_ended(self)

    def take_apart(self, nobody: Link) -> None:
        """Undo the circle of references in a closed link that nobody will use again; ``nobody`` stands in for it.

        Otherwise its memory is free only when Python looks for garbage, which takes longer the more of it there is.
        What TLS carries is left to that.
        """
        if self.tls is not None or self.carrier is not None:
            return
        for half in (self.client, self.broker):
            stand_in = nobody.client
            half.owner, half.peer = nobody, stand_in
            half.frame, half.lost, half.locate = stand_in.frame, stand_in.lost, stand_in.locate
            half.usual = 0
        self.roles, self.early, self.bare_tokens = nobody.roles, nobody.early, None

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
