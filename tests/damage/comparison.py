"""Comparing what the analyzer makes of a damaged capture with what is still in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import NamedTuple

from kwiresniff.model import Connection, Event, Exchange, Message, Problem, Segment
from kwiresniff.session import Analyzer
from kwiresniff.session.analyzer import Depth
from tests.damage.oracle import Carried, Coverage, Oracle

#: A frame: number of its stream, its index there.
FrameId = tuple[int, int]


class Key(NamedTuple):
    """What tells a message from others: direction by stream, size, packets and times, first bytes."""

    stream: int
    size_bytes: int
    first: tuple[int, int]
    last: tuple[int, int]
    front: bytes


class Pair(NamedTuple):
    """What an exchange of the undamaged capture is."""

    request: FrameId
    response: FrameId | None
    facts: tuple[object, ...]


def facts_of(exchange: Exchange) -> tuple[object, ...]:
    """What must be the same of an exchange, besides its messages."""
    return (
        exchange.api_key,
        exchange.api_version,
        exchange.correlation_id,
        exchange.client_id,
        exchange.outcome,
        exchange.connection.client,
        exchange.connection.broker,
        [error[1] for error in exchange.errors],
        [problem.code for problem in exchange.problems],
    )


@dataclass
class Reading:
    """What an analyzer said about a capture."""

    events: list[Event]
    token_bytes: int
    exchanges: list[Exchange] = field(init=False)
    problems: list[Problem] = field(init=False)
    connections: list[Connection] = field(init=False)

    def __post_init__(self) -> None:
        self.exchanges = [event for event in self.events if isinstance(event, Exchange)]
        self.problems = [event for event in self.events if isinstance(event, Problem)]
        self.connections = [event for event in self.events if isinstance(event, Connection)]

    def accounted_bytes(self) -> int:
        """Bytes that are part of a message, skipped, left unfinished or bare tokens, on connections with Kafka."""
        total = self.token_bytes
        for exchange in self.exchanges:
            for message, path in ((exchange.request, "request"), (exchange.response, "response")):
                if message is not None:
                    total += 4 + message.size_bytes - lost_bytes(exchange.problems, path)
        for problem in self.problems:
            details = problem.details or {}
            if problem.code in ("incomplete_request", "incomplete_response"):
                total += details["present_bytes"] + (4 if details["size_bytes"] else 0)
            elif problem.code in ("lost_request", "lost_response"):
                total += details["present_bytes"] + 4
        return total + sum(sum(connection.skipped_bytes) for connection in self.connections)


def lost_bytes(problems: Sequence[Problem], path: str) -> int:
    return sum(
        problem.details["missing_bytes"]
        for problem in problems
        if problem.code == "gap" and problem.path == path and problem.details
    )


def read(segments: Sequence[Segment], depth: Depth) -> Reading:
    analyzer = Analyzer(depth)
    events = list(analyzer.analyze(segments))
    return Reading(events, analyzer.bare_token_bytes)


class Truth:
    """An undamaged capture: its streams, its messages, and which of them belong together.

    Streams, frames and their packets come from the oracle; that they are what the analyzer finds in the undamaged
    capture is part of the comparison. The pairs come from the analyzer's reading of the undamaged capture.
    """

    def __init__(self, segments: Sequence[Segment], depth: Depth = "errors") -> None:
        self.segments = segments
        self.depth = depth
        self.oracle = Oracle(segments)
        self.reading = read(segments, depth)
        self.pairs: list[Pair] = []
        known = self._known(Coverage(self.oracle, segments))
        for exchange in self.reading.exchanges:
            request, response = (
                known[self._key(message)].pop(0) if message else None
                for message in (exchange.request, exchange.response)
            )
            assert request is not None, "an undamaged capture has all requests"
            self.pairs.append(Pair(request, response, facts_of(exchange)))
        self.kafka = {request[0] // 2 for request, _, _ in self.pairs}
        in_pairs = {frame for request, response, _ in self.pairs for frame in (request, response) if frame}
        #: Frames that are bare tokens.
        self.tokens = {
            (number, index)
            for number, stream in enumerate(self.oracle.streams)
            for index in range(len(stream.frames))
            if number // 2 in self.kafka and (number, index) not in in_pairs
        }
        for frames in known.values():
            assert all(frame in self.tokens or frame[0] // 2 not in self.kafka for frame in frames)

    def _key(self, message: Message) -> Key:
        stream = self.oracle.places[message.first_packet].stream
        front = (message.frame or b"")[:8]
        return Key(
            stream,
            message.size_bytes,
            (message.first_packet, message.first_ns),
            (message.last_packet, message.last_ns),
            front,
        )

    def _frame_key(self, frame: FrameId, carried: Carried) -> Key:
        number, index = frame
        stream = self.oracle.streams[number]
        start, end = stream.frames[index]
        assert carried.first and carried.last
        return Key(number, end - start - 4, carried.first, carried.last, bytes(stream.data[start + 4 : end][:8]))

    def _known(self, coverage: Coverage) -> dict[Key, list[FrameId]]:
        known: dict[Key, list[FrameId]] = {}
        for number in range(len(self.oracle.streams)):
            for index, carried in enumerate(coverage.carried(number)):
                if carried.whole:
                    known.setdefault(self._frame_key((number, index), carried), []).append((number, index))
        return known

    def differences(self, segments: Sequence[Segment], *, tolerance: int = 1) -> list[str]:
        """What is wrong with the analyzer's reading of a damaged version, one line each.

        Frames within ``tolerance`` frames of damage in their own direction need not be found, but nothing may be
        invented, and the bytes must add up.
        """
        reading = read(segments, self.depth)
        coverage = Coverage(self.oracle, segments)
        return [
            *self._missed(reading, coverage, tolerance),
            *self._unbalanced(reading, coverage, segments),
        ]

    def _near(self, number: int, holes: list[tuple[int, int]], tolerance: int) -> set[int]:
        """Indexes of the frames of a stream that are damaged or within ``tolerance`` frames of damage."""
        frames = self.oracle.streams[number].frames
        hurt = {i for i, (start, end) in enumerate(frames) if any(a < end and start < b for a, b in holes)}
        return {index + step for index in hurt for step in range(-tolerance, tolerance + 1)}

    def _missed(self, reading: Reading, coverage: Coverage, tolerance: int) -> Iterator[str]:
        streams = self.oracle.streams
        found: dict[FrameId, Exchange] = {}
        known = self._known(coverage)
        fronts = Counter((number, end - start - 4) for number, s in enumerate(streams) for start, end in s.frames)
        for exchange in reading.exchanges:
            for message, path in ((exchange.request, "request"), (exchange.response, "response")):
                if message is None:
                    continue
                key = self._key(message)
                if lost_bytes(exchange.problems, path):
                    if (key.stream, key.size_bytes) not in fronts:
                        yield f"invented {path}, partly lost: {key}"
                    continue
                if not known.get(key):
                    yield f"invented {path} {key}"
                    continue
                found[known[key].pop(0)] = exchange
        near = {
            number: self._near(number, coverage.holes(number), tolerance)
            for number in range(len(streams))
            if number // 2 in self.kafka
        }
        shown = {
            request[0] // 2 for request, _, _ in self.pairs if request in found or request[1] not in near[request[0]]
        }
        for request, response, facts in self.pairs:
            if request[0] // 2 not in shown:
                continue  # only responses are left, and nothing in them says Kafka
            asked, answered = found.get(request), found.get(response) if response else None
            asked_safe = request[1] not in near[request[0]]
            answered_safe = response is not None and response[1] not in near[response[0]]
            if asked_safe and asked is None:
                yield f"missed request {request} {facts}"
            if answered_safe and answered is None:
                yield f"missed response {response} {facts}"
            if asked is None and answered is None:
                continue
            if asked is not None and answered is not None:
                if asked is not answered:
                    if asked_safe and answered_safe:
                        yield f"not paired {request} {response} {facts}"
                elif facts_of(asked) != facts:
                    yield f"other facts {request}: {facts_of(asked)} instead of {facts}"
            elif asked is not None:
                if response is None and facts_of(asked) != facts:
                    yield f"other facts {request}: {facts_of(asked)} instead of {facts}"
                if asked.response is not None and not lost_bytes(asked.problems, "response"):
                    yield f"wrong response for {request} {facts}"
            elif answered is not None and answered.request and not lost_bytes(answered.problems, "request"):
                yield f"wrong request for {response} {facts}"

    def _unbalanced(self, reading: Reading, coverage: Coverage, segments: Sequence[Segment]) -> Iterator[str]:
        protocols = {(c.client, c.broker): c.protocol for c in reading.connections}
        protocols |= {(broker, client): protocol for (client, broker), protocol in protocols.items()}
        captured: Counter[str] = Counter()
        for number, stream in enumerate(self.oracle.streams):
            if protocols.get(endpoints_text(stream.flow)) == "kafka":
                captured["kafka"] += coverage.captured(number)
        for _, _, flow, _, _, _, _, start, end, _ in segments:
            protocol = protocols.get(endpoints_text(flow), "none")
            if protocol != "kafka":
                captured[protocol] += end - start
        said = {
            "kafka": reading.accounted_bytes(),
            "tls": sum(sum(c.bytes) for c in reading.connections if c.protocol == "tls"),
            "none": sum((p.details or {})["bytes"] for p in reading.problems if p.code == "not_kafka"),
        }
        places = Counter(endpoints_text(stream.flow) for stream in self.oracle.streams)
        if max(places.values(), default=0) > 1:
            # What is left of one connection may tell less than another on the same ports; endpoints do not say which.
            captured, said = Counter(all=captured.total()), {"all": sum(said.values())}
        for protocol, count in said.items():
            if captured[protocol] != count:
                yield f"{captured[protocol]} bytes captured ({protocol}), {count} accounted for"


def endpoints_text(flow: bytes) -> tuple[str, str]:
    """``ip:port`` of both ends of a flow."""

    def text(raw: bytes, port: bytes) -> str:
        address = str(ip_address(raw))
        return f"{f'[{address}]' if ':' in address else address}:{int.from_bytes(port, 'big')}"

    ports = flow[-4:]
    address = (len(flow) - 4) // 2
    return text(flow[:address], ports[:2]), text(flow[address : 2 * address], ports[2:])
