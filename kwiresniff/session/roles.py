"""Who is the client, whether it is Kafka at all, and where its frames begin.

Roles come from the handshake when it was seen, else from content: the side that sends request headers that make
sense is the client. Ports count only when the user has named them as brokers'.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from kwiresniff import codec
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Connection, Exchange
from kwiresniff.session.apis import api_facts, response_version
from kwiresniff.session.fronts import skip_tagged_fields
from kwiresniff.session.recognize import is_gssapi_token, protocol_of
from kwiresniff.session.tls_records import find_records
from kwiresniff.stream.footing import (
    MIN_REQUEST_BYTES,
    MIN_UNFINISHED_BYTES,
    READ_STEPS,
    READ_STEPS_PER_BYTE,
    REQUEST_FRONT_BYTES,
    START_STEPS,
    STRONG,
    WEAK,
    find_request,
    find_response,
    grade_request,
)
from kwiresniff.stream.half import MAX_FRAME_BYTES, Half

if TYPE_CHECKING:
    from kwiresniff.session.link import Link

#: A new connection whose first frame cannot be judged by its header alone is judged by this much of it.
OPENING_BYTES = 2048
PRODUCE = 0
_request_header = Struct(">hhih").unpack_from
_correlation_id = Struct(">i").unpack_from
_length = Struct(">i").unpack_from

#: Stands for the connection until it is known to be Kafka.
UNSETTLED = Connection(0, "", "")


class Roles:
    """Answers the halves of one connection when they ask where a frame begins, and settles who is who on the way."""

    __slots__ = ("_doubtful", "_link")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._doubtful = False  # one side may be the client, if the other one answers it

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
        return find_response(half.run, link.pending.by_id, link.first_correlation_id, self._confirm_response)

    def _locate_opening(self, half: Half) -> int:
        """The very first bytes of a direction whose handshake was seen."""
        run = half.run.data
        if half is not self._link.client:
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
            self._link.settle(half)
            self._link.begin_bare_tokens("GSSAPI", half.last_ns)
            return 0
        if len(run) < min(REQUEST_FRONT_BYTES, size + 4):
            return -1
        grade = grade_request(run, 0, self._link.analyzer.versions, opening=True)
        if grade == WEAK:
            # A Metadata v0 without a client id begins like PostgreSQL's startup message: its end tells them apart.
            if protocol_of(bytes(run[:64])) not in ("unknown", "postgresql"):
                grade = 0
            elif half.flow[-2:] in self._link.analyzer.broker_ports:
                pass
            elif len(run) >= size + 4:
                grade = WEAK if self.reads_as_request(bytes(run[4 : size + 4])) else 0
            elif len(run) < OPENING_BYTES:
                return -1
        if not grade:
            self._not_kafka(half)
            return -1
        self._link.settle(half)
        return 0

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

    def reads_as_request(self, frame: bytes) -> bool | None:
        """Whether a frame reads as a request to its last byte; None when its API or version is unknown."""
        if len(frame) < MIN_REQUEST_BYTES:
            return False
        api_key, api_version, _, _ = _request_header(frame)
        frame = with_plain_client_id(frame)
        try:
            offset = codec.decode_request_header(frame)[4]
        except DecodeError:
            return False
        except SchemaError:
            return None
        return self._link.analyzer.reads(api_key, api_version, "request", frame, offset)

    def _confirm_request(self, frame: bytes, grade: int) -> bool | None:
        return self.reads_as_request(frame)

    def _confirm_client(self, peer: Half, frame: bytes, grade: int) -> bool | None:
        """Whether a frame shows that its sender, on the other side of ``peer``, is the client.

        Without a client id, zeros read like a request too easily, and a version that nobody knows cannot be checked:
        then the other side must have answered it.
        """
        verdict = self.reads_as_request(frame)
        if verdict is False or (verdict and grade == STRONG and not self._is_empty_produce(frame)):
            return verdict
        self._doubtful = True
        return self._is_answered(peer, frame)

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

    def _is_answered(self, peer: Half, frame: bytes) -> bool:
        """Whether a segment under search begins with the response to a request.

        A small correlation id stands everywhere, so it must read like one, or be so long that it is not all there.
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
                if self._reads_as_response(api_key, api_version, bytes(run[offset + 4 : end])) is not False:
                    return True
            elif len(run) - offset >= MIN_UNFINISHED_BYTES:
                return True
        return False

    def _confirm_response(self, frame: bytes) -> bool | None:
        """Whether a frame reads as the response to an outstanding request with its correlation id."""
        found = self._link.pending.by_id.get(_correlation_id(frame)[0], ())
        verdicts = [self.reads_as_answer(one, frame) for one in ((found,) if isinstance(found, Exchange) else found)]
        return True in verdicts or (None if None in verdicts else False)

    def reads_as_answer(self, exchange: Exchange, frame: bytes) -> bool | None:
        """Whether a frame reads as the response of an exchange; None when nobody knows its API or version."""
        return self._reads_as_response(exchange.api_key, exchange.api_version, frame)

    def _reads_as_response(self, api_key: int, api_version: int, frame: bytes) -> bool | None:
        facts = api_facts(api_key, api_version)
        version = response_version(api_key, facts.read_as, frame)
        offset = skip_tagged_fields(frame, 4) if facts.response_header_version else 4
        return self._link.analyzer.reads(api_key, version, "response", frame, offset)

    def _not_kafka(self, half: Half) -> None:
        link = self._link
        link.protocol = protocol_of(bytes(half.run.data[:64]))
        if link.protocol == "tls":
            link.encrypted(half, 0)
        else:
            link.analyzer.tracker.ignore(link, link.protocol)

    def guess_protocol(self) -> str:
        """A name for a connection that never showed what it was."""
        for half in (self._link.client, self._link.broker):
            if half.run.data:
                name = protocol_of(bytes(half.run.data[:64]))
                if name != "unknown":
                    return name
        return "unknown"


def with_plain_client_id(frame: bytes) -> bytes:
    """A request with another client id of the same length: brokers take any bytes for one, decoders only text."""
    length = _request_header(frame)[3]
    return frame[:MIN_REQUEST_BYTES] + b"?" * length + frame[MIN_REQUEST_BYTES + length :] if length > 0 else frame


def believe(frame: bytes, grade: int) -> bool:
    """The judge of requests that needs no convincing."""
    return True
