"""What is fuzzed, each with its seeds and the invariants that any bytes at all must keep.

A target's ``run`` takes bytes and raises when an invariant is broken: an exception that is none of the declared ones,
two readers that disagree, output that could move a terminal's cursor. Where an input needs a choice (which message,
which codec), its first two bytes make it; changes leave them alone.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from struct import pack, unpack_from
from typing import Any, NamedTuple

from kwiresniff import codec, schema
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.codec.compression import decompress
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.record_values import plain_batches
from kwiresniff.codec.records import decode_record_set, dissect_record_set
from kwiresniff.errors import CaptureError, DecodeError, SchemaError
from kwiresniff.export.encode import json_text
from kwiresniff.export.json_objects import event_json
from kwiresniff.export.writers import WRITERS
from kwiresniff.model import Direction, Dissection, Exchange, Problem, Segment
from kwiresniff.render.summary import SummaryWriter
from kwiresniff.render.tree import TreeWriter
from kwiresniff.render.tree_row import Row
from kwiresniff.session import Analyzer
from kwiresniff.session.annotation import dissect_message
from kwiresniff.session.sasl_tokens import read_token
from kwiresniff.session.standalone import decode_message
from kwiresniff.session.x509 import certificate_names
from tests.fuzz.kept_indexes import change_index, index_seeds, kept_index
from tests.fuzz.mutations import Place, mutated, places_of, with_evil_fields
from tests.support.analyses import text_of_analyses
from tests.support.conversation import exchange_frames, known_wire
from tests.support.encoding import compress, encoder
from tests.support.events import analyze_with
from tests.support.harmful_text import UNSAFE, UNSAFE_JSON, WRITTEN_BY_PYTHON
from tests.support.kafka_vectors import Entry, entries
from tests.support.odd_bodies import body
from tests.support.record_vectors import vectors

BOTH: tuple[Direction, ...] = ("request", "response")
CAPTURES = Path(__file__).parents[2] / "captures"
ENCODE = json_text
#: What a batch may decompress to here, so that bombs end soon.
LIMIT_BYTES = 1 << 20


class Target(NamedTuple):
    """``front`` bytes of an input make a choice; ``share`` is how often it is run, beside the others'."""

    name: str
    seeds: Callable[[], tuple[bytes, ...]]
    run: Callable[[bytes], None]
    front: int = 0
    share: int = 1
    change: Callable[[Random, bytes, tuple[bytes, ...], int], bytes] = mutated


# -- messages -------------------------------------------------------------------------------------------------------


@cache
def messages() -> tuple[Entry, ...]:
    """Requests, responses and stored messages, as Kafka's own classes wrote them."""
    return tuple(entry for entry in entries() if entry.kind != "header")


@cache
def message_seeds() -> tuple[bytes, ...]:
    """Each of Kafka's instances behind the number of its message, and Fetch responses with recorded batches."""
    found = [pack(">H", number) + vector.raw for number, entry in enumerate(messages()) for vector in entry.vectors]
    fetch = next(
        number
        for number, entry in enumerate(messages())
        if (entry.kind, entry.api_key, entry.version) == ("response", 1, 11)
    )
    front = encoder(1, 11, "response")({
        "throttle_time_ms": 0, "error_code": 0, "session_id": 1,
        "responses": [{"topic": "orders", "partitions": [{
            "partition_index": 0, "error_code": 0, "high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0,
            "aborted_transactions": None, "preferred_read_replica": -1, "records": [],
        }]}],
    })[:-4]  # fmt: skip
    found += [pack(">H", fetch) + front + pack(">i", len(row["wire"])) + row["wire"] for row in vectors()]
    return tuple(found)


def message(data: bytes) -> None:
    """The decoder, the dissector and the JSON writer agree on a message, or all see that it is none."""
    (number,) = unpack_from(">H", data)
    entry, body = messages()[number % len(messages())], data[2:]
    definition = entry.message()
    issues: list[Problem] = []
    if entry.kind == "data":
        decode = codec.data_decoder(entry.name, entry.version)
    else:
        decode = codec.decoder(entry.api_key, entry.version, definition.kind)
    try:
        value, end = decode(body, 0, issues)
    except DecodeError as error:
        assert error.code, "an error without a code"
        value, end = None, -1
    assert end <= len(body)
    dissected = dissect(definition, body, 0)
    if value is None:
        assert dissected.problems, "the decoder fails where the dissector sees nothing"
    else:
        assert plain(dissected.root) == value, "the decoder and the dissector disagree"
    if entry.kind != "data":
        _text(entry, body, None if issues else value, end)


