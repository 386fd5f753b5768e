"""One exchange alone on a connection that was there before the capture, as packet brokers and samplers cut them out.

Nothing comes before it or after it, so the two messages have to speak for themselves. Those of librdkafka's mock
cluster have bytes left over behind them, or do not read at all.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import ACK, SYN
from tests.support.conversation import Wire, events, exchanges, problems
from tests.support.events import analyze
from tests.support.reference import Oracle

CAPTURES = Path(__file__).parents[2] / "captures"
(ROW,) = tomllib.loads((CAPTURES / "leftovers" / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]
LEFTOVERS = CAPTURES / "leftovers" / ROW["file"]
RECORDINGS = [
    LEFTOVERS,
    *(CAPTURES / name for name in (
        "first-look.pcap", "aiokafka.pcap", "kafka-python.pcap", "kafkajs.pcap", "sarama.pcap", "franz-go.pcap",
        "librdkafka.pcap", "old-kafka-python-0.9.pcap", "old-java-0.8-produce.pcap", "old-java-0.10-group.pcap",
    )),
]  # fmt: skip


def exchanged(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Request and response of each exchange, lengths included: by sequence numbers, lengths and correlation ids."""
    segments = list(open_captures([str(path)]))
    clients = {segment[2] for segment in segments if segment[5] & (SYN | ACK) == SYN}
    streams = Oracle(segments).streams
    for one, other in zip(streams[::2], streams[1::2], strict=True):
        asked, answered = (one, other) if one.flow in clients else (other, one)
        answers = {answered.data[start + 4 : start + 8].hex(): (start, end) for start, end in answered.frames}
        for start, end in asked.frames:
            place = answers.get(asked.data[start + 8 : start + 12].hex())
            if place is not None:
                yield bytes(asked.data[start:end]), bytes(answered.data[slice(*place)])


def test_the_recording_is_the_one_that_its_row_describes() -> None:
    """The recording holds as many requests as tshark counted in it."""
    assert hashlib.sha256(LEFTOVERS.read_bytes()).hexdigest() == ROW["sha256"]
    found = exchanges(list(analyze(open_captures([str(LEFTOVERS)]))))
    assert Counter(f"API {one.api_key} v{one.api_version}" for one in found) == ROW["requests"]
    assert all(one.request and one.response for one in found)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_an_exchange_alone_on_its_connection_is_found(path: Path) -> None:
    """Request and response, each in a packet of its own, without a handshake."""
    said = list(exchanged(path))
    assert len(said) > 5
    for ask, answer in said:
        found = exchanges(events(Wire().up(ask).down(answer)))
        assert [(x.api_key, x.api_version, x.correlation_id) for x in found] == [unpack_from(">hhi", ask, 4)]
        assert found[0].request and found[0].response
        assert (found[0].request.size_bytes, found[0].response.size_bytes) == (len(ask) - 4, len(answer) - 4)


@pytest.mark.parametrize("path", [LEFTOVERS, CAPTURES / "first-look.pcap"], ids=lambda path: path.name)
def test_a_request_alone_on_its_connection_is_found(path: Path) -> None:
    """A tap on one direction; when the capture ends it is unanswered."""
    for ask, _ in exchanged(path):
        (found,) = exchanges(events(Wire().up(ask)))
        assert (found.api_key, found.outcome) == (unpack_from(">h", ask, 4)[0], "unanswered")


def test_bytes_left_over_are_problems_of_their_exchange() -> None:
    """Four behind a request of old librdkafka, one or three behind Metadata; nothing else is wrong with these."""
    told: Counter[tuple[str, int, str, str]] = Counter()
    for ask, answer in exchanged(LEFTOVERS):
        found = events(Wire().up(ask).down(answer))
        assert problems(found) == []
        (exchange,) = exchanges(found)
        told.update((exchange.api, exchange.api_version, one.code, one.message[:7]) for one in exchange.problems)
    assert told["ApiVersions", 0, "trailing_bytes", "4 bytes"] == 1
    assert told["Metadata", 13, "trailing_bytes", "1 bytes"] == 3
