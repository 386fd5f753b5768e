"""Comparing what the analyzer makes of a damaged capture with what is still in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from operator import attrgetter
from typing import NamedTuple

from kwiresniff.base.depths import Depth
from kwiresniff.model import Connection, Event, Exchange, Message, Problem, Segment
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with
from tests.support.reference import Carried, Coverage, Oracle

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


#: Everything said of an exchange and of each of its messages, as tuples that can be compared.
SAID_OF_EXCHANGE = attrgetter(
    "api_key", "api_version", "correlation_id", "client_id", "outcome", "errors", "problems",
    "connection.client", "connection.broker",
)  # fmt: skip
SAID_OF_MESSAGE = attrgetter("first_packet", "first_ns", "last_packet", "last_ns", "size_bytes", "frame")


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
            for message in (exchange.request, exchange.response):
                if message is not None:
                    total += 4 + message.size_bytes
            if exchange.problems:
                total -= lost_bytes(exchange.problems, "request") + lost_bytes(exchange.problems, "response")
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
    events = list(analyze_with(analyzer, segments))
    return Reading(events, analyzer.opaque_token_bytes)


def streams_of(connections: Iterable[int]) -> list[int]:
    """The streams of connections, two of each."""
    return [stream for number in connections for stream in (2 * number, 2 * number + 1)]


class Truth:
    """An undamaged capture: its streams, its messages, and which of them belong together.

    Streams, frames and their packets come from the oracle; that they are what the analyzer finds in the undamaged
    capture is part of the comparison. The pairs come from the analyzer's reading of the undamaged capture.
    """

    def __init__(self, segments: Sequence[Segment], depth: Depth = "errors") -> None:
        self.segments = segments
        self.depth = depth
        self.oracle = Oracle(segments)
        streams = self.oracle.streams
        self.flows = [stream.flow for stream in streams]
        #: By connection, see ``pairs``.
        self.flows_of = [frozenset(self.flows[first : first + 2]) for first in range(0, len(streams), 2)]
        self.sizes = {(number, end - start - 4) for number, s in enumerate(streams) for start, end in s.frames}
        self.reading = read(segments, depth)
        self.said = {number: facts_in_order(told) for number, told in self._by_connection(self.reading).items()}
        #: By connection: streams 2n and 2n + 1 are the directions of connection n.
        self.pairs: dict[int, list[Pair]] = defaultdict(list)
        known = self._known(Coverage(self.oracle, segments), range(len(streams)))
        for exchange in self.reading.exchanges:
            request, response = (
                known[self._key(message)].pop(0) if message else None
                for message in (exchange.request, exchange.response)
            )
            assert request is not None, "an undamaged capture has all requests"
            self.pairs[request[0] // 2].append(Pair(request, response, facts_of(exchange)))
        in_pairs = {frame for pairs in self.pairs.values() for pair in pairs for frame in pair[:2] if frame}
        #: Frames that are bare tokens.
        self.tokens = {
            (number, index)
            for number, stream in enumerate(streams)
            for index in range(len(stream.frames))
            if number // 2 in self.pairs and (number, index) not in in_pairs
        }
        for frames in known.values():
            assert all(frame in self.tokens or frame[0] // 2 not in self.pairs for frame in frames)

    def _by_connection(self, reading: Reading) -> dict[int, list[Exchange]]:
        places = self.oracle.places
        told: dict[int, list[Exchange]] = defaultdict(list)
        for exchange in reading.exchanges:
            message = exchange.request or exchange.response
            assert message is not None
            told[places[message.first_packet].stream // 2].append(exchange)
        return told

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
        last = (carried.last[0], max(carried.first[1], carried.last[1]))  # no frame before its first byte
        return Key(number, end - start - 4, carried.first, last, bytes(stream.data[start + 4 : end][:8]))

    def _known(self, coverage: Coverage, numbers: Iterable[int]) -> dict[Key, list[FrameId]]:
        known: dict[Key, list[FrameId]] = {}
        for number in numbers:
            for index, carried in enumerate(coverage.carried(number)):
                if carried.whole:
                    known.setdefault(self._frame_key((number, index), carried), []).append((number, index))
        return known

    def differences(self, segments: Sequence[Segment], *, tolerance: int = 1) -> list[str]:
        """What is wrong with the analyzer's reading of a damaged version, one line each.

        Frames within ``tolerance`` frames of damage in their own direction need not be found, but nothing may be
        invented, and the bytes must add up.

        The whole damaged capture is read, but only suspects are looked at closely.
        """
        reading = read(segments, self.depth)
        told = self._by_connection(reading)
        left = {segment[2] for segment in segments}
        there = [number for number, flows in enumerate(self.flows_of) if number in told or left & flows]
        suspects = self._suspects(there, told, segments)
        flows_of_suspects = frozenset[bytes]().union(*(self.flows_of[number] for number in suspects))
        theirs = [segment for segment in segments if segment[2] in flows_of_suspects]
        coverage = Coverage(self.oracle, theirs, streams_of(suspects))
        captured = {
            stream: coverage.captured(stream) if stream in coverage.streams else len(self.oracle.streams[stream].data)
            for stream in streams_of(there)
        }
        return [
            *self._missed({number: told.get(number, []) for number in suspects}, coverage, tolerance),
            *self._unbalanced(reading, captured, segments),
        ]

    def _suspects(
        self, there: Sequence[int], told: dict[int, list[Exchange]], segments: Sequence[Segment]
    ) -> list[int]:
        """The connections of which something may be wrong.

        One that has all its segments, in order, and of which exactly the same is said as in the undamaged capture is
        right without a further look.
        """
        touched = self._touched_flows(segments)
        return [
            number
            for number in there
            if touched & self.flows_of[number] or facts_in_order(told.get(number, ())) != self.said.get(number, [])
        ]

    def _touched_flows(self, segments: Sequence[Segment]) -> set[bytes]:
        """The flows of all segments between the capture's undamaged beginning and its undamaged end."""
        whole = self.segments
        shorter = min(len(whole), len(segments))
        front = next((at for at in range(shorter) if whole[at] is not segments[at]), shorter)
        back = next((at for at in range(shorter - front) if whole[-1 - at] is not segments[-1 - at]), shorter - front)
        return {segment[2] for part in (whole, segments) for segment in part[front : len(part) - back]}

    def _near(self, number: int, holes: list[tuple[int, int]], tolerance: int) -> set[int]:
        """Indexes of the frames of a stream that are damaged or within ``tolerance`` frames of damage."""
        frames = self.oracle.streams[number].frames
        hurt = {i for i, (start, end) in enumerate(frames) if any(a < end and start < b for a, b in holes)}
        return {index + step for index in hurt for step in range(-tolerance, tolerance + 1)}

    def _missed(self, told: dict[int, list[Exchange]], coverage: Coverage, tolerance: int) -> Iterator[str]:
        """What is wrong with what is told of some connections, all of whose streams ``coverage`` covers."""
        found: dict[FrameId, Exchange] = {}
        known = self._known(coverage, coverage.streams)
        for exchange in (exchange for exchanges in told.values() for exchange in exchanges):
            for message, path in ((exchange.request, "request"), (exchange.response, "response")):
                if message is None:
                    continue
                key = self._key(message)
                if lost_bytes(exchange.problems, path):
                    if (key.stream, key.size_bytes) not in self.sizes:
                        yield f"invented {path}, partly lost: {key}"
                    continue
                if not known.get(key):
                    yield f"invented {path} {key}"
                    continue
                found[known[key].pop(0)] = exchange
        for number in told:
            yield from self._missed_on(number, found, coverage, tolerance)

    def _missed_on(
        self, connection: int, found: dict[FrameId, Exchange], coverage: Coverage, tolerance: int
    ) -> Iterator[str]:
        pairs = self.pairs.get(connection, [])
        near = {
            number: self._near(number, coverage.holes(number), tolerance)
            for number in (2 * connection, 2 * connection + 1)
        }
        if not any(request in found or request[1] not in near[request[0]] for request, _, _ in pairs):
            return  # only responses are left, and nothing in them says Kafka
        for request, response, facts in pairs:
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

    def _unbalanced(
        self, reading: Reading, captured_by_stream: dict[int, int], segments: Sequence[Segment]
    ) -> Iterator[str]:
        protocols = {(c.client, c.broker): c.protocol for c in reading.connections}
        protocols |= {(broker, client): protocol for (client, broker), protocol in protocols.items()}
        captured: Counter[str] = Counter()
        for number, present in captured_by_stream.items():
            if protocols.get(endpoints_text(self.flows[number])) == "kafka":
                captured["kafka"] += present
        flows = {segment[2] for segment in segments}
        told_of = {flow: protocols.get(endpoints_text(flow), "none") for flow in flows}
        others = {flow: protocol for flow, protocol in told_of.items() if protocol != "kafka"}
        for segment in segments:
            if segment[2] in others:
                captured[others[segment[2]]] += segment[8] - segment[7]
        said = {
            "kafka": reading.accounted_bytes(),
            "tls": sum(sum(c.bytes) for c in reading.connections if c.protocol == "tls"),
            "none": sum((p.details or {})["bytes"] for p in reading.problems if p.code == "not_kafka"),
        }
        if len({endpoints_text(flow) for flow in self.flows}) < len(self.flows):
            # What is left of one connection may tell less than another on the same ports; endpoints do not say which.
            captured, said = Counter(all=captured.total()), {"all": sum(said.values())}
        for protocol, count in said.items():
            if captured[protocol] != count:
                yield f"{captured[protocol]} bytes captured ({protocol}), {count} accounted for"


def facts_in_order(exchanges: Iterable[Exchange]) -> list[tuple[object, ...]]:
    """Everything that is said of exchanges and their messages, in their order."""
    return [
        (
            SAID_OF_EXCHANGE(exchange),
            exchange.request and SAID_OF_MESSAGE(exchange.request),
            exchange.response and SAID_OF_MESSAGE(exchange.response),
        )
        for exchange in exchanges
    ]


@cache
def endpoints_text(flow: bytes) -> tuple[str, str]:
    """``ip:port`` of both ends of a flow."""

    def text(raw: bytes, port: bytes) -> str:
        address = str(ip_address(raw))
        return f"{f'[{address}]' if ':' in address else address}:{int.from_bytes(port, 'big')}"

    ports = flow[-4:]
    address = (len(flow) - 4) // 2
    return text(flow[:address], ports[:2]), text(flow[address : 2 * address], ports[2:])
