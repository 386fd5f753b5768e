"""Trees of decoded values are those of the annotated message."""

from __future__ import annotations

import io
import random
from struct import pack
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.base.tree_sizes import RANGES_SHOWN
from kwiresniff.codec.dissector import dissect
from kwiresniff.errors import DecodeError
from kwiresniff.model import Connection, Dissection, Exchange, Message, Problem
from kwiresniff.render.tree import TreeWriter
from kwiresniff.render.tree_row import Row
from tests.support.encoding import encode_record_set, encoder
from tests.support.random_bodies import drawable_body, random_body
from tests.support.record_vectors import vectors
from tests.support.sample import sampled

FETCH, CREATE_TOPICS, REASSIGN = 1, 19, 45
INTERNAL_ID, NAMED_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "ABEiM0RVZneImaq7zN3u_w"
#: Columns of the terminal, None for a pipe, and whether there are colours.
PLACES = [(None, False), (None, True), (80, True), (160, False)]


def topic_name(topic_id: str) -> str | None:
    return "orders" if topic_id == NAMED_ID else None


class Both:
    """Draws a body from values and from nodes for one place."""

    def __init__(self, width: int | None, color: bool) -> None:
        self._tree = TreeWriter(io.StringIO(), width, color, topic_name=topic_name)

    def rows(self, api_key: int, version: int, direction: Any, frame: bytes) -> list[Row] | None:
        """The rows of a message that is decoded to its last byte without a problem and drawn from values, or None."""
        issues: list[Problem] = []
        try:
            body, end = codec.decoder(api_key, version, direction, "shown")(frame, 0, issues)
        except DecodeError:
            return None
        exchange = exchange_of(api_key, version, frame)
        message = exchange.request if direction == "request" else exchange.response
        assert message is not None
        message.body, message.version = body, version
        return None if issues or end != len(frame) else self._tree.rows(exchange, direction)

    def written(self, api_key: int, version: int, direction: Any, frame: bytes) -> str | None:
        rows = self.rows(api_key, version, direction, frame)
        return None if rows is None else self._drawn(frame, rows)

    def dissected(self, api_key: int, version: int, direction: Any, frame: bytes) -> str:
        return self._drawn(frame, dissect(schema.message(api_key, version, direction), frame, 0, topic_name=topic_name))

    def _drawn(self, frame: bytes, read: Dissection | list[Row]) -> str:
        exchange = exchange_of(1, 0, frame)
        exchange.response = None
        return self._tree.text(exchange, read, None).decode().removeprefix("\n")


def exchange_of(api_key: int, version: int, frame: bytes) -> Exchange:
    """An exchange of which both messages are a body without a header."""
    messages = [Message(1, 0, 1, 0, len(frame), frame) for _ in range(2)]
    return Exchange(Connection(1, "10.0.0.1:1", "10.0.0.2:9092"), api_key, version, 1, None, *messages)


