"""Who is the client, whether it is Kafka at all, and where its frames begin.

Roles come from the handshake when it was seen, else from content: the side that sends request headers that make
sense is the client. Ports count only when the user has named them as brokers'.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from kwiresniff import codec
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Connection, Exchange
from kwiresniff.session.readings import (
    FAILS,
    LEFT_OVER,
    READS,
    UNKNOWN,
    read_front,
    read_request,
    read_response,
    with_plain_client_id,
)
from kwiresniff.session.recognize import is_gssapi_token, is_sure_answer, protocol_of
from kwiresniff.session.tls_records import find_records
from kwiresniff.stream.footing import (
    MAX_CLIENT_ID_BYTES,
    MIN_UNFINISHED_BYTES,
    NO,
    READ_STEPS,
    READ_STEPS_PER_BYTE,
    REQUEST_FRONT_BYTES,
    START_STEPS,
    STRONG,
    WEAK,
    find_request,
    find_response,
    grade_request,
    request_front,
)
from kwiresniff.stream.half import FIRST_BYTES, MAX_FRAME_BYTES, SOUND_FRAME_BYTES, Half

if TYPE_CHECKING:
    from kwiresniff.session.link import Link

#: A new connection whose first frame cannot be judged by its header alone is judged by all of it, or by this much.
OPENING_BYTES = 16 << 10
_request_header = Struct(">hhih").unpack_from
_correlation_id = Struct(">i").unpack_from
_length = Struct(">i").unpack_from
_response_front = Struct(">ii").unpack_from

#: Stands for the connection until it is known to be Kafka.
UNSETTLED = Connection(0, "", "")


class Roles:
    """Answers the halves of one connection when they ask where a frame begins, and settles who is who on the way.

    ``ending`` says that nothing more will come: a frame that nothing speaks for but itself is believed then.
    """

    __slots__ = ("_believable", "_doubtful", "_link", "ending")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._believable = False  # there was a frame that is to be believed in the end
        self.ending = False
        self._doubtful = False  # one side may be the client, if the other one answers it

    def search_in_the_end(self) -> None:
        """Nothing more will come: so what nothing speaks against is believed now."""
        client, broker = self._link.client, self._link.broker
        if not self._believable and not is_sure_answer(broker.run.data):
            return
        self.ending = True
        for half in (client, broker, self._link.broker):
            half.search()

    def locate(self, half: Half) -> int:
        """Answer a half that asks for a footing in its run."""
        if self._link.connection is UNSETTLED:
            records = find_records(half.run)
            if records >= 0:
                self._link.encrypted(half, records)
                return -1
            if self._link.opened_by_syn and half.run_is_whole():
                return self._locate_opening(half)
            return self._locate_unknown(half)
        if half is self._link.client:
            confirm = believe if half.flow[-2:] in self._link.analyzer.broker_ports else self._confirm_request
            return find_request(half.run, self._link.analyzer.versions, confirm, known_client=True)
        if half.run_is_whole():
            return 0
        link = self._link
        if self.ending and half.bytes == len(half.run) and is_sure_answer(half.run.data):
            packet, ns = half.run.place(0)
            if link.is_foreign(half, packet, ns, bytes(half.run.data[:FIRST_BYTES])):
                half.count_only()
                return -1
        return find_response(half.run, link.pending.by_id, link.first_correlation_id, self._confirm_response)

    def _locate_opening(self, half: Half) -> int:
        """The very first bytes of a direction whose handshake was seen."""
        link, run = self._link, half.run.data
        if len(run) < 4:
            return -1
        (size,) = _length(run)
        if not 4 <= size <= MAX_FRAME_BYTES:
            self._not_kafka(half)
            return -1
        if half is not link.client:
            return self._locate_first_answer(half)
        if is_gssapi_token(bytes(run[4:40])):
            link.settle(half)
            link.begin_bare_tokens("GSSAPI", half.last_ns)
            return 0
        if len(run) < min(header_bytes(run), size + 4) and not (self.ending or half.run.ahead):
            return -1
        grade = grade_request(run, 0, link.analyzer.versions, opening=True)
        if grade == WEAK:
            grade = self._weigh_opening(half, size)
        if grade == STRONG:
            link.settle(half)
            return 0
        if grade == NO:
            self._not_kafka(half)
        return -1

    def _weigh_opening(self, half: Half, size: int) -> int:
        """What to think of a first frame whose header alone is not enough; WEAK is for what comes to decide."""
        run = half.run.data
        # A Metadata v0 without a client id begins like PostgreSQL's startup message: its end tells them apart.
        if protocol_of(bytes(run[:FIRST_BYTES])) not in ("unknown", "postgresql"):
            return NO
        analyzer = self._link.analyzer
        if half.flow[-2:] in analyzer.broker_ports and grade_request(run, 0, analyzer.versions):
            return STRONG
        if len(run) < size + 4:
            half.run.steps -= READ_STEPS + READ_STEPS_PER_BYTE * len(run)
            reading = read_front(bytes(run[4:]))
            if len(run) >= OPENING_BYTES:
                return STRONG if reading == READS else NO
            return NO if reading == FAILS else WEAK
        reading = read_request(bytes(run[4 : size + 4]))
        if reading == FAILS:
            return NO
        return STRONG if reading == READS else WEAK

    def _locate_first_answer(self, half: Half) -> int:
        """The first bytes of the side that accepted the connection: they may answer a first frame that is in doubt."""
        link, run = self._link, half.run.data
        client = link.client
        asked = client.run.data
        if len(run) < 8 or len(asked) < REQUEST_FRONT_BYTES or not client.run_is_whole():
            return -1
        if len(asked) < _length(asked)[0] + 4:
            return -1
        size, correlation_id = _response_front(run)
        if size > SOUND_FRAME_BYTES or correlation_id != _correlation_id(asked, 8)[0]:
            self._not_kafka(client)
            return -1
        link.settle(client)
        client.step_in(0)
        return self.locate(half)

    def _locate_unknown(self, half: Half) -> int:
        """A connection that was there before the capture: whoever makes sense as a client is the client."""
        sides = (half, half.peer) if self._doubtful else (half,)
        self._doubtful = False
        for one in sides:
            if self._link.opened_by_syn and one is not self._link.client:
                continue
            ports = self._link.analyzer.broker_ports
            to_broker = one.flow[-2:] in ports
            if one.flow[-4:-2] in ports and not to_broker:
                continue
            confirm = believe if to_broker else partial(self._confirm_client, one.peer)
            found = find_request(one.run, self._link.analyzer.versions, confirm, known_client=to_broker)
            if found >= 0:
                self._link.settle(one)
                if one is half:
                    return found
                one.step_in(found)
                return self.locate(half)
        return -1

    @staticmethod
    def _confirm_request(frame: bytes, grade: int, fills: bool) -> bool:
        reading = read_request(frame)
        return reading == READS or (reading == LEFT_OVER and fills)

    def _confirm_client(self, peer: Half, frame: bytes, grade: int, fills: bool) -> bool:
        """Whether a frame shows that its sender, on the other side of ``peer``, is the client.

        Without a client id, zeros read like a request too easily, a version that nobody knows cannot be checked, and
        bytes left over fit nothing: then the other side must have answered it. A frame that fills segments exactly is
        believed without an answer when none will come.
        """
        reading = read_request(frame)
        strong = grade == STRONG
        if reading == READS and strong and not self._is_empty_produce(frame):
            return True
        # A response with a small correlation id, like any small number, has the front of a Produce.
        sure = strong and _request_header(frame)[0] != PRODUCE
        if reading == UNKNOWN:
            believable = strong
        else:
            believable = reading == READS or (sure and fills)
        if not believable:
            return False
        self._doubtful = True
        if self._is_answered(peer, frame, strong, sure):
            return True
        if not (sure and fills) or reading == UNKNOWN:
            return False
        self._believable = True
        return self.ending

    @staticmethod
    def _is_empty_produce(frame: bytes) -> bool:
        """Whether a request is a Produce of nothing: no client sends that, but a response with a small correlation id,
        a topic's name and zeros reads so (OffsetCommit does)."""
        api_key, api_version, _, _ = _request_header(frame)
        if api_key != PRODUCE:
            return False
        offset = codec.decode_request_header(with_plain_client_id(frame)).body_offset
        body, _ = codec.decoder(PRODUCE, api_version, "request", "skip")(frame, offset, [])
        return not body["topic_data"]

    @staticmethod
    def _is_answered(peer: Half, frame: bytes, strong: bool, sure: bool) -> bool:
        """Whether a segment under search begins with the response to a request.

        A small correlation id stands everywhere, so it must read like one, or be so long that it is not all there, or
        be as unknown as a ``strong`` request. To a request whose header is ``sure`` it may be anything that fills
        segments exactly.
        """
        api_key, api_version, _, _ = _request_header(frame)
        run = peer.run.data
        starts = peer.run.starts()
        peer.peer.run.steps -= START_STEPS * len(starts)
        for offset in starts:
            if run[offset + 4 : offset + 8] != frame[4:8]:
                continue
            end = offset + 4 + _length(run, offset)[0]
            if not offset + 8 <= end <= offset + 4 + MAX_FRAME_BYTES:
                continue
            if end <= len(run):
                peer.peer.run.steps -= READ_STEPS + READ_STEPS_PER_BYTE * (end - offset)
                reading = read_response(api_key, api_version, bytes(run[offset + 4 : end]))
                fills = end == len(run) or end in starts
                if reading == READS or (strong and reading == UNKNOWN) or (sure and fills):
                    return True
            elif len(run) - offset >= MIN_UNFINISHED_BYTES:
                return True
        return False

    def _confirm_response(self, frame: bytes, fills: bool) -> bool:
        """Whether a frame reads as the response to an outstanding request with its correlation id."""
        found = self._link.pending.by_id.get(_correlation_id(frame)[0], ())
        readings = [
            read_response(one.api_key, one.api_version, frame)
            for one in ((found,) if isinstance(found, Exchange) else found)
        ]
        if READS in readings or UNKNOWN in readings:
            return True
        if not fills:
            return False
        self._believable = True
        return LEFT_OVER in readings or self.ending

    def _not_kafka(self, half: Half) -> None:
        link = self._link
        link.protocol = protocol_of(bytes(half.run.data[:FIRST_BYTES]))
        if link.protocol == "tls":
            link.encrypted(half, 0)
        else:
            link.protocol = self.guess_protocol()
            link.analyzer.tracker.ignore(link, link.protocol)

    def guess_protocol(self) -> str:
        """A name for a connection that is not Kafka, or never showed what it was."""
        names = [protocol_of(bytes(half.run.data[:FIRST_BYTES])) for half in (self._link.client, self._link.broker)]
        known = [name for name in names if name != "unknown"]
        return next((name for name in known if name != "text"), known[0] if known else "unknown")


def header_bytes(data: bytes | bytearray) -> int:
    """Bytes of a request's length and header up to the end of its client id, as far as ``data`` tells."""
    if len(data) < REQUEST_FRONT_BYTES:
        return REQUEST_FRONT_BYTES
    client_id_length: int = request_front(data, 0)[4]
    return REQUEST_FRONT_BYTES + (client_id_length if 0 < client_id_length <= MAX_CLIENT_ID_BYTES else 0)


def believe(frame: bytes, grade: int, fills: bool) -> bool:
    """The judge of requests that needs no convincing."""
    return True