def _text(entry: Entry, body: bytes, value: Any, end: int) -> None:
    """The JSON text made straight from bytes is that of the decoded body and ends where that does, at ``end``; there is
    none where nothing was decoded.
    """
    direction = entry.message().kind
    steps = codec.text_steps(entry.api_key, entry.version, direction)
    writer = codec.body_writer(ENCODE, "AAAAAAAAAAAAAAAAAAAAAQ".__eq__)
    if writer is None or steps is None:
        return
    pieces = writer.text(steps, body, 0)
    if pieces is not None:
        assert value is not None and b"".join(pieces) == ENCODE(value), "the JSON writer disagrees"
        assert writer.pos == end, "the JSON writer ends elsewhere"


def change_message(rng: Random, seed: bytes, seeds: tuple[bytes, ...], front: int) -> bytes:
    """Half the time where the fields are, else anywhere."""
    if rng.random() < 0.5:
        return mutated(rng, seed, seeds, front)
    return seed[:2] + with_evil_fields(rng, seed[2:], places(seed))


@lru_cache(4096)
def places(seed: bytes) -> tuple[Place, ...]:
    """The places of a seed's fields."""
    (number,) = unpack_from(">H", seed)
    return places_of(messages()[number % len(messages())].message(), seed[2:])


# -- record sets and compression ------------------------------------------------------------------------------------


def record_seeds() -> tuple[bytes, ...]:
    """Batches and message sets as Kafka's clients of all times write them."""
    return tuple(row["wire"] for row in vectors())


def records(data: bytes) -> None:
    """A record set reads the same with and without positions, and what is wrong with it is a problem."""
    issues: list[Problem] = []
    batches = decode_record_set(data, 0, len(data), "full", issues)
    decode_record_set(data, 0, len(data), "headers", [])
    nodes, found = dissect_record_set(data, 0, len(data))
    assert plain_batches(nodes) == batches
    assert [one[:3] for one in found] == [one[:3] for one in issues], "the decoder and the dissector disagree"
    assert all(0 <= (issue.offset or 0) <= len(data) for issue in issues)
    ENCODE(batches)


def compression_seeds() -> tuple[bytes, ...]:
    """Text and zeros, in each codec that a batch can name."""
    contents = (b"the quick brown fox " * 40, bytes(5_000), b"")
    return tuple(pack(">H", number) + compress(number, content) for number in range(1, 5) for content in contents)


def compression(data: bytes) -> None:
    """Data decompress to no more than the limit, or there is a DecodeError."""
    (number,) = unpack_from(">H", data)
    try:
        assert len(decompress(number % 6, data[2:], LIMIT_BYTES)) <= LIMIT_BYTES
    except DecodeError as error:
        assert error.code


# -- captures, packets, connections ---------------------------------------------------------------------------------


@cache
def capture_seeds() -> tuple[bytes, ...]:
    """The first bytes of recordings of each format and link type."""
    names = ("first-look.pcap", "java-fetch.pcapng", "java-transactions.pcap", "librdkafka-group-consumer.pcapng")
    return tuple((CAPTURES / name).read_bytes()[:6_000] for name in names)


def capture(data: bytes) -> None:
    """Any file gives segments, counts and problems, or one CaptureError of one line."""
    try:
        captures = open_captures(["-"], stdin=io.BytesIO(data))
        segments = list(captures)
    except CaptureError as error:
        assert "\n" not in str(error)
        return
    for packet, timestamp_ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
        assert 0 < packet <= captures.packets and isinstance(timestamp_ns, int)
        assert len(flow) in (12, 36) and 0 <= seq < 1 << 32 and 0 <= ack < 1 << 32 and 0 <= flags < 256
        assert 0 <= start <= end <= len(buffer) and missing >= 0
    assert all(count >= 0 for count in captures.other_packets.values())
    # A fragment that waited in vain is counted as lost, and as nothing else.
    others = sum(captures.other_packets.values())
    assert len(segments) + others == captures.packets
    for event in analyze_with(Analyzer("errors"), segments):
        ENCODE(event_json(event, []))


