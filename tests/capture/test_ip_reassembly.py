"""Reassembly of fragments: any order, duplicates, contradictions, floods."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from kwiresniff.capture import ip_reassembly
from kwiresniff.capture.ip_reassembly import Fragments
from tests.support import packet_builder
from tests.support.tshark_view import read, seen

WHOLE = bytes(range(40))
PIECES = [(0, WHOLE[:16], False), (16, WHOLE[16:24], False), (24, WHOLE[24:32], False), (32, WHOLE[32:], True)]


def feed(
    pieces: Iterable[tuple[int, bytes, bool]], store: Fragments | None = None
) -> tuple[list[bytes | None], Fragments]:
    store = store or Fragments()
    return [store.add("key", 1, *piece) for piece in pieces], store


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_datagram_is_whole_in_every_order_of_its_fragments(order: tuple[int, ...]) -> None:
    """Only the last one to come completes it."""
    results, store = feed([PIECES[i] for i in order])
    assert results == [None, None, None, WHOLE]
    store.close()
    assert store.dropped == 0


def test_a_duplicate_changes_nothing() -> None:
    """The first fragment comes twice, at any place; after the datagram is whole it starts a new one."""
    for order in itertools.permutations([*range(4), 0]):
        results, _ = feed([PIECES[i] for i in order])
        assert results.count(WHOLE) == 1, order


@pytest.mark.parametrize(
    "evil",
    [
        (8, b"e" * 16, False),  # over the end of the first and into the second
        (0, b"e" * 24, False),  # over all of the first and the second
        (24, b"e" * 24, True),  # a later end than the true one
        (16, b"e" * 8, True),  # an earlier end
        (40, b"e" * 8, False),  # behind the end
    ],
)
def test_a_fragment_that_contradicts_the_others_discards_the_datagram(evil: Any) -> None:
    """Overlaps are how analyzers are deceived: neither version is believed."""
    results, store = feed([PIECES[0], PIECES[3], evil])
    assert results == [None, None, None]
    assert store.dropped == 3
    assert feed([PIECES[1], PIECES[2]], store)[0] == [None, None]


def test_a_fragment_that_is_all_there_already_is_ignored_even_when_it_lies() -> None:
    """The first version stands."""
    results, _ = feed([PIECES[0], (8, b"evil eve", False), *PIECES[1:]])
    assert results[-1] == WHOLE


def test_a_datagram_cannot_grow_beyond_what_ip_can_describe() -> None:
    """Offset and length together past 65535 is the ping of death."""
    results, store = feed([(65528, bytes(8), True), (8, b"", False)])
    assert results == [None, None] and store.dropped == 2


def test_old_datagrams_make_way_when_there_are_too_many() -> None:
    """Oldest out first, and what is given up is counted."""
    store = Fragments()
    for i in range(ip_reassembly.MAX_DATAGRAMS + 10):
        store.add(i, i, *PIECES[0])
    assert store.dropped == 10
    assert store.add(9, 9999, *PIECES[3]) is None  # its first fragment is gone
    rest = [store.add(ip_reassembly.MAX_DATAGRAMS, 9999, *piece) for piece in PIECES[1:]]
    assert rest == [None, None, WHOLE]


def test_bytes_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few large datagrams cost as much as many small ones."""
    monkeypatch.setattr(ip_reassembly, "MAX_BYTES", 3 * (1000 + ip_reassembly.FRAGMENT_OVERHEAD_BYTES))
    store = Fragments()
    for i in range(5):
        store.add(i, i, 0, bytes(1000), False)
    assert store.dropped == 2


def test_a_datagram_is_not_completed_after_a_long_time() -> None:
    """The identification has come round since; the old fragments belong to another datagram."""
    store = Fragments()
    store.add("key", 1, *PIECES[0])
    assert [store.add("key", 2 + ip_reassembly.MAX_AGE_PACKETS, *piece) for piece in PIECES[1:]] == [None] * 3
    assert store.dropped == 1


def ipv4_fragment(data: bytes, offset: int, more: bool, identification: int = 1) -> bytes:
    return packet_builder.ethernet(
        packet_builder.ipv4(data, identification=identification, fragment=offset // 8 | (0x2000 if more else 0))
    )


def test_lost_fragments_are_counted_at_the_end_of_the_file() -> None:
    """Every packet is counted once: as a fragment when it comes, as a lost one when its datagram is given up."""
    segment = packet_builder.tcp(bytes(100))
    packets = [ipv4_fragment(segment[:64], 0, True), ipv4_fragment(segment[:64], 0, True, identification=2)]
    packets.append(ipv4_fragment(segment[64:], 64, False))
    segments, captures = read(packet_builder.pcap(packets))
    assert [(s[0], seen(s).payload) for s in segments] == [(3, bytes(100))]
    assert captures.other_packets == {"ip_fragment": 1, "ip_fragment_lost": 1}


def test_a_fragment_cut_by_the_snap_length_is_no_fragment() -> None:
    """A datagram with a hole is never called whole."""
    segment = packet_builder.tcp(bytes(100))
    first, second = ipv4_fragment(segment[:64], 0, True), ipv4_fragment(segment[64:], 64, False)
    data = packet_builder.pcap([first[:-8], second], wire=len(first))
    segments, captures = read(data)
    assert segments == []
    assert captures.other_packets["ip_fragment_cut"] == 1


def test_different_datagrams_do_not_mix() -> None:
    """Same identification, different protocol or addresses."""
    segment = packet_builder.tcp(b"tcp" * 30)
    other = packet_builder.ethernet(packet_builder.ipv4(b"u" * 64, protocol=17, fragment=0x2000))
    packets = [other, ipv4_fragment(segment[:64], 0, True), ipv4_fragment(segment[64:], 64, False)]
    assert [seen(s).payload for s in read(packet_builder.pcap(packets))[0]] == [b"tcp" * 30]
