"""Which protocol a connection speaks, who is its client, and where frames begin, from the bytes that are there.

A :class:`ProtocolDetector` is given the two directions and returns a :class:`Verdict`, on which the connection acts; it
changes nothing but the steps that searches are paid with. Who the client is comes from the handshake when it was seen,
else from content: the side that sends request headers that make sense is the client. Ports count only when the user has
named them as brokers'.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.fastint import i16
from kwiresniff.base.header_fields import unpack_correlation_id, unpack_request_header
from kwiresniff.model import Exchange
from kwiresniff.session.apis import known_versions
from kwiresniff.session.frame_confirmation import accept_any, confirm_request, is_answered, is_empty_produce
from kwiresniff.session.frame_search import (
    MAX_CLIENT_ID_BYTES,
    NO,
    READ_STEPS,
    READ_STEPS_PER_BYTE,
    REQUEST_FRONT_BYTES,
    START_STEPS,
    STRONG,
    WEAK,
    find_request_start,
    find_response_start,
    int32,
    is_private_request,
    response_front,
    score_request_header,
)
from kwiresniff.session.in_flight import Outstanding
from kwiresniff.session.phases import IGNORED, KAFKA, SASL_OPAQUE, TLS, Verdict
from kwiresniff.session.readings import (
    FAILS,
    LEFT_OVER,
    READS,
    UNKNOWN,
    read_front,
    read_request,
    read_response,
)
from kwiresniff.session.signatures import MAX_ROWS, guess_protocol, is_gssapi_token
from kwiresniff.session.tls_record_layer import find_records, hello_sender
from kwiresniff.stream.frame_reader import FIRST_BYTES, MAX_FRAME_BYTES, SOUND_FRAME_BYTES
from kwiresniff.stream.half_stream import HalfStream
from kwiresniff.stream.resync_buffer import ResyncBuffer

#: A new connection whose first frame cannot be judged by its header alone is judged by all of it, or by this much.
OPENING_BYTES = 16 << 10


def _kafka(client: HalfStream, offset: int) -> Verdict:
    return Verdict(KAFKA, client, client, offset, "kafka")


class ProtocolDetector:
    """Judges one connection. ``ending``: nothing more will come, so that a frame without other evidence is believed;
    ``believable``: there was one.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_from_broker", "believable", "doubtful", "ending")
    __slots__ = STATE

    def __init__(self, flow: bytes, broker_ports: frozenset[bytes]) -> None:
        """``flow`` is that of side 0; ``broker_ports`` are known to be brokers'."""
        # By side, whether it sends from such a port.
        self._from_broker = (flow[-4:-2] in broker_ports, flow[-2:] in broker_ports)
        self.believable = False
        self.ending = False
        self.doubtful = False  # one side may be the client, if the other one answers it

    # -- what a connection is -----------------------------------------------------------------------------------

    def detect(self, half: HalfStream, client: HalfStream, broker: HalfStream, is_client_known: bool) -> Verdict | None:
        """The verdict on a connection when ``half`` has grown, or None; ``client`` may be a guess."""
        records = find_records(half.resync.buffer)
        if records >= 0:
            return self.tls(half, client, broker, records, is_client_known)
        if is_client_known and half.starts_at_syn():
            return self._detect_opening(half, client, broker)
        peer = broker if half is client else client
        return self._detect_unknown(half, peer, client if is_client_known else None)

    def tls(
        self, half: HalfStream, client: HalfStream, broker: HalfStream, offset: int, is_client_known: bool
    ) -> Verdict:
        """The verdict TLS, with records that begin at ``offset`` in the bytes under search of ``half``."""
        peer = broker if half is client else client
        sender = hello_sender(half.resync.buffer.data, offset)
        if sender:
            client = half if sender > 0 else peer
        elif not is_client_known:
            client = half if self._is_likely_client(half) else peer
        return Verdict(TLS, client, half, offset, "tls")

    def _is_likely_client(self, half: HalfStream) -> bool:
        """Whether this side is the likelier client of an encrypted connection: by brokers' known ports, else the higher
        port.
        """
        mine, other = self._from_broker[half.side], self._from_broker[1 - half.side]
        return other if mine != other else half.flow[-4:-2] > half.flow[-2:]

    def _detect_opening(self, half: HalfStream, client: HalfStream, broker: HalfStream) -> Verdict | None:
        """Judges the very first bytes of a direction whose handshake was seen."""
        buffer = half.resync.buffer
        data = buffer.data
        if len(data) < 4:
            return None
        size = int32(data, 0)
        if not 4 <= size <= MAX_FRAME_BYTES:
            return self._not_kafka(half, client, broker)
        if half is not client:
            return self._detect_first_answer(half, client, broker)
        if is_gssapi_token(data[4:40]):
            return Verdict(SASL_OPAQUE, client, client, 0, "kafka")
        if len(data) < min(header_bytes(data), size + 4) and not (self.ending or buffer.ahead):
            return None
        grade = score_request_header(data, 0, known_versions(), opening=True)
        if grade == NO and self._from_broker[1 - half.side] and is_private_request(data, 0):
            return None  # the answer decides
        if grade == WEAK:
            grade = self._weigh_opening(half, size)
        if grade == STRONG:
            return _kafka(client, 0)
        return self._not_kafka(half, client, broker) if grade == NO else None

    def _weigh_opening(self, half: HalfStream, size: int) -> int:
        """The grade of a first frame whose header alone is not enough; WEAK leaves the decision to what follows."""
        buffer = half.resync.buffer
        data = buffer.data
        # A Metadata v0 without a client id begins like PostgreSQL's startup message: its end tells them apart.
        if guess_protocol(data[:FIRST_BYTES]) not in ("unknown", "postgresql"):
            return NO
        if self._from_broker[1 - half.side] and score_request_header(data, 0, known_versions()):
            return STRONG
        if len(data) < size + 4:
            buffer.steps -= READ_STEPS + READ_STEPS_PER_BYTE * len(data)
            reading = read_front(data[4:])
            if len(data) >= OPENING_BYTES:
                return STRONG if reading == READS else NO
            return NO if reading == FAILS else WEAK
        reading = read_request(data[4 : size + 4])
        if reading == FAILS:
            return NO
        return STRONG if reading == READS else WEAK

    def _detect_first_answer(self, half: HalfStream, client: HalfStream, broker: HalfStream) -> Verdict | None:
        """Judges the first bytes of the accepting side: they may be the response to a first frame in doubt."""
        data = half.resync.buffer.data
        asked = client.resync.buffer.data
        if len(data) < 8 or len(asked) < REQUEST_FRONT_BYTES or not client.starts_at_syn():
            return None
        if len(asked) < int32(asked, 0) + 4:
            return None
        size, correlation_id = response_front(data)
        if size > SOUND_FRAME_BYTES or correlation_id != unpack_correlation_id(asked, 8)[0]:
            return self._not_kafka(client, client, broker)
        return _kafka(client, 0)

    def _detect_unknown(self, half: HalfStream, peer: HalfStream, client: HalfStream | None) -> Verdict | None:
        """Judges a connection older than the capture: the side that sends sensible requests is the client."""
        sides = (half, peer) if self.doubtful else (half,)
        self.doubtful = False
        for one in sides:
            if client is not None and one is not client:
                continue
            to_broker = self._from_broker[1 - one.side]
            if self._from_broker[one.side] and not to_broker:
                continue
            buffer, other = one.resync.buffer, (peer if one is half else half).resync.buffer
            confirm = accept_any if to_broker else partial(self._confirm_client, buffer, other)
            found = find_request_start(buffer, known_versions(), confirm, known_client=to_broker)
            if found < 0 and to_broker:
                found = self._find_private_request(buffer, other)
            if found >= 0:
                return _kafka(one, found)
        return None

    def _find_private_request(self, buffer: ResyncBuffer, other: ResyncBuffer) -> int:
        """The offset of an answered request of a private API to a known broker, or -1."""
        data, starts = buffer.data, buffer.starts()
        buffer.steps -= START_STEPS * len(starts)
        ends = {*starts, len(data)}
        for offset in starts:
            if buffer.steps <= 0 or not is_private_request(data, offset):
                continue
            self.doubtful = True
            answers = other.starts()
            buffer.steps -= START_STEPS * len(answers)
            answer_ends = {*answers, len(other.data)}
            for place in answers if offset + 4 + int32(data, offset) in ends else ():
                same = other.data[place + 4 : place + 8] == data[offset + 8 : offset + 12]
                if same and place + 4 + int32(other.data, place) in answer_ends:
                    return offset
        return -1

    def find_lone_responses(self, half: HalfStream) -> int:
        """The offset of the first response of a known broker without a client; -1 unless responses begin with a segment
        and lead to the end.
        """
        if not self._from_broker[half.side] or self._from_broker[1 - half.side]:
            return -1
        data, length = half.resync.buffer.data, len(half.resync.buffer)
        for start in half.resync.buffer.starts()[:MAX_ROWS]:
            at = start
            while length - at >= 8:
                size, correlation_id = response_front(data, at)
                if not 4 <= size <= SOUND_FRAME_BYTES or correlation_id < 0:
                    break
                at += 4 + size
            if at == length:
                return start
        return -1

    def _not_kafka(self, shown: HalfStream, client: HalfStream, broker: HalfStream) -> Verdict:
        if guess_protocol(shown.resync.buffer.data[:FIRST_BYTES]) == "tls":
            return self.tls(shown, client, broker, 0, True)
        return Verdict(IGNORED, client, shown, 0, guess_from_both(client, broker))

    # -- where frames begin -------------------------------------------------------------------------------------

    def find_request_start(self, half: HalfStream) -> int:
        """The offset of a request in the bytes of the client that are searched, or -1."""
        confirm = accept_any if self._from_broker[1 - half.side] else confirm_request
        return find_request_start(half.resync.buffer, known_versions(), confirm, known_client=True)

    def find_response_start(
        self, buffer: ResyncBuffer, outstanding: Outstanding, first_correlation_id: int | None
    ) -> int:
        """The offset of a response to an outstanding request in the broker's bytes under search, or -1."""
        confirm = partial(self._confirm_response, outstanding)
        return find_response_start(buffer, outstanding, first_correlation_id, confirm)

    def _confirm_client(self, buffer: ResyncBuffer, other: ResyncBuffer, frame: bytes, grade: int, fills: bool) -> bool:
        """Whether a frame shows that its sender, whose ``buffer`` it is in, is the client; see ``find_request_start``.

        Without a client id, zeros read like a request too easily, a version that nobody knows cannot be checked, and
        bytes left over fit nothing: then the other side must have answered it. A frame that fills segments exactly is
        believed without an answer when none will come.
        """
        reading = read_request(frame)
        strong = grade == STRONG
        if reading == READS and strong and not is_empty_produce(frame):
            return True
        # A response with a small correlation id, like any small number, has the front of a Produce.
        sure = strong and unpack_request_header(frame)[0] != PRODUCE
        if reading == UNKNOWN:
            believable = strong
        else:
            believable = reading == READS or (sure and fills)
        if not believable:
            return False
        self.doubtful = True
        if is_answered(buffer, other, frame, strong, sure):
            return True
        if not (sure and fills) or reading == UNKNOWN:
            return False
        self.believable = True
        return self.ending

    def _confirm_response(self, outstanding: Outstanding, frame: bytes, fills: bool) -> bool:
        """Whether a frame reads as the response to an outstanding request with its correlation id."""
        found = outstanding.get(unpack_correlation_id(frame)[0], ())
        readings = [
            read_response(one.api_key, one.api_version, frame)
            for one in ((found,) if isinstance(found, Exchange) else found)
        ]
        if READS in readings or UNKNOWN in readings:
            return True
        if not fills:
            return False
        self.believable = True
        return LEFT_OVER in readings or self.ending


def guess_from_both(client: HalfStream, broker: HalfStream) -> str:
    """The protocol of a connection that is not Kafka, guessed from both directions; ``unknown`` if none fits."""
    names = [guess_protocol(half.resync.buffer.data[:FIRST_BYTES]) for half in (client, broker)]
    known = [name for name in names if name != "unknown"]
    return next((name for name in known if name != "text"), known[0] if known else "unknown")


def header_bytes(data: bytes) -> int:
    """Bytes of a request's length and header up to the end of the client id, as far as ``data`` has them."""
    if len(data) < REQUEST_FRONT_BYTES:
        return REQUEST_FRONT_BYTES
    client_id_length = i16(data, 12)
    return REQUEST_FRONT_BYTES + (client_id_length if 0 < client_id_length <= MAX_CLIENT_ID_BYTES else 0)
