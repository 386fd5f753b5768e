"""Text straight from bytes: the JSON of the decoded body, byte for byte, or none."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from librt.strings import BytesWriter

from kwiresniff import codec, schema
from kwiresniff.base.batch_layout import CONTROL
from kwiresniff.base.json_text import write_number, write_text
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.codec.batch_reader import BatchReader
from kwiresniff.codec.field_layout import default_value
from kwiresniff.codec.record import decode_records
from kwiresniff.codec.record_limits import MAX_DECOMPRESSED_BYTES, RecordBudget
from kwiresniff.codec.text.json_bodies import BodyWriter
from kwiresniff.codec.text.json_records import PIECE_BYTES, RecordWriter
from kwiresniff.errors import DecodeError
from kwiresniff.export.encode import json_line, json_text
from kwiresniff.export.json_objects import event_json
from kwiresniff.model import Connection, Exchange
from kwiresniff.schema.types import WireField
from kwiresniff.session import Analyzer
from tests.support.encoding import compress, encode_record_set, encoder
from tests.support.error_codes import error_codes
from tests.support.events import analyze_with
from tests.support.random_bodies import random_body, usual_body
from tests.support.record_vectors import vectors
from tests.support.sample import sampled

CAPTURES = sorted(
    path for path in (Path(__file__).parents[2] / "captures").iterdir() if path.suffix in (".pcap", ".pcapng")
)
FETCH, PRODUCE = 1, 0
ENCODE = json_text
RECORD = {"offset": 0, "timestamp": 1, "key": b"k", "value": b"v" * 1_000, "headers": []}
INTERNAL_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def text_of(api_key: int, version: int, direction: Any, frame: bytes, offset: int = 0) -> bytes | None:
    steps = codec.text_steps(api_key, version, direction)
    assert steps is not None
    pieces = BodyWriter(ENCODE, INTERNAL_ID.__eq__).text(steps, frame, offset)
    return None if pieces is None else b"".join(pieces)


def decoded(api_key: int, version: int, direction: Any, frame: bytes, offset: int = 0) -> bytes:
    """The long way; raises AssertionError for a body with anything to tell."""
    issues: list[Any] = []
    body, end = codec.decoder(api_key, version, direction)(frame, offset, issues)
    assert (issues, end) == ([], len(frame))
    return ENCODE(body)


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_every_message_at_every_version_is_written_as_its_decoded_body(api: Any, direction: Any) -> None:
    first, last = getattr(api, f"{direction}_versions")
    rng = random.Random(f"{api.name} {direction}")
    for version in range(first, last + 1):
        definition = schema.message(api.key, version, direction)
        if codec.text_steps(api.key, version, direction) is None:
            assert "FLOAT64" in repr(definition)
            continue
        encode = encoder(api.key, version, direction)
        for _ in range(4):
            frame = encode(random_body(definition, rng))
            assert text_of(api.key, version, direction, frame) in (None, decoded(api.key, version, direction, frame))
            frame = encode(usual_body(definition, rng))
            text = text_of(api.key, version, direction, frame)
            assert text == decoded(api.key, version, direction, frame)
            json.loads(text)
            assert text_of(api.key, version, direction, frame + b"\0") == text
            for cut in range(0, len(frame), max(1, len(frame) // 16)):
                assert text_of(api.key, version, direction, frame[:cut]) is None


@pytest.mark.parametrize(
    ("version", "raw"),
    [
        (4, b"\2\7Stable\1\x09\0"),  # ListGroups v4: of the message, which has another field
        (5, b"\1\1\2\x09\2\xff\xfe\x0a\4text"),  # bytes, and text
        (5, b'\1\1\2\x09\0\xff\xff\xff\xff\7\1"'),
        (5, b"\1\1\0"),
    ],
)
def test_tagged_fields_that_nobody_knows_are_written_as_decoded(version: int, raw: bytes) -> None:
    assert text_of(16, version, "request", raw) == decoded(16, version, "request", raw)


def test_tagged_fields_are_all_that_some_structures_have() -> None:
    """ListClientMetricsResources v0 asks for all: its request is a tag section."""
    for raw in (b"\0", b"\1\x09\2ab"):
        assert text_of(74, 0, "request", raw) == decoded(74, 0, "request", raw)


def test_tagged_fields_out_of_order_or_beyond_the_end_are_left_to_the_decoder() -> None:
    for section in (b"\2\x0a\0\x09\0", b"\1\x09\1", b"\3\x09\0", b"\x81\0\x09\0"):
        assert text_of(16, 5, "request", b"\1\1" + section) is None


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
def test_error_codes_are_told_beside_the_text(api: Any) -> None:
    """All that a decoded body is searched for; without somebody to tell them to, none is written."""
    first, last = api.response_versions
    rng = random.Random(f"{api.name} errors")
    for version in range(first, last + 1):
        definition = schema.message(api.key, version, "response")
        steps = codec.text_steps(api.key, version, "response")
        for _ in range(4):
            if steps is None:
                continue
            frame = encoder(api.key, version, "response")(with_errors(definition.fields, rng))
            errors: list[tuple[str, int]] = [("left over", 1)]
            pieces = BodyWriter(ENCODE, INTERNAL_ID.__eq__).text(steps, frame, 0, errors)
            assert pieces is not None
            assert b"".join(pieces) == decoded(api.key, version, "response", frame)
            body, _ = codec.decoder(api.key, version, "response", "full")(frame, 0, [])
            assert errors == error_codes(schema.message(api.key, version, "response"), body)
            assert (text_of(api.key, version, "response", frame) is None) is (errors != [])


def with_errors(fields: tuple[WireField, ...], rng: random.Random) -> dict[str, Any]:
    """A body in which every structure is there twice, and every error code is one, or none."""
    return {field.name: with_error(field, rng) for field in fields if field.tag is None}


def with_error(field: WireField, rng: random.Random) -> Any:
    if field.type == "STRUCT":
        inside = [with_errors(field.fields, rng) for _ in range(1 + field.array)]
        return inside if field.array else inside[0]
    if field.enum == "error_code" and field.type == "INT16" and not field.array:
        return rng.choice((0, 3, -1))
    return default_value(field)


def fetch_response(records: bytes, *, topic: str = "orders", error_code: int = 0) -> bytes:
    partition: dict[str, Any] = {"partition_index": 0, "error_code": error_code, "high_watermark": 9,
                 "last_stable_offset": 9, "log_start_offset": 0, "aborted_transactions": None,
                 "preferred_read_replica": -1, "records": []}  # fmt: skip
    body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 1,
            "responses": [{"topic": topic, "partitions": [partition]}]}  # fmt: skip
    frame: bytes = encoder(FETCH, 11, "response")(body)
    assert frame.endswith(bytes(4))
    return frame[:-4] + len(records).to_bytes(4, "big") + records


@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_records_of_kafkas_clients_are_written_as_decoded(row: dict[str, Any]) -> None:
    frame = fetch_response(row["wire"])
    assert text_of(FETCH, 11, "response", frame) == decoded(FETCH, 11, "response", frame)


@pytest.mark.parametrize(
    "value",
    [bytes(300_001), b'plain "text" ' * 20_000, bytes(200_000) + "ü".encode(), b"a" * 200_000 + b"\xff"],
    ids=["zeros", "plain", "not ASCII", "not UTF-8"],
)
@pytest.mark.parametrize("late", [1, 1 << 40], ids=["sound", "for the decoder"])
def test_long_values_are_written_as_decoded(value: bytes, late: int) -> None:
    """Behind a batch and before a record, whose timestamp may be one that only the decoder reads. What is escaped is
    never in one piece.
    """
    records = [{**RECORD, "value": value, "key": value[:70_000]}, {**RECORD, "offset": 1, "timestamp": late}]
    wire = encode_record_set([{"base_offset": 0, "attributes": 0, "records": one} for one in ([RECORD], records)])
    frame = fetch_response(wire + wire)
    steps = codec.text_steps(FETCH, 11, "response")
    assert steps is not None
    pieces = BodyWriter(ENCODE, INTERNAL_ID.__eq__).text(steps, frame, 0)
    assert pieces is not None and b"".join(pieces) == decoded(FETCH, 11, "response", frame)
    if not value[-1] and late == 1:
        assert max(map(len, pieces)) < 2 * PIECE_BYTES


def test_long_text_comes_in_pieces() -> None:
    wire = encode_record_set([{"base_offset": 0, "attributes": 0, "records": [RECORD]}])
    frame = fetch_response(wire * 300)
    steps = codec.text_steps(FETCH, 11, "response")
    assert steps is not None
    writer = BodyWriter(ENCODE, INTERNAL_ID.__eq__)
    for _ in range(2):
        pieces = writer.text(steps, frame, 0)
        assert pieces is not None
        assert all(PIECE_BYTES <= len(piece) < 2 * PIECE_BYTES for piece in pieces[:-1])
        assert b"".join(pieces) == decoded(FETCH, 11, "response", frame)


def test_a_last_batch_that_is_cut_short_is_written_with_what_is_there() -> None:
    wire = vectors()[0]["wire"] * 2
    for cut in range(1, len(wire) // 2):
        frame = fetch_response(wire[:-cut])
        issues: list[Any] = []
        body, _ = codec.decoder(FETCH, 11, "response")(frame, 0, issues)
        assert text_of(FETCH, 11, "response", frame) == (None if issues else ENCODE(body))


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(fetch_response(b"", error_code=3), id="an error code"),
        pytest.param(fetch_response(b"", topic="__consumer_offsets"), id="an internal topic"),
        pytest.param(fetch_response(b"").replace(b"orders", b"orde\xffs"), id="a name that is not UTF-8"),
        pytest.param(fetch_response(vectors()[0]["wire"][:-1] + b"\x7f"), id="a wrong CRC"),
    ],
)
def test_what_others_have_to_look_into_has_no_text(frame: bytes) -> None:
    assert text_of(FETCH, 11, "response", frame) is None


@pytest.mark.parametrize("codec_number", sampled([1, 2, 4, 3], 2, 1))
def test_a_batch_that_decompresses_to_too_much_has_no_text(codec_number: int) -> None:
    batch = {"base_offset": 0, "attributes": codec_number, "records": [{"offset": 0, "timestamp": 0, "key": b"k"}]}
    wire = encode_record_set([batch])
    bomb = compress(codec_number, bytes(MAX_DECOMPRESSED_BYTES + 1))
    head = bytearray(wire[:61])
    head[8:12] = (49 + len(bomb)).to_bytes(4, "big")
    assert text_of(FETCH, 11, "response", fetch_response(bytes(head) + bomb)) is None


def test_an_internal_topic_is_known_by_its_id() -> None:
    body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 1, "node_endpoints": [],
            "responses": [{"topic_id": INTERNAL_ID, "partitions": []}]}  # fmt: skip
    frame = encoder(FETCH, 17, "response")(body)
    assert text_of(FETCH, 17, "response", frame) is None
    body["responses"][0]["topic_id"] = "ABEiM0RVZneImaq7zN3u_w"  # type: ignore[index]
    assert text_of(FETCH, 17, "response", encoder(FETCH, 17, "response")(body)) is not None


def written_records(data: bytes, batch: dict[str, Any], append_time: int | None = None) -> bytes | None:
    out = BytesWriter()
    opened = BatchReader()
    opened.data, opened.last, opened.count = data, len(data), batch["records_count"]
    opened.base_offset, opened.base_timestamp = batch["base_offset"], batch["base_timestamp"]
    opened.max_timestamp, opened.append_time = append_time or 0, append_time is not None
    done = RecordWriter(out, ENCODE).write(opened, RecordBudget(len(data)), [])
    return out.getvalue() if done else None


def test_damaged_records_are_written_as_decoded_or_not_at_all() -> None:
    rng = random.Random("damaged records")
    texts = (b"", b"plain", b'quo"te\\', b"\x00\x1f\x7f", "größe".encode(), "\x9b\u202e".encode(), b"\xff\xfe", None)
    same = 0
    for _ in range(1_500):
        records = [
            {"offset": 5 + index, "timestamp": 1_700_000_000_000 + rng.choice((0, 1, -3, 70_000, 1 << 40)),
             "key": rng.choice(texts), "value": rng.choice((*texts, b"v" * rng.randrange(300))),
             "headers": [{"key": rng.choice(("a", "grün")), "value": rng.choice(texts)}] * rng.choice((0, 0, 1, 3))}
            for index in range(rng.randrange(1, 5))
        ]  # fmt: skip
        batch = {"base_offset": 5, "base_timestamp": 1_700_000_000_000, "records_count": len(records)}
        data = bytearray(encode_record_set([{**batch, "attributes": 0, "records": records}])[61:])
        for _ in range(rng.choice((0, 0, 1, 2))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        text = written_records(bytes(data), batch)
        found: list[dict[str, Any]] = []
        try:
            decode_records(bytes(data), 0, len(data), batch, found, RecordBudget(len(data)))
        except DecodeError:
            assert text is None
            continue
        assert text in (None, ENCODE(found))
        same += text is not None
    assert same > 800


def test_all_records_of_a_batch_have_the_time_of_the_brokers_log() -> None:
    batch = {"base_offset": 0, "base_timestamp": 7, "records_count": 1}
    data = encode_record_set([{**batch, "attributes": 0, "records": [{"offset": 0, "timestamp": 9, "key": b"k"}]}])[61:]
    assert orjson.loads(written_records(data, batch) or b"")[0]["timestamp"] == 9
    assert orjson.loads(written_records(data, batch, 11) or b"")[0]["timestamp"] == 11


def test_numbers_are_written_in_decimal() -> None:
    edges = [10**power + change for power in range(19) for change in (-1, 0, 1)]
    edges += [2**power + change for power in range(63) for change in (-1, 0, 1)] + [2**63 - 1]
    rng = random.Random("numbers")
    edges += [rng.randrange(1 << rng.randrange(1, 63)) for _ in range(2_000)]
    for number in (*edges, *(-edge for edge in edges), -(2**63)):
        out = BytesWriter()
        write_number(out, number)
        assert out.getvalue() == b"%d" % number


def test_ascii_is_written_as_json_wherever_it_stands() -> None:
    for code in range(256):
        for length in range(20):
            for place in range(length):
                raw = bytearray(b"abcdefghijklmnopqrst"[:length])
                raw[place] = code
                out = BytesWriter()
                ascii = write_text(out, b"-" + raw + b"-", 1, length + 1)
                assert ascii == (code < 128)
                if ascii:
                    assert out.getvalue() == orjson.dumps(raw.decode())


@pytest.mark.parametrize("capture", sampled(CAPTURES, 4, 1), ids=lambda path: path.name)
def test_captures_read_the_same_with_and_without_text(capture: Path) -> None:
    line = json_line
    texts = 0
    plainly = analyze_with(Analyzer(), iter(open_captures([str(capture)])))
    for event, other in zip(
        analyze_with(Analyzer(Needs(text=ENCODE)), iter(open_captures([str(capture)]))), plainly, strict=True
    ):
        assert line(event_json(event)) == line(event_json(other))
        if isinstance(event, Exchange):
            texts += sum(
                message is not None and message.text is not None for message in (event.request, event.response)
            )
        elif isinstance(event, Connection):
            assert isinstance(other, Connection) and event.exchanges == other.exchanges
    assert texts or "tls" in capture.name


def test_control_records_are_left_to_the_decoder() -> None:
    row = next(row for row in vectors() if row["control"])
    assert int.from_bytes(row["wire"][21:23], "big") & CONTROL
    text = text_of(FETCH, 11, "response", fetch_response(row["wire"]))
    assert text is not None and b'"control":{' in text