@cache
def conversations() -> tuple[tuple[Segment, ...], ...]:
    """Connections of recordings, of at most forty segments."""
    found: dict[tuple[str, frozenset[bytes]], list[Segment]] = {}
    for path in sorted(CAPTURES.iterdir()):
        if path.suffix in (".pcap", ".pcapng"):
            for segment in open_captures([str(path)]):
                packet, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
                half = len(flow) // 2 - 2
                ends = frozenset((flow[:half] + flow[2 * half : 2 * half + 2], flow[half : 2 * half] + flow[-2:]))
                held = (packet, ns, flow, seq, ack, flags, buffer[start:end], 0, end - start, missing)
                found.setdefault((path.name, ends), []).append(held)
    return tuple(tuple(segments) for segments in found.values() if len(segments) <= 40)


def connection_seeds() -> tuple[bytes, ...]:
    """The number of a conversation, and what becomes of its segments: nothing."""
    return tuple(pack(">H", number) + bytes(2 * len(one)) for number, one in enumerate(conversations()))


def connection(data: bytes) -> None:
    """Segments that were lost, repeated, cut, moved and changed as the bytes say are read to their end.

    Everything that comes of them can be written in every form, nothing of it harms a terminal, and the two ways to
    write JSON agree.
    """
    (number,) = unpack_from(">H", data)
    segments = _damaged(conversations()[number % len(conversations())], data[2:])
    forms = io.BytesIO(), io.BytesIO()
    screen = io.StringIO()
    tree, summary = TreeWriter(screen, 80, False, 0), SummaryWriter(screen, 120, False)
    for out, encode in zip(forms, (None, ENCODE), strict=True):
        analyzer = Analyzer(Needs("records", text=encode))
        writer = WRITERS["jsonl"](out, [])
        for event in analyze_with(analyzer, segments):
            writer.write(event)
            if encode is None and isinstance(event, Exchange):
                topics = analyzer.topics
                tree.write(event, dissect_message(event, "request", topics), dissect_message(event, "response", topics))
                summary.write(event)
    assert forms[0].getvalue() == forms[1].getvalue(), "the two ways to write JSON disagree"
    harmful = UNSAFE.search(screen.getvalue())
    assert harmful is None, f"{harmful[0]!r} reaches the terminal" if harmful else ""
    analyzers = Analyzer(Needs(shown=True)), Analyzer()
    trees = [TreeWriter(io.StringIO(), 80, False, topic_name=analyzer.topics.name) for analyzer in analyzers]
    for event, other in zip(*(analyze_with(analyzer, segments) for analyzer in analyzers), strict=True):
        if isinstance(event, Exchange) and isinstance(other, Exchange):
            drawn = [_read(trees[0], event, which, analyzers[0]) for which in BOTH]
            nodes = [dissect_message(other, which, analyzers[1].topics) for which in BOTH]
            assert trees[0].text(event, *drawn) == trees[1].text(other, *nodes), "values and nodes draw different trees"
    for event in analyze_with(Analyzer(Needs("errors", topics=True)), segments):
        assert event is not None


def _read(tree: TreeWriter, exchange: Exchange, which: Direction, analyzer: Analyzer) -> Dissection | list[Row] | None:
    """What a tree shows of a message without ``-v``."""
    rows = tree.rows(exchange, which)
    return dissect_message(exchange, which, analyzer.topics, folded=True) if rows is None else rows


def _damaged(segments: tuple[Segment, ...], orders: bytes) -> list[Segment]:
    """Two bytes an order: which segment, and what becomes of it."""
    damaged = list(segments)
    for at in range(0, len(orders) - 1, 2):
        order, value = orders[at], orders[at + 1]
        if not order or not damaged:
            continue
        where = value % len(damaged)
        packet, ns, flow, seq, ack, flags, buffer, start, end, missing = damaged[where]
        kind = order % 9
        if kind == 0:
            del damaged[where]
        elif kind == 1:
            damaged.insert(where, damaged[where])
        elif kind == 2:
            damaged.append(damaged.pop(where))
        elif kind == 3:
            stop = start + (end - start) * (order >> 4) // 16
            damaged[where] = (packet, ns, flow, seq, ack, flags, buffer, start, stop, missing + end - stop)
        elif kind == 4:
            damaged[where] = (packet, ns, flow, seq + order & 0xFFFFFFFF, ack, flags, buffer, start, end, missing)
        elif kind == 5:
            damaged[where] = (packet, ns, flow, seq, ack, flags ^ (order >> 4), buffer, start, end, missing)
        elif kind == 6:
            ns -= order * 10**7
            damaged[where] = (packet, max(ns, 0), flow, seq, ack, flags, buffer, start, end, missing)
        elif end > start:
            changed = bytearray(buffer[start:end])
            place = (order * 7 + value) % len(changed)
            changed[place : place + 1] = bytes([value ^ order]) if kind == 7 else b"\xff\xff\xff\xff"
            damaged[where] = (packet, ns, flow, seq, ack, flags, bytes(changed), 0, len(changed), missing)
    return damaged


