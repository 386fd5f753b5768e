"""Captures of one connection from both ends."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.pipeline.ends import MAX_SKEW_NS, Sighting, is_same, left_out, sightings
from kwiresniff.pipeline.plan import Unit, find_sources
from kwiresniff.pipeline.reading import Settings, table_rows
from tests.pipeline.exported import CAPTURES, packets

CAPTURE = CAPTURES / "java-group-classic.pcap"


def seen(path: Path) -> list[Sighting]:
    return list(sightings(open_captures([str(path)])))


def shifted(path: Path, target: Path, shift_us: int, *, skip: int = 0) -> Path:
    """The capture by a clock that is ``shift_us`` ahead, from the packet ``skip`` on."""
    header, *rest = packets(path.read_bytes())
    unit = 1000 if header[:4] == b"\x4d\x3c\xb2\xa1" else 1
    per_second = 1_000_000 * unit
    parts = [header]
    for packet in rest[skip:]:
        seconds, fraction = struct.unpack_from("<II", packet)
        moment = seconds * per_second + fraction + shift_us * unit
        parts.append(struct.pack("<II", *divmod(moment, per_second)) + packet[8:])
    target.write_bytes(b"".join(parts))
    return target


def test_each_connection_is_sighted_once() -> None:
    """As many as the analyzer tells, with the handshakes' numbers."""
    (source,) = find_sources([str(CAPTURE)])
    connections = list(table_rows("connections", Unit(source), Settings()))
    found = seen(CAPTURE)
    assert len(found) == len(connections)
    assert all(-1 not in one.initial and one.answered_ns > 0 for one in found)


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
    """The same ports at another time, with other numbers, or between other hosts."""
    one = seen(CAPTURE)[0]
    other = {
        "later": replace(one, first_ns=one.last_ns + MAX_SKEW_NS + 1, last_ns=one.last_ns + MAX_SKEW_NS + 2),
        "initial": replace(one, initial=(one.initial[0], one.initial[1] ^ 1)),
        "address": replace(one, flow="00" * 12),
    }[change]
    assert left_out({"a": [one], "b": [other]}) == {}
    assert left_out({"a": [one], "b": [one]}) != {}
    assert left_out({"a": [one, one]}) == {}


def test_ranges_decide_where_a_beginning_is_missing() -> None:
    """They wrap around; beside each other they do not overlap."""
    one = Sighting("00" * 12, 0, 10, (-1, -1), (2**32 - 50, 1000), (100, 100), (100, 100), -1)
    assert is_same(one, replace(one, first=(40, 1100)))
    assert not is_same(one, replace(one, first=(51, 1100)))
    assert not is_same(one, replace(one, first=(40, 1101)))
    assert not is_same(replace(one, length=(2**29, 100)), one)


def test_the_end_nearer_to_the_broker_tells() -> None:
    """There the answer to the SYN came sooner."""
    near, far = (replace(one, answered_ns=ns) for one, ns in zip(seen(CAPTURE)[:1] * 2, (5_000, 900_000), strict=True))
    (lines,) = left_out({"a": [far], "b": [near]}).items()
    assert lines[0] == "a" and lines[1][0].kept == "b"


def test_a_port_used_again_is_another_connection(tmp_path: Path) -> None:
    """In one source, when another SYN comes."""
    later = shifted(CAPTURE, tmp_path / "later.pcap", 3_600_000_000)
    segments = list(open_captures([str(CAPTURE)])) + [
        (packet, ns, flow, (seq + 77) & 0xFFFFFFFF, *rest)
        for packet, ns, flow, seq, *rest in open_captures([str(later)])
    ]
    assert len(list(sightings(segments))) == 2 * len(seen(CAPTURE))
