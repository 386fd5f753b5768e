"""Summaries of messages whose bodies nobody decoded say what those of decoded bodies say."""

from __future__ import annotations

import io
import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.model import Connection, Exchange, Message
from kwiresniff.render.digest_facts import digest_facts
from kwiresniff.render.info_column import facts
from kwiresniff.render.summary import SummaryWriter
from kwiresniff.session import Analyzer
from tests.support.encoding import encoder
from tests.support.events import analyze_with
from tests.support.exchanges import exchange
from tests.support.random_bodies import usual_body
from tests.support.record_vectors import vectors
from tests.support.sample import mostly_slow, sampled

CAPTURES = sorted(
    path for path in (Path(__file__).parents[2] / "captures").iterdir() if path.suffix in (".pcap", ".pcapng")
)
INTERNAL_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
#: The APIs whose digests are told.
APIS = {0: "Produce", 1: "Fetch"}


@pytest.mark.parametrize("capture", mostly_slow(CAPTURES, 3), ids=lambda path: path.name)
def test_captures_are_summed_up_the_same_with_and_without_bodies(capture: Path) -> None:
    """Every line of every recording, in a pipe and in a terminal, with colours and without."""
    quick, careful = Analyzer(Needs("bodies", digests=True)), Analyzer("bodies")
    ways = list(product((None, 160), (False, True)))
    writers, others = (
        [SummaryWriter(io.StringIO(), width, color, topic_name=one.topics.name) for width, color in ways]
        for one in (quick, careful)
    )
    events = analyze_with(careful, iter(open_captures([str(capture)])))
    for event, other in zip(analyze_with(quick, iter(open_captures([str(capture)]))), events, strict=True):
        if isinstance(event, Exchange) and isinstance(other, Exchange):
            for way, quick_writer, careful_writer in zip(ways, writers, others, strict=True):
                assert quick_writer.text(event) == careful_writer.text(other), way
            assert (event.outcome, event.errors, event.problems) == (other.outcome, other.errors, other.problems)


def test_random_messages_are_about_what_their_bodies_are_about() -> None:
    """All versions, whole and cut at every sixteenth of their bytes; a digest or none."""
    reader = codec.digest_reader(INTERNAL_ID.__eq__)
    assert reader is not None
    rng = random.Random("digests")
    told = 0
    for api_key, api in APIS.items():
        for version in range(schema.version_range(api_key)[0], schema.version_range(api_key)[1] + 1):
            for _ in range(12):
                exchange = Exchange(Connection(1, "a:1", "b:2"), api_key, version, 1, None, None, None)
                digested = Exchange(Connection(1, "a:1", "b:2"), api_key, version, 1, None, None, None)
                exchange.api = digested.api = api
                for which in ("request", "response"):
                    definition = schema.message(api_key, version, which)
                    encode = encoder(api_key, version, which)
                    frame = encode(usual_body(definition, rng))
                    steps = reader.steps(api_key, version, which)
                    assert steps is not None
                    body, end = codec.decoder(api_key, version, which, "headers")(frame, 0, [])
                    assert end == len(frame)
                    for one in (exchange, digested):
                        setattr(one, which, Message(1, 0, 1, 0, len(frame), frame))
                    getattr(exchange, which).body = body
                    getattr(digested, which).digest = digest = reader.digest(steps, frame, 0)
                    assert (reader.digest(steps, frame + b"\0", 0) is None) == (digest is None)
                    assert digest is None or reader.pos == len(frame)
                    for cut in range(0, len(frame), max(1, len(frame) // 16)):
                        assert reader.digest(steps, frame[:cut], 0) is None
                assert digested.request is not None and digested.response is not None
                if digest_facts(digested) is not None:
                    told += 1
                    assert facts(digested) == facts(exchange)
    assert told > 150


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_records_are_counted_as_the_decoder_counts_them(row: dict[str, Any]) -> None:
    """One batch, several, and one that is cut short; message sets are the decoder's."""
    reader = codec.digest_reader(INTERNAL_ID.__eq__)
    assert reader is not None
    for wire in (row["wire"], row["wire"] * 3, row["wire"] + row["wire"][:-1], row["wire"] + row["wire"][:5]):
        partition: dict[str, Any] = {
            "partition_index": 3, "error_code": 0, "high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0,
            "aborted_transactions": None, "preferred_read_replica": -1, "records": [],
        }  # fmt: skip
        body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 1,
                "responses": [{"topic": "orders", "partitions": [partition]}]}  # fmt: skip
        frame = encoder(1, 11, "response")(body)[:-4] + len(wire).to_bytes(4, "big") + wire
        steps = reader.steps(1, 11, "response")
        assert steps is not None
        issues: list[Any] = []
        decoded, _ = codec.decoder(1, 11, "response", "headers")(frame, 0, issues)
        digest = reader.digest(steps, frame, 0)
        if issues or wire[16] != 2:
            assert digest is None
            continue
        assert digest is not None
        exchanges = [Exchange(Connection(1, "a:1", "b:2"), 1, 11, 1, None, None, None) for _ in range(2)]
        for one in exchanges:
            one.api = "Fetch"
            one.request = Message(1, 0, 1, 0, 0, None)
            one.response = Message(1, 0, 1, 0, len(frame), frame)
        exchanges[0].response.body = decoded  # type: ignore[union-attr]
        exchanges[1].response.digest = digest  # type: ignore[union-attr]
        exchanges[1].request.digest = type(digest)()  # type: ignore[union-attr]
        assert facts(exchanges[1]) == facts(exchanges[0])


def test_a_topic_whose_name_comes_late_goes_by_its_name_with_and_without_bodies() -> None:
    """An exchange that was complete before the name was known is written when it is."""
    frame = encoder(PRODUCE, 13, "request")(
        {"transactional_id": None, "acks": 1, "timeout_ms": 5, "topic_data": [
            {"topic_id": "ABEiM0RVZneImaq7zN3u_w", "partition_data": [{"index": 4, "records": []}]}]}
    )  # fmt: skip
    reader = codec.digest_reader(INTERNAL_ID.__eq__)
    assert reader is not None
    steps = reader.steps(PRODUCE, 13, "request")
    assert steps is not None
    asked = exchange(api="Produce", api_key=PRODUCE, api_version=13)
    assert asked.request is not None
    asked.response = None
    asked.request.digest = reader.digest(steps, frame, 0)
    assert asked.request.digest is not None
    assert facts(asked, {"ABEiM0RVZneImaq7zN3u_w": "clicks"}.get)[0] == "clicks-4"
    assert facts(asked, lambda topic_id: None)[0] == "ABEiM0RVZneImaq7zN3u_w-4"
