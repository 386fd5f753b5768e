"""An exchange read again from its packets is the exchange that a reading of the whole capture gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kwiresniff.capture import open_captures, with_decryption
from kwiresniff.export.encode import json_text
from kwiresniff.export.json_objects import exchange_json
from kwiresniff.model import Exchange
from tests.support.capture_files import save
from tests.support.conversation import Wire, heartbeat, heartbeat_response
from tests.support.events import analyze
from tests.support.indexed import indexed
from tests.support.paths import CAPTURES
from tests.support.sample import one_in, slow_if

#: Old and new clients, pcapng, SASL, transactions, errors; the others are for who has the time.
QUICK = {
    "java-fetch.pcapng", "old-java-0.8-produce.pcap", "java-sasl-scram-512.pcap", "java-transactions.pcap",
    "kafkajs.pcap", "zstd-old-reader.pcap.xz",
}  # fmt: skip
RECORDINGS = sorted(path for path in CAPTURES.rglob("*.pcap*") if path.parent.name not in ("expected", "keys"))
#: Those that are slow, beside the quick ones.
OTHERS = one_in(2, (path for path in RECORDINGS if path.name not in QUICK))
#: Exchanges compared of a long recording.
COMPARED = 40


def as_json(exchange: Exchange) -> Any:
    """All that output tells of an exchange."""
    return orjson.loads(json_text(exchange_json(exchange)))


def frames_of(exchange: Exchange) -> list[object]:
    """What trees are made of: frames, where bodies begin in them, the versions that they are read as."""
    messages = [one for one in (exchange.request, exchange.response) if one is not None]
    return [(one.frame, one.body_offset, one.header_version, one.version) for one in messages]


def exchanges_of(path: Path) -> list[Exchange]:
    """What reading the whole capture gives."""
    found = analyze(iter(open_captures([str(path)])))
    return [event for event in found if isinstance(event, Exchange)]


@pytest.mark.parametrize(
    "path", slow_if([path for path in RECORDINGS if path.name in QUICK] + OTHERS, *OTHERS), ids=lambda path: path.name
)
def test_an_exchange_read_again_equals_that_of_the_whole_reading(path: Path) -> None:
    """In every member of its JSON: times, parts of the wait, bodies, errors, problems, packets."""
    wanted = exchanges_of(path)
    index, reader = indexed(path)
    assert len(index) == len(wanted)
    for row in range(0, len(wanted), max(len(wanted) // COMPARED, 1)):
        found = reader.exchange(row)
        assert found is not None
        assert as_json(found) == as_json(wanted[row])
        assert frames_of(found) == frames_of(wanted[row])


def test_most_exchanges_are_decoded_from_their_packets_alone() -> None:
    """A recording without losses needs no second reading for any of them."""
    index, reader = indexed(CAPTURES / "java-produce.pcap")
    assert all(reader.from_packets(row) is not None for row in range(len(index)))


def test_a_frame_whose_segments_came_out_of_order_is_read_with_the_capture_before_it(tmp_path: Path) -> None:
    """Packets alone do not tell what a receiver made of them."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    whole = heartbeat(2)
    wire.up(whole[:9]).up(whole[9:]).down(heartbeat_response(2)).close()
    segments = wire.segments
    first = next(at for at, one in enumerate(segments) if one[6][one[7] : one[8]] == whole[:9])
    segments[first], segments[first + 1] = segments[first + 1], segments[first]
    path = Path(save(tmp_path / "swapped.pcap", wire))
    index, reader = indexed(path)
    assert len(index) == 2
    assert reader.from_packets(1) is None
    found = reader.exchange(1)
    assert found is not None
    assert as_json(found) == as_json(exchanges_of(path)[1])


def test_an_exchange_of_a_file_that_has_changed_is_not_found(tmp_path: Path) -> None:
    """Rather than something else that lies in its place now."""
    path = Path(save(tmp_path / "one.pcap", Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close()))
    _, reader = indexed(path)
    save(path, Wire().open().up(heartbeat(7)).down(heartbeat_response(7)).close())
    assert reader.exchange(0) is None


@pytest.mark.slow
def test_an_exchange_inside_tls_is_read_with_the_keys_from_the_whole_capture() -> None:
    """Its packets alone do not hold it."""
    path, keylog = CAPTURES / "java-tls.pcap", str(CAPTURES / "keys" / "java-tls.log")
    whole = with_decryption(open_captures([str(path)]), keylog)
    found = analyze(iter(whole), tls_secrets=whole.tls_secrets)
    wanted = [event for event in found if isinstance(event, Exchange)]
    index, reader = indexed(path, keylog)
    assert len(index) == len(wanted) > 0
    for row in (0, len(wanted) // 2):
        assert reader.from_packets(row) is None
        again = reader.exchange(row)
        assert again is not None
        assert as_json(again) == as_json(wanted[row])