@pytest.fixture(params=PLACES, ids=lambda place: f"{place[0] or 'pipe'} {'colour' if place[1] else 'plain'}")
def both(request: pytest.FixtureRequest) -> Both:
    return Both(*request.param)


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_every_message_at_every_version_is_drawn_as_the_walker_reads_it(api: Any, direction: Any) -> None:
    """In a pipe and in terminals, with everything that a random body has."""
    boths = [Both(*place) for place in PLACES]
    first, last = getattr(api, f"{direction}_versions")
    codes = (0, 0, 3, -1, 9999) if direction == "response" else (0,)
    rng = random.Random(f"{api.name} {direction}")
    for version in range(first, last + 1):
        definition = schema.message(api.key, version, direction)
        encode = encoder(api.key, version, direction)
        which = (api.key, version, direction)
        for both in boths:
            frame = encode(drawable_body(definition, rng, lambda: rng.choice(codes)))
            assert both.written(*which, frame) == both.dissected(*which, frame)
            frame = encode(drawable_body(definition, rng, lambda: rng.choice(codes), True))
            written = both.written(*which, frame)
            body, _ = codec.decoder(*which)(frame, 0, [])
            assert written == both.dissected(*which, frame) or (written is None and UNKNOWN_TAGS in repr(body))
            frame = encode(random_body(definition, rng))
            assert both.written(*which, frame) in (None, both.dissected(*which, frame))
            assert both.rows(*which, frame + b"\0") is None
            for cut in range(0, len(frame), max(1, len(frame) // 8)):
                assert both.rows(*which, frame[:cut]) is None


def fetch_response(records: bytes, **changes: Any) -> bytes:
    partition = {"partition_index": 0, "error_code": 0, "high_watermark": 9, "last_stable_offset": 9,
                 "log_start_offset": 0, "aborted_transactions": None, "preferred_read_replica": -1,
                 "records": []} | changes  # fmt: skip
    topic = {"topic": changes.pop("topic", "orders"), "partitions": [partition]}
    body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 1, "responses": [topic]}
    frame: bytes = encoder(FETCH, 11, "response")(body)
    assert frame.endswith(bytes(4))
    return frame[:-4] + len(records).to_bytes(4, "big") + records


@pytest.mark.slow
@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize("row", vectors(), ids=lambda row: row["name"])
def test_records_of_kafkas_clients_are_drawn_as_the_walker_reads_them(row: dict[str, Any], both: Both) -> None:
    """One set, several in a row, and one that is cut short."""
    for wire in (row["wire"], row["wire"] * 3, row["wire"] * 11, row["wire"] + row["wire"][:-1]):
        frame = fetch_response(wire)
        drawn = both.written(FETCH, 11, "response", frame)
        assert drawn in (None, both.dissected(FETCH, 11, "response", frame))
        assert drawn is not None or row["control"] or row["wire"][16] != 2
    alone = fetch_response(row["wire"][:-1])
    assert both.written(FETCH, 11, "response", alone) in (None, both.dissected(FETCH, 11, "response", alone))


TEXTS = (
    b"", b"null", b"plain", b"two words", b'{"a": "b c"}', b"\x1b[31m\n", "größe 日本".encode(), b"\xff\xfe\x00\x01",
    b"x" * 200, b"word " * 60, "é".encode() * 200, b"a" * 119 + "é".encode() * 30, b"PNG" + bytes(300), None,
)  # fmt: skip


def random_batch(rng: random.Random) -> dict[str, Any]:
    """A batch with records of all sorts of keys, values, times and headers."""
    base = rng.choice((0, 5, 98, 999_995, 1 << 40))
    records = [
        {"offset": base + index, "timestamp": rng.choice((-1, 0, 1_700_000_000_000, 1_700_000_086_399)),
         "key": rng.choice(TEXTS), "value": rng.choice(TEXTS),
         "headers": [{"key": rng.choice(("a", "grün", "two words", "")), "value": rng.choice(TEXTS)}
                     for _ in range(rng.choice((0, 0, 1, 8, 10)))]}
        for index in range(rng.choice((0, 1, 2, 10, 14)))
    ]  # fmt: skip
    producer = rng.choice(({}, {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3}))
    attributes = rng.choice((0, 0, 1, 2, 3, 4)) | rng.choice((0, 0x08)) | rng.choice((0, 0x10))
    return {"base_offset": base, "attributes": attributes, "records": records, **producer}


@pytest.mark.slow
def test_damaged_record_sets_are_drawn_as_the_walker_reads_them_or_not_at_all(both: Both) -> None:
    """Sound ones always, apart from what only the dissector tells."""
    rng = random.Random("damaged record sets")
    drawn = 0
    for _ in range(250):
        wire = encode_record_set([random_batch(rng) for _ in range(rng.choice((1, 1, 2, 9)))])
        sound = rng.random() < 0.7
        if not sound:
            broken = bytearray(wire)
            broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            wire = bytes(broken)[: rng.choice((len(wire), rng.randrange(len(wire))))]
        frame = fetch_response(wire)
        text = both.written(FETCH, 11, "response", frame)
        assert text in (None, both.dissected(FETCH, 11, "response", frame))
        assert text is not None or not sound
        drawn += text is not None
    assert drawn > 170


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(fetch_response(b"").replace(b"orders", b"orde\xffs"), id="a name that is not UTF-8"),
        pytest.param(fetch_response(vectors()[0]["wire"][:-1] + b"\x7f"), id="a wrong CRC"),
    ],
)
def test_what_is_wrong_has_no_rows_from_values(frame: bytes) -> None:
    """Values have no place for it."""
    assert Both(None, False).rows(FETCH, 11, "response", frame) is None


@pytest.mark.parametrize(("tags", "is_sent"), [(b"\1\0\1\0", True), (b"\0", False)], ids=["sent", "absent"])
def test_a_tagged_field_with_its_default_is_drawn_where_it_was_sent(tags: bytes, is_sent: bool, both: Both) -> None:
    """Fetch v12 (KIP-595) has the nullable cluster_id in tag 0: one tag, its number, its length, and a null string."""
    # replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session id and epoch, no topics, none forgotten,
    # an empty rack_id
    frame = pack(">iiiibii", -1, 500, 1, 1000, 0, 0, 0) + b"\1\1\1" + tags
    drawn = both.written(FETCH, 12, "request", frame)
    assert drawn == both.dissected(FETCH, 12, "request", frame)
    plain = Both(None, False).written(FETCH, 12, "request", frame)
    assert plain is not None and ("cluster_id" in plain) == is_sent


@pytest.mark.slow
def test_many_elements_are_drawn_as_the_first_ones_and_how_many_there_are(both: Both) -> None:
    """Of structures and of values, and of errors as many again."""
    for count in (12, 13, 40):
        for wrong in (0, 1, 12, 13, 28):
            codes = [3 if index >= count - wrong else 0 for index in range(count)]
            failed = [
                {"name": f"t{index}", "error_code": code, "error_message": None} for index, code in enumerate(codes)
            ]
            frame = encoder(CREATE_TOPICS, 1, "response")({"topics": failed})
            assert both.written(CREATE_TOPICS, 1, "response", frame) == both.dissected(
                CREATE_TOPICS, 1, "response", frame
            )
        partitions = [{"partition_index": index, "replicas": list(range(count))} for index in range(count)]
        topics = [{"name": f"topic-{index}", "partitions": partitions} for index in range(count)]
        frame = encoder(REASSIGN, 0, "request")({"timeout_ms": 60_000, "topics": topics})
        assert both.written(REASSIGN, 0, "request", frame) == both.dissected(REASSIGN, 0, "request", frame)


@pytest.mark.parametrize("count", [RANGES_SHOWN, RANGES_SHOWN + 1])
def test_version_ranges_are_drawn_on_one_row_up_to_a_number(count: int, both: Both) -> None:
    """Kafka has a hundred APIs; what answers with more of them is no broker."""
    keys = [{"api_key": key, "min_version": 0, "max_version": 3} for key in range(count)]
    frame = encoder(18, 0, "response")({"error_code": 0, "api_keys": keys})
    written = both.written(18, 0, "response", frame)
    assert written == both.dissected(18, 0, "response", frame)
    assert written is not None and ("more of 257" in written) == (count > RANGES_SHOWN)
