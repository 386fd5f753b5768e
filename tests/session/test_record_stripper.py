"""A response kept without its record sets says the same about errors and topics as the whole of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.codec import scanner, stripping_plan
from kwiresniff.export.json_objects import event_json
from kwiresniff.model import Segment
from kwiresniff.session import Analyzer, record_stripper
from kwiresniff.session.checkpoint import StateError, dump
from kwiresniff.session.record_stripper import RecordStripper
from kwiresniff.stream import frame_reader
from tests.support.conversation import Wire, events, exchanges, known_wire, request, response
from tests.support.events import analyze_with
from tests.support.kafka_vectors import entries
from tests.support.sample import sampled, slow_if

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
ERRORS = frozenset({"error_code"})
TOPICS = frozenset({"error_code", "topicName", "topic_id"})
FETCH = 1

Message = tuple[int, int, bytes]


def with_records() -> list[Message]:
    """Kafka's own bytes of every response that has record sets, at every version."""
    return [
        (entry.api_key, entry.version, vector.raw)
        for entry in entries()
        if entry.kind == "response" and stripping_plan(entry.api_key, entry.version)
        for vector in entry.vectors
    ]


MESSAGES = with_records()


@pytest.fixture(autouse=True)
def _every_record_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's examples are small: in these tests the smallest record set is passed over."""
    monkeypatch.setattr(record_stripper, "MIN_PASSED_BYTES", 1)


def sifted(api_key: int, version: int, data: bytes, cuts: Sequence[int], gap: bool = False) -> bytes:
    """What is kept of ``data`` that comes in pieces, cut at ``cuts``; with ``gap`` the last piece is lost."""
    steps = stripping_plan(api_key, version)
    assert steps is not None
    head = b"\x00\x00\x00\x07"
    one: RecordStripper | None = RecordStripper(steps, len(head))
    data, size = head + data, len(head) + len(data)
    kept, passing, at = one.parts, 0, 0  # type: ignore[union-attr]
    edges = sorted({0, *(cut + len(head) for cut in cuts), size})
    for start, end in pairwise(edges[:-1] if gap else edges):
        if one is None:
            kept.append(data[start:end])
        elif passing >= end - start:
            passing -= end - start
        else:
            at = start + passing
            passing = one.feed(b"??" + data[:end], at + 2, end + 2, size - at)
            if one.plain:
                assert not passing
                one = None
    if one is not None and gap:
        one.broken(passing > 0)
    elif one is not None:
        assert not passing
        one.finish()
    return b"".join(kept)[len(head) :]


def scanned(api_key: int, version: int, data: bytes, wanted: frozenset[str]) -> list[tuple[str, Any]] | None:
    reader, errors = scanner(api_key, version, "response", wanted), [("left over", 1)]
    return [*reader.found, *errors] if reader.scan(data, 0, 0, errors) else None


def same(api_key: int, version: int, data: bytes, kept: bytes) -> bool:
    return all(
        scanned(api_key, version, data, wanted) == scanned(api_key, version, kept, wanted)
        for wanted in (ERRORS, TOPICS)
    )


def pieces(size: int, rng: random.Random) -> Iterator[Sequence[int]]:
    """Whole, byte by byte, in two at every place of the first and at some of the rest, and by chance."""
    yield ()
    if size < 2000:
        yield range(size)
    for cut in (*range(1, min(size, 120)), *(rng.randrange(size) for _ in range(min(size, 40)))):
        yield (cut,)
    for _ in range(6):
        yield [rng.randrange(size) for _ in range(5)]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """With bytes that counts and lengths turn hostile by, cut or prolonged."""
    broken = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(broken)) if rng.random() < 0.5 else rng.randrange(min(len(broken), 100))
        broken[at] = rng.choice((0, 1, 2, 0x10, 0x7F, 0x80, 0xFE, 0xFF))
    fate = rng.random()
    if fate < 0.2:
        return bytes(broken[: rng.randrange(1, len(broken) + 1)])
    return bytes(broken) + (rng.randbytes(rng.choice((1, 4, 300))) if fate < 0.4 else b"")


