"""Hand-made TCP conversations, as segments: the network between a client and a broker, under the test's control."""

from __future__ import annotations

from struct import pack
from typing import Self

from kwiresniff import schema
from kwiresniff.base.needs import Needs
from kwiresniff.model import ACK, FIN, RST, SYN, Event, Exchange, Problem, Segment
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with


def string(text: str | None) -> bytes:
    """NULLABLE_STRING: INT16 length, -1 for null."""
    return pack(">h", -1) if text is None else pack(">h", len(text.encode())) + text.encode()


def request(
    api_key: int, version: int, correlation_id: int, body: bytes = b"", client: str | None = "c-1", tags: bytes = b""
) -> bytes:
    """A request frame with its length; ``tags`` is the tagged-field section of a header v2."""
    payload = pack(">hhi", api_key, version, correlation_id) + string(client) + tags + body
    return pack(">i", len(payload)) + payload


def response(correlation_id: int, body: bytes = b"", tags: bytes = b"") -> bytes:
    """A response frame with its length; ``tags`` is the tagged-field section of a header v1."""
    payload = pack(">i", correlation_id) + tags + body
    return pack(">i", len(payload)) + payload


def exchange_frames(
    api_key: int, version: int, correlation_id: int, asked: bytes = b"", answered: bytes = b"", client: str = "c-1"
) -> tuple[bytes, bytes]:
    """A request and its response, with the headers that the version has and no tags in them."""
    tags = schema.request_header_version(api_key, version) - 1, schema.response_header_version(api_key, version)
    first = request(api_key, version, correlation_id, asked, client, b"\0" * tags[0])
    return first, response(correlation_id, answered, b"\0" * tags[1])


def api_versions_v0(correlation_id: int) -> bytes:
    return request(18, 0, correlation_id)


def api_versions_v0_response(correlation_id: int, error_code: int = 0) -> bytes:
    return response(correlation_id, pack(">hi", error_code, 1) + pack(">hhh", 18, 0, 3))


HEARTBEAT_BODY = string("group") + pack(">i", 5) + string("member")


def heartbeat(correlation_id: int, client: str | None = "c-1") -> bytes:
    """Heartbeat v0."""
    return request(12, 0, correlation_id, HEARTBEAT_BODY, client)


def heartbeat_response(correlation_id: int, error_code: int = 0) -> bytes:
    return response(correlation_id, pack(">h", error_code))


class Wire:
    """One TCP connection. ``up`` is client to broker, ``down`` the other way; every segment takes a millisecond."""

    def __init__(
        self, *, client_port: int = 40_000, broker_port: int = 9092, isn: tuple[int, int] = (100, 5000)
    ) -> None:
        addresses = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
        ports = pack(">H", client_port), pack(">H", broker_port)
        self.flows = (
            addresses[0] + addresses[1] + ports[0] + ports[1],
            addresses[1] + addresses[0] + ports[1] + ports[0],
        )
        self.seq = list(isn)
        self.segments: list[Segment] = []
        self.packet = 0

    def send(self, way: int, data: bytes = b"", flags: int = ACK, *, drop: bool = False, missing: int = 0) -> None:
        self.packet += 1
        kept = data[: len(data) - missing]
        if not drop:
            self.segments.append(
                (
                    self.packet, self.packet * 1_000_000, self.flows[way], self.seq[way] & 0xFFFFFFFF,
                    self.seq[1 - way] & 0xFFFFFFFF, flags, b"??" + kept, 2, 2 + len(kept), missing,
                )
            )  # fmt: skip
        self.seq[way] += len(data) + bool(flags & SYN) + bool(flags & FIN)

    def open(self) -> Self:
        self.send(0, flags=SYN)
        self.send(1, flags=SYN | ACK)
        self.send(0)
        return self

    def up(self, *frames: bytes, **options: int) -> Self:
        self.send(0, b"".join(frames), **options)  # type: ignore[arg-type]
        return self

    def down(self, *frames: bytes, **options: int) -> Self:
        self.send(1, b"".join(frames), **options)  # type: ignore[arg-type]
        return self

    def close(self) -> Self:
        self.send(0, flags=FIN | ACK)
        self.send(1, flags=FIN | ACK)
        self.send(0)
        return self

    def reset(self) -> Self:
        self.send(1, flags=RST)
        return self


def known_wire(client_port: int = 40_000) -> Wire:
    """A connection whose protocol is known: ApiVersions and its answer."""
    wire = Wire(client_port=client_port).open()
    return wire.up(api_versions_v0(1)).down(api_versions_v0_response(1))


def events(*wires: Wire, **options: object) -> list[Event]:
    """What an analyzer makes of the wires, one after the other."""
    segments = [segment for wire in wires for segment in wire.segments]
    needs = Needs(**{name: options.pop(name) for name in Needs._fields if name in options})  # type: ignore[arg-type]
    return list(analyze_with(Analyzer(needs, **options), segments))  # type: ignore[arg-type]


def exchanges(found: list[Event]) -> list[Exchange]:
    return [event for event in found if isinstance(event, Exchange)]


def problems(found: list[Event]) -> list[Problem]:
    return [event for event in found if isinstance(event, Problem)]
