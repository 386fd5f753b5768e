"""Captures of one connection from both ends."""

from __future__ import annotations

import gzip
import json
import lzma
import random
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.flows import reverse
from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from kwiresniff.pipeline.batch_run import assign_connections, keep_assignments
from kwiresniff.pipeline.batches import table_batches
from kwiresniff.pipeline.deduplication import MAX_CLOCK_NS, LeftOut, is_same, shared
from kwiresniff.pipeline.observed_connections import ObservedConnection, observed_connections
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.plan import WorkUnit, find_sources
from kwiresniff.pipeline.sequence_ranges import MAX_MARKS, MAX_PARTS, SequenceRanges, lacking
from kwiresniff.pipeline.unit_reader import Settings, UnitReader
from tests.support.exported import packets, shifted
from tests.support.paths import CAPTURES
from tests.support.sample import mostly_slow

CAPTURE = CAPTURES / "java-group-classic.pcap"


def seen(path: Path) -> list[ObservedConnection]:
    return list(observed_connections(open_captures([str(path)])))


def left_out(by_source: dict[str, list[ObservedConnection]]) -> dict[str, list[LeftOut]]:
    return shared(by_source)[0]


def test_each_connection_is_sighted_once() -> None:
    """There are as many as the analyzer reports, with the sequence numbers of their handshakes."""
    (source,) = find_sources([str(CAPTURE)])
    connections = [
        row for batch in table_batches("connections", WorkUnit(source), Settings()) for row in batch.to_pylist()
    ]
    found = seen(CAPTURE)
    assert len(found) == len(connections)
    assert all(-1 not in one.initial and one.answered_ns > one.syn_ns > 0 for one in found)


@pytest.mark.parametrize("skip", [0, 120])
def test_the_other_end_is_the_same_connection(tmp_path: Path, skip: int) -> None:
    """By a clock three seconds ahead, from its beginning or from the middle; the one with more bytes is kept."""
    other = shifted(CAPTURE, tmp_path / "other.pcap", 3_000_000, skip=skip)
    dropped = left_out({"a": seen(other), "b": seen(CAPTURE)})
    assert sum(map(len, dropped.values())) == len(seen(other))
    # Of those that both have whole, the first source's by name is kept.
    assert set(dropped) == ({"b"} if skip == 0 else {"a", "b"})


@pytest.mark.parametrize("change", ["later", "initial", "address"])
def test_what_only_looks_alike_stays_apart(change: str) -> None:
    """Equal ports are not enough: another time, other sequence numbers or other hosts keep connections apart."""
    one = seen(CAPTURE)[0]
    other = {
        "later": replace(one, first_ns=one.last_ns + MAX_CLOCK_NS + 1, last_ns=one.last_ns + MAX_CLOCK_NS + 2),
        "initial": replace(one, initial=(one.initial[0], one.initial[1] ^ 1)),
        "address": replace(one, flow="00" * 12),
    }[change]
    assert left_out({"a": [one], "b": [other]}) == {}
    assert left_out({"a": [one], "b": [one]}) != {}
    assert left_out({"a": [one, one]}) == {}


def test_ranges_decide_where_a_beginning_is_missing() -> None:
    """Ranges of sequence numbers wrap around; ranges that only touch do not overlap."""
    one = ObservedConnection(
        "00" * 12, 0, 10, (-1, -1), (2**32 - 50, 1000), (((0, 100),), ((0, 100),)), ((), ()), 200, -1, -1
    )
    assert is_same(one, replace(one, first=(40, 1100)))
    assert not is_same(one, replace(one, first=(51, 1100)))
    assert not is_same(one, replace(one, first=(40, 1101)))
    assert not is_same(replace(one, parts=(((0, 2**29),), ((0, 100),))), one)


def test_the_end_nearer_to_the_broker_tells() -> None:
    """There the answer to the SYN came sooner."""
    one = seen(CAPTURE)[0]
    near, far = (replace(one, answered_ns=one.syn_ns + ns) for ns in (5_000, 900_000))
    (lines,) = left_out({"a": [far], "b": [near]}).items()
    assert lines[0] == "a" and lines[1][0].kept == "b"


def test_a_port_used_again_is_another_connection(tmp_path: Path) -> None:
    """In one source, when another SYN comes."""
    later = shifted(CAPTURE, tmp_path / "later.pcap", 3_600_000_000)
    segments = list(open_captures([str(CAPTURE)])) + [
        (*segment[:3], (segment[3] + 77) & 0xFFFFFFFF, *segment[4:]) for segment in open_captures([str(later)])
    ]
    assert len(list(observed_connections(segments))) == 2 * len(seen(CAPTURE))


def exchanges_of(*paths: Path) -> list[Exchange]:
    """What the captures of several hosts tell together, the way to the tasks and their reading included."""
    sources = find_sources([str(path) for path in paths], "file")
    found: list[Exchange] = []
    for source in assign_connections(sources, {source.name: seen(Path(source.name)) for source in sources}):
        unit = from_plain(WorkUnit, json.loads(json.dumps(asdict(WorkUnit(source)))))
        assert unit == WorkUnit(source) and unit.fingerprint("") == WorkUnit(source).fingerprint("")
        found += [event for event in UnitReader(unit, Settings()).events() if isinstance(event, Exchange)]
    return found


def content(exchange: Exchange) -> tuple[Any, ...]:
    ends = (exchange.connection.client, exchange.connection.broker, exchange.correlation_id, exchange.outcome)
    return *ends, *(repr(message and message.body) for message in (exchange.request, exchange.response))