def test_every_version_with_record_sets_is_sifted() -> None:
    """Fetch, FetchSnapshot and ShareFetch, as far as Kafka's own classes give examples."""
    names = {(schema.API_NAMES[api_key], version) for api_key, version, _ in MESSAGES}
    assert {name for name, _ in names} == {"Fetch", "FetchSnapshot", "ShareFetch"}
    assert {version for name, version in names if name == "Fetch"} >= set(range(18))
    assert stripping_plan(3, 9) is None


@pytest.mark.parametrize("api_key", slow_if(sorted({api_key for api_key, _, _ in MESSAGES}), 1))
def test_cut_anywhere_it_says_the_same(api_key: int) -> None:
    rng = random.Random(api_key)
    shorter = 0
    for _, version, data in (message for message in MESSAGES if message[0] == api_key):
        for cuts in pieces(len(data), rng):
            kept = sifted(api_key, version, data, cuts)
            assert same(api_key, version, data, kept), (version, cuts)
            shorter += len(kept) < len(data)
    assert shorter > 500


@pytest.mark.parametrize("seed", sampled(range(6), first=2))
def test_hostile_lengths_and_counts_say_the_same(seed: int) -> None:
    rng = random.Random(seed)
    for api_key, version, data in MESSAGES:
        for _ in range(8):
            broken = damaged(data, rng)
            cuts = [rng.randrange(len(broken)) for _ in range(rng.choice((1, 3, 40)))]
            kept = sifted(api_key, version, broken, cuts)
            assert same(api_key, version, broken, kept), (version, broken, cuts)


@pytest.mark.parametrize("seed", sampled(range(4), first=1))
def test_the_front_of_a_response_with_a_gap_says_the_same(seed: int) -> None:
    """The gap is anywhere: in a length, in a record set, exactly behind one, in bytes that follow the last field."""
    rng = random.Random(seed)
    for api_key, version, data in MESSAGES:
        for _ in range(12):
            whole = data + rng.randbytes(20) if rng.random() < 0.3 else damaged(data, rng)
            gap = rng.randrange(len(whole)) if rng.random() < 0.7 else max(len(whole) - 20, 0)
            cuts = sorted({rng.randrange(gap + 1) for _ in range(3)} | {gap})
            kept = sifted(api_key, version, whole, cuts, gap=True)
            assert same(api_key, version, whole[:gap], kept), (version, whole, cuts)


