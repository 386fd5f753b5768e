"""Recorded captures, damaged in every way networks and capture points damage them.

Whatever is still whole is found and paired as in the undamaged capture, except within one frame of the damage; nothing
is invented; and every captured byte is part of a message, skipped, or left unfinished, and said to be so.

``--exhaustive`` damages every place instead of a sample of them, ``--more-captures DIR`` takes further captures. Of
the recordings of old brokers only the small ones are damaged unless DIR is captures/eras; but what the large ones have
taught is kept as places of its own.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from kwiresniff.base.flows import endpoints
from kwiresniff.capture import open_captures
from kwiresniff.model import ACK, SYN, Problem, Segment
from tests.support.comparison import Truth
from tests.support.damages import PLACED, SNAP_LENGTHS, dropped, snapped, thinned
from tests.support.events import analyze
from tests.support.sample import mostly_slow

CAPTURES = Path(__file__).parents[2] / "captures"
#: Recordings of old brokers up to this size are damaged, too: some 1,000 segments.
SMALL_BYTES = 14_000
#: Damage that the bytes alone do not tell how to mend: (recording of an old broker, damage, segment).
TELLING = (
    # Controllers of 0.8 reuse correlation ids. A request is lost; its response is not that to the next with its id.
    ("era-0.8-clients", "dropped", 3),
    ("era-0.8-clients", "dropped", 7),
    ("era-0.8-upgrade", "dropped", 12),
    ("era-0.8-upgrade", "dropped", 460),
    # The same with the request before the capture.
    ("era-0.8-cluster", "started", 12),
    # A broker that hung answers requests that are thousands of correlation ids older than all that is captured:
    # before one whose request is there, before one that is only near, and with nothing after them.
    ("era-0.10-failover", "started", 2748),
    ("era-0.10-failover", "started", 3594),
    ("era-1.1-failover", "started", 2427),
    ("era-1.1-failover", "started", 2751),
    # A client begins to count anew after SASL, so two requests with one id wait while a lost one is awaited.
    ("era-1.1-sasl", "dropped", 153),
    ("era-2.3-sasl", "dropped", 197),
    # One client sends nothing but correlation id 0; another counts anew, so that two requests with id 2 wait, and the
    # capture begins with an answer that reads like a Produce of no topics.
    ("era-0.8-cluster", "dropped", 591),
    ("era-0.8-cluster", "dropped", 611),
    ("era-0.8-cluster", "started", 614),
    # The inside of a Fetch response, sent in pieces of 12 and 18 bytes, reads like another with id 0.
    ("era-0.8-cluster", "dropped", 859),
    # The answer to a lost request comes while bare tokens are expected already.
    ("era-0.10-sasl", "dropped", 128),
)
#: Places damaged in a capture, for each kind of damage, when not all of them are.
SAMPLE = 40


def captures_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if ".pcap" in path.name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "capture" in metafunc.fixturenames:
        paths = captures_in(CAPTURES)
        paths += [path for path in captures_in(CAPTURES / "eras") if path.stat().st_size < SMALL_BYTES]
        more = metafunc.config.getoption("--more-captures")
        if more:
            paths += captures_in(Path(more))
        metafunc.parametrize("capture", paths, ids=[path.name for path in paths])


def places(segments: Sequence[Segment], config: pytest.Config) -> list[int]:
    """Where to damage: everywhere, or evenly over the capture, the first segments of which open connections."""
    count = len(segments)
    if count <= SAMPLE or config.getoption("--exhaustive"):
        return list(range(count))
    return sorted({*range(SAMPLE // 2), *(count * step // (SAMPLE // 2) for step in range(SAMPLE // 2))})


@pytest.mark.slow
def test_what_is_still_whole_in_a_damaged_capture_is_found_and_paired(
    capture: Path, pytestconfig: pytest.Config
) -> None:
    """Dropped, swapped, duplicated, cut and started at each place; snapped to each length."""
    segments = list(open_captures([str(capture)]))
    truth = Truth(segments)
    assert truth.differences(segments, tolerance=0) == []
    for name, damage in PLACED.items():
        for place in places(segments, pytestconfig):
            assert truth.differences(damage(segments, place)) == [], f"{name} at segment {place}"
    for length in SNAP_LENGTHS:
        assert truth.differences(snapped(segments, length)) == [], f"snapped to {length}"


@pytest.mark.parametrize("case", mostly_slow(TELLING, 3), ids=str)
def test_responses_answer_the_requests_that_they_can_have_seen(case: tuple[str, str, int]) -> None:
    """What acknowledgements, lengths and sizes of segments tell where correlation ids do not."""
    name, damage, place = case
    segments = list(open_captures([str(CAPTURES / "eras" / f"{name}.pcap.xz")]))
    assert Truth(segments).differences(PLACED[damage](segments, place)) == []


@pytest.mark.parametrize(("name", "seed"), [("share-4.1", 9), pytest.param("share-4.4", 4, marks=pytest.mark.slow)])
def test_a_capture_that_lost_a_third_of_its_packets_ends_and_adds_up(name: str, seed: int) -> None:
    """Short connections by the hundred, with handshakes, first bytes and ends lost in every combination.

    Holes so close together may hide a frame between them, but nothing is invented.
    """
    segments = list(open_captures([str(CAPTURES / "eras" / f"{name}.pcap.xz")]))
    found = Truth(segments).differences(thinned(segments, 0.3, random.Random(seed)))
    assert [line for line in found if not line.startswith("missed")] == []


def test_what_is_lost_before_a_connection_is_known_to_be_kafka_is_told_too() -> None:
    """The first segment of each client lost, of which nothing but its length on the wire is left to tell."""
    segments = list(open_captures([str(CAPTURES / "first-look.pcap")]))
    clients = {segment[2] for segment in segments if segment[5] & (SYN | ACK) == SYN}
    firsts: dict[bytes, int] = {}
    for at, (_, _, flow, _, _, _, _, start, end, _) in enumerate(segments):
        if flow in clients and start < end:
            firsts.setdefault(flow, at)
    assert len(firsts) == len(clients) == 7
    for at in firsts.values():
        told = [event for event in analyze(dropped(segments, at)) if isinstance(event, Problem)]
        assert [(one.code, (one.details or {})["direction"]) for one in told] == [("gap", "request")]
        assert (told[0].details or {})["missing_bytes"] == segments[at][8] - segments[at][7]


@pytest.mark.parametrize("name", ["java-tls", "kcat-tls"])
def test_gaps_of_a_direction_under_tls_are_told_together(name: str) -> None:
    """Of the data segments that were sent once and that another one follows, each third lost, the first hello among
    them; then every fifth."""
    segments = list(open_captures([str(CAPTURES / f"{name}.pcap")]))
    last = {segment[2]: at for at, segment in enumerate(segments)}
    sent = Counter(segment[2:4] for segment in segments if segment[7] < segment[8])
    once = [at for at, segment in enumerate(segments) if sent[segment[2:4]] == 1 and segment[7] < segment[8]]
    lost = [at for at in once if at < last[segments[at][2]]]
    for at in lost[::3]:
        assert_missing(segments, [at])
    assert_missing(segments, lost[::5])


def assert_missing(segments: Sequence[Segment], lost: Sequence[int]) -> None:
    """There is one gap for each flow that lost bytes, with their number."""
    gone: Counter[tuple[str, str]] = Counter()
    for at in lost:
        _, _, flow, _, _, _, _, start, end, _ = segments[at]
        gone[endpoints(flow)] += end - start
    told: dict[tuple[str, str], int] = {}
    left = [segment for at, segment in enumerate(segments) if at not in lost]
    for event in analyze(left, depth="headers"):
        if isinstance(event, Problem):
            details = event.details or {}
            ends = details["client"], details["broker"]
            way = ends if details["direction"] == "request" else ends[::-1]
            assert event.code == "gap" and way not in told
            told[way] = details["missing_bytes"]
    assert told == gone


def test_whole_messages_decode_the_same_to_the_last_record() -> None:
    """Damage leaves whole messages as they were, also where all bodies and records are decoded (one capture)."""
    segments = list(open_captures([str(CAPTURES / "first-look.pcap")]))
    truth = Truth(segments, "records")
    for name, damage in PLACED.items():
        for place in range(0, len(segments), 5):
            assert truth.differences(damage(segments, place)) == [], f"{name} at segment {place}"


# -- damage in files -------------------------------------------------------------------------------------------------

PCAP_HEADER_BYTES = 24
PCAP_RECORD = struct.Struct("<IIII")  # seconds, fraction, captured length, original length


def records_of(data: bytes) -> list[tuple[int, int, int]]:
    """(start, end, captured length) of each packet record of a little-endian pcap file."""
    found = []
    at = PCAP_HEADER_BYTES
    while at < len(data):
        captured = PCAP_RECORD.unpack_from(data, at)[2]
        found.append((at, at + 16 + captured, captured))
        at += 16 + captured
    return found


def renumbered(segments: Sequence[Segment], offset: int) -> list[Segment]:
    """Segments of a file that starts ``offset`` packets late, under the packet numbers of the whole file."""
    return [(segment[0] + offset, *segment[1:]) for segment in segments]


@pytest.mark.parametrize("name", ["first-look.pcap", "java-admin-groups.pcap"])
def test_files_cut_started_and_snapped_read_like_segments_damaged_so(name: str, tmp_path: Path) -> None:
    """The damage done to the file instead of its segments: in mid-packet, and by a real snap length."""
    data = (CAPTURES / name).read_bytes()
    truth = Truth(list(open_captures([str(CAPTURES / name)])))
    path = tmp_path / "damaged.pcap"
    records = records_of(data)
    for index in range(1, len(records), 7):
        start, end, _ = records[index]
        path.write_bytes(data[: (start + end) // 2])
        assert truth.differences(list(open_captures([str(path)]))) == [], f"cut in packet {index + 1}"
        path.write_bytes(data[:PCAP_HEADER_BYTES] + data[start:])
        assert truth.differences(renumbered(list(open_captures([str(path)])), index)) == [], f"from {index + 1}"
    for length in SNAP_LENGTHS:
        snap = bytearray(data[:PCAP_HEADER_BYTES])
        for start, _, captured in records:
            seconds, fraction, _, original = PCAP_RECORD.unpack_from(data, start)
            kept = min(captured, length)
            snap += PCAP_RECORD.pack(seconds, fraction, kept, original) + data[start + 16 : start + 16 + kept]
        path.write_bytes(snap)
        assert truth.differences(list(open_captures([str(path)]))) == [], f"snapped to {length}"