# -- what is inside and around --------------------------------------------------------------------------------------

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "")


def token_seeds() -> tuple[bytes, ...]:
    """A token of each mechanism, as RFC 4616, 5802, 7628 and 4121 have them."""
    tokens = (
        b"\0alice\0secret",
        b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjoxfQ.\x01\x01",
        bytes.fromhex("6082010006092a864886f71201020201006e8200f03081eda003020105a10302010e"),
        b"",
    )
    return tuple(pack(">H", number) + token for number, token in enumerate(tokens))


def token(data: bytes) -> None:
    """What is told of a token is text, numbers and truth values; a certificate's names are text."""
    (number,) = unpack_from(">H", data)
    told = read_token(_MECHANISMS[number % len(_MECHANISMS)], data[2:])
    json.dumps(told)
    assert all(isinstance(name, str) for name in certificate_names(data[2:]))


def analysis_seeds() -> tuple[bytes, ...]:
    """An exchange of each API, oldest and newest: its number, the length of the request's body, and the bodies."""
    rng = Random("analyses")
    return tuple(
        pack(">HH", number, len(asked)) + asked + body(api_key, version, "response", rng)
        for number, (api_key, version) in enumerate(_exchanges())
        for asked in [body(api_key, version, "request", rng)]
    )


@cache
def _exchanges() -> tuple[tuple[int, int], ...]:
    ranges = [(api.key, schema.version_range(api.key)) for api in schema.apis()]
    return tuple((api_key, version) for api_key, versions in ranges for version in sorted(set(versions)))


def analysis(data: bytes) -> None:
    """Every collecting command takes an exchange of any bytes, and tells texts as texts that harm no terminal."""
    number, size = unpack_from(">HH", data.ljust(4, b"\0"))
    api_key, version = _exchanges()[number % len(_exchanges())]
    wire = known_wire()
    asked, answered = exchange_frames(api_key, version, 7, data[4 : 4 + size], data[4 + size :])
    wire.up(asked).down(answered)
    for digests in (True, False):
        said = text_of_analyses(wire.segments, digests=digests)
        wrong = UNSAFE_JSON.search(said) or WRITTEN_BY_PYTHON.search(said)
        assert wrong is None, f"{wrong[0]!r} is told" if wrong else ""


@cache
def frame_seeds() -> tuple[bytes, ...]:
    """Whole requests, header included."""
    client = pack(">h", 3) + b"c-1"
    return tuple(
        pack(">hhi", entry.api_key, entry.version, 7) + client + (b"\0" if entry.header_version == 2 else b"") + one.raw
        for entry in messages()
        if entry.kind == "request"
        for one in entry.vectors[:1]
    )


def frame(data: bytes) -> None:
    """A single message that somebody pastes is decoded, or refused with one of our errors."""
    try:
        exchange = decode_message(data, "request", None, None)
    except (DecodeError, SchemaError):
        return
    ENCODE(event_json(exchange, []))


TARGETS = {
    target.name: target
    for target in (
        Target("message", message_seeds, message, front=2, share=8, change=change_message),
        Target("records", record_seeds, records, share=3),
        Target("compression", compression_seeds, compression, front=2, share=3),
        Target("capture", capture_seeds, capture),
        Target("connection", connection_seeds, connection, front=2),
        Target("token", token_seeds, token, front=2, share=3),
        Target("analysis", analysis_seeds, analysis, front=2),
        Target("frame", frame_seeds, frame, share=3),
        Target("index", index_seeds, kept_index, front=1, change=change_index),
    )
}