@pytest.mark.parametrize("shift_us", mostly_slow([-600_000_000, 5_000_000, 0]))
def test_two_ends_of_a_lossy_network_tell_all_there_is_once(tmp_path: Path, shift_us: int) -> None:
    """Recorded at both ends; each capture has lost one packet in 20 besides, never both the same; any clocks."""
    lossy = CAPTURES / "lossy"
    said = [json.loads(line) for line in gzip.decompress((lossy / "expected.jsonl.gz").read_bytes()).splitlines()]
    dice = random.Random(1)
    lots = [dice.randrange(20) for _ in range(2_000)]
    ends = []
    for name, shift, lost in (("broker", 0, 0), ("client", shift_us, 1)):
        count = len(packets(lzma.decompress((lossy / f"{name}.pcap.xz").read_bytes()))) - 1
        kept = [at for at in range(count) if lots[at] != lost]
        ends.append(shifted(lossy / f"{name}.pcap.xz", tmp_path / f"{name}.pcap", shift, only=kept))
    whole = {content(exchange) for exchange in exchanges_of(lossy / "broker.pcap.xz")}
    sides = [whole & {content(exchange) for exchange in exchanges_of(end)} for end in ends]
    found = exchanges_of(*ends)
    identities = Counter((one.connection.client, one.connection.broker, one.correlation_id) for one in found)
    assert identities == Counter((row["client"], row["broker"], row["correlation_id"]) for row in said)
    together = whole & set(map(content, found))
    assert together > sides[0] | sides[1] and len(together) >= len(whole) - 2
    assert max(map(len, sides)) < len(whole) - 10


@pytest.mark.parametrize("shift_us", [0, 3_000_000, -3_000_000])
def test_a_capture_that_began_later_goes_on_where_the_other_one_ends(tmp_path: Path, shift_us: int) -> None:
    """Of one connection that was there before: nothing but the bytes themselves tells how the clocks differ."""
    segments = list(open_captures([str(CAPTURE)]))
    flow = Counter(min(segment[2], reverse(segment[2])) for segment in segments).most_common(1)[0][0]
    of_it = [segment[0] - 1 for segment in segments if segment[2] in (flow, reverse(flow))]
    count = len(of_it)
    expected = list(map(content, exchanges_of(shifted(CAPTURE, tmp_path / "whole.pcap", 0, only=of_it))))
    early = shifted(CAPTURE, tmp_path / "early.pcap", 0, only=of_it[: count * 7 // 10])
    late = shifted(CAPTURE, tmp_path / "late.pcap", shift_us, only=of_it[count * 3 // 10 :])
    assert sorted(map(content, exchanges_of(early, late))) == sorted(expected)
    assert max(len(exchanges_of(early)), len(exchanges_of(late))) < len(expected)


def test_what_was_sent_twice_does_not_count_twice() -> None:
    """A capture full of retransmissions has not more of the connection for that."""
    segments = list(open_captures([str(CAPTURE)]))
    flow = next(segment[2] for segment in segments if segment[7] < segment[8])
    lost = next(at for at, segment in enumerate(segments) if segment[2] == flow and segment[7] < segment[8])
    twice = [segment for one in segments for segment in (one, one)]
    assert [one.size for one in observed_connections(twice)] == [one.size for one in seen(CAPTURE)]
    del twice[2 * lost : 2 * lost + 2]
    dropped = left_out({"a": list(observed_connections(twice)), "b": seen(CAPTURE)})
    assert [one.flow for one in dropped["a"]] == [min(flow, reverse(flow)).hex()]


@pytest.mark.parametrize("first", [0, 2**32 - 300])
def test_a_coverage_is_the_set_of_its_bytes(first: int) -> None:
    """In any order, with overlaps and holes, across the end of the sequence numbers; bounded all the same."""
    dice = random.Random(first)
    for holes in (20, 400):
        coverage, there = SequenceRanges(), set[int]()
        coverage.add(first, 0, 0)
        for _ in range(holes):
            start, size = dice.randrange(4_000), dice.randrange(8)
            coverage.add((first + start) & 0xFFFFFFFF, size, start)
            there.update(range(start, start + size))
        found = {place for start, end in coverage.parts for place in range(start, end)}
        if holes == 20:
            assert found == there and coverage.size == len(there)
        else:
            assert found >= there and 0 < coverage.size <= len(there)
        assert len(coverage.parts) <= MAX_PARTS and len(coverage.marks) <= MAX_MARKS
        assert all(low[1] < high[0] for low, high in zip(coverage.parts, coverage.parts[1:], strict=False))
        some = [(100, 900), (2_000, 2_300)]
        lacked = {place for start, end in lacking(coverage.parts, some) for place in range(start, end)}
        assert lacked == {place for start, end in some for place in range(start, end)} - found


def test_what_a_deleted_capture_told_is_not_told_again(tmp_path: Path) -> None:
    """Its rows are still there; and what another one took from it stays as it was taken."""
    short = shifted(CAPTURE, tmp_path / "short.pcap", 0, only=range(150))
    sources = find_sources([str(CAPTURE), str(short)], "file")
    full, part = assign_connections(sources, {source.name: seen(Path(source.name)) for source in sources})
    assert part.left_out and not part.filled
    assert keep_assignments([replace(part, left_out=())], [full, part]) == [part]
    assert keep_assignments([replace(part, left_out=())], [part]) == [replace(part, left_out=())]
    grown = replace(part, files=(*part.files, *part.files), left_out=())
    assert keep_assignments([grown], [full, part]) == [replace(grown, left_out=part.left_out)]
    late = shifted(CAPTURE, tmp_path / "late.pcap", 0, only=range(100, 260))
    sources = find_sources([str(late), str(short)], "file")
    some = assign_connections(sources, {source.name: seen(Path(source.name)) for source in sources})
    taking = next(source for source in some if source.filled)
    assert keep_assignments([replace(taking, filled=(), others=())], some) == [taking]