def test_much_beside_the_records_is_kept_whole_from_there_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit may be reached inside a length and where a record set begins."""
    for limit in range(0, 120, 3):
        monkeypatch.setattr(record_stripper, "MAX_STRIPPED_BYTES", limit)
        for api_key, version, data in MESSAGES[limit % 5 :: 5]:
            for step in (1, 7, 64):
                if len(data) < 50 * step:
                    kept = sifted(api_key, version, data, range(0, len(data), step))
                    assert same(api_key, version, data, kept), (version, limit, step)


# -- on the way through the analyzer ------------------------------------------------------------------------------


def fetch_v4(records: bytes, error_code: int = 0, topic: bytes = b"orders") -> bytes:
    partition = pack(">ihqqi", 0, error_code, 9, 9, 0) + pack(">i", len(records)) + records
    return pack(">ii", 0, 1) + pack(">h", len(topic)) + topic + pack(">i", 1) + partition


def conversation(answer: bytes, step: int, *, lost: int = -1) -> Wire:
    """A Fetch v4 answered in segments of ``step`` bytes; segment number ``lost`` is not in the capture."""
    wire = known_wire()
    wire.up(request(FETCH, 4, 2, bytes(25)))
    data = response(2, answer)
    for number, at in enumerate(range(0, len(data), step)):
        wire.send(1, data[at : at + step], drop=number == lost)
    wire.up(request(FETCH, 4, 3, bytes(25)))
    return wire.down(response(3, fetch_v4(b""))).close()


def event_texts(wire: Wire, *, is_filtered: bool, topics: bool = False) -> list[str]:
    analyzer = Analyzer(Needs("errors", topics=topics))
    assert analyzer.filters
    analyzer.filters = is_filtered
    found = list(analyze_with(analyzer, wire.segments))
    return [json.dumps(event_json(event), default=repr) + repr(getattr(event, "topics", "")) for event in found]


@pytest.mark.parametrize("step", [16, 100, 1460, 5000])
@pytest.mark.parametrize("code", [0, 3])
def test_the_error_of_a_large_answer_is_found(step: int, code: int) -> None:
    wire = conversation(fetch_v4(bytes(20_000), code), step)
    _, fetch, _ = exchanges(events(wire, depth="errors", topics=True))
    assert fetch.outcome == ("error" if code else "ok")
    assert [error[1] for error in fetch.errors] == [code] * bool(code)
    assert fetch.topics == ("orders",)
    assert fetch.response is not None
    assert fetch.response.size_bytes == len(fetch_v4(bytes(20_000))) + 4
    assert len(fetch.response.frame or b"") < 200


@pytest.mark.parametrize("case", sampled([(3, True), (1460, True), (3, False), (1460, False)], 3, 1), ids=str)
def test_a_lost_segment_tells_the_same_with_and_without_sifting(case: tuple[int, bool]) -> None:
    """In segments of three bytes and in those of Ethernet, where topics are named and where they are not."""
    step, topics = case
    size = 4 + 4 + len(fetch_v4(bytes(6000)))
    for lost in (*range(min(size // step, 30)), size // step - 1, size // step):
        wire = conversation(fetch_v4(bytes(6000), 6), step, lost=lost)
        assert event_texts(wire, is_filtered=True, topics=topics) == event_texts(
            wire, is_filtered=False, topics=topics
        ), lost


def test_of_recorded_batches_hardly_more_than_the_headers_stays() -> None:
    """Answers of up to 200,072 bytes from a real broker."""
    analyzer = Analyzer(Needs("errors", topics=True))
    found = list(analyze_with(analyzer, open_captures([str(CAPTURES / "seed-batched.pcap.xz")])))
    large = [one.response for one in exchanges(found) if one.response is not None and one.response.size_bytes > 50_000]
    assert len(large) == 2
    assert max(len(message.frame or b"") for message in large) < 400


def recut(segments: Sequence[Segment], size: int, drop: float, rng: random.Random) -> list[Segment]:
    """``segments`` cut into segments of at most ``size`` bytes, of which a part ``drop`` is lost."""
    found: list[Segment] = []
    for packet, ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
        if start == end or missing:
            found.append((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
            continue
        for at in range(start, end, size):
            if rng.random() >= drop:
                stop = min(at + size, end)
                part = seq + at - start & 0xFFFFFFFF
                found.append((packet, ns, flow, part, ack, flags, buffer, at, stop, 0))
    return found


@pytest.mark.parametrize("name", ["java-fetch.pcapng", "java-share-group.pcap", "old-java-0.10-group.pcap"])
@pytest.mark.parametrize("drop", [0.0, 0.02])
def test_recordings_cut_anew_tell_the_same(monkeypatch: pytest.MonkeyPatch, name: str, drop: float) -> None:
    monkeypatch.setattr(frame_reader, "MIN_FILTERED_BYTES", 64)
    segments = list(open_captures([str(CAPTURES / name)]))
    for seed, size in enumerate((7, 60, 500)):
        wire = Wire()
        wire.segments = recut(segments, size, drop, random.Random(seed))
        assert event_texts(wire, is_filtered=True, topics=True) == event_texts(wire, is_filtered=False, topics=True), (
            size
        )


def test_the_state_of_such_an_analyzer_is_not_written() -> None:
    """What was passed over is gone; ``pipeline watch``, which keeps states, decodes everything."""
    with pytest.raises(StateError, match="error codes or topic names"):
        dump(Analyzer("errors"))
    assert dump(Analyzer("records"))
    assert dump(Analyzer("headers"))
