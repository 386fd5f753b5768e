"""Recordings of real serializers: each value is read as what it was made from."""

from __future__ import annotations

import hashlib
import json
import lzma
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Done
from tests.support.transformations import at_another_time, elsewhere, segments_of, with_payload, write

pytest.importorskip("fastavro")
pytest.importorskip("msgpack")
pytest.importorskip("cbor2")
pytest.importorskip("jsonschema")
pytest.importorskip("grpc_tools")

FOLDER = Path(__file__).parents[2] / "captures" / "values"
SERDES = str(FOLDER / "serdes.pcap.xz")
SCHEMAS = str(FOLDER / "serdes" / "schemas")
FORMATS = ("--value-format", "packed=msgpack", "--value-format", "concise=cbor", "--value-format", "bare=avro:reading")
TRUTH = [json.loads(line) for line in (FOLDER / "serdes" / "truth.jsonl").read_text().splitlines()]
Read = Callable[..., Done]


def exchanges(done: Done) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    return [one for line in done.out.splitlines() if (one := json.loads(line))["kind"] == "exchange"]


def record_sets(message: dict[str, Any] | None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The topic and the records of each partition, of a Produce request or a Fetch response."""
    body = (message or {}).get("body") or {}
    for topic in body.get("topic_data") or body.get("responses") or ():
        for partition in topic.get("partition_data") or topic.get("partitions") or ():
            for batch in partition.get("records") or ():
                yield topic.get("name") or topic.get("topic_name") or topic.get("topic_id"), batch.get("records") or []


def data_of(decoded: dict[str, Any], part: str) -> Any:
    return (decoded.get(part) or {}).get("data")


def values_by_topic(found: list[dict[str, Any]], side: str) -> dict[str, list[tuple[Any, Any]]]:
    """What keys and values were decoded to, None where they were not."""
    values: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for exchange in found:
        for topic, records in record_sets(exchange[side]):
            decoded = [record.get("decoded") or {} for record in records]
            values[topic] += [(data_of(one, "key"), data_of(one, "value")) for one in decoded]
    return values


def test_rows_and_files_agree() -> None:
    """By their hashes and by the number of packets."""
    rows = tomllib.loads((FOLDER / "MANIFEST.toml").read_text())["capture"]
    assert {row["file"] for row in rows} == {file.name for file in FOLDER.glob("*.xz")}
    for row in rows:
        content = (FOLDER / row["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"]
        assert lzma.decompress(content)[:4] == b"\xd4\xc3\xb2\xa1"


@pytest.mark.parametrize(("api", "side"), [("Produce", "request"), ("Fetch", "response")])
def test_what_serializers_wrote_is_read_as_what_it_was_made_from(api: str, side: str, kwiresniff: Read) -> None:
    """Ids are learnt from the topic ``_schemas`` in the capture, GUIDs and the ids of clouds are files."""
    done = kwiresniff("read", "-o", "jsonl", "--schemas", SCHEMAS, *FORMATS, "-Y", f"api == {api}", SERDES)
    names = {row["topic"] for row in TRUTH}
    found = values_by_topic(exchanges(done), side)
    told = sorted(json.dumps((row["key"], row["value"]), sort_keys=True) for row in TRUTH)
    read = [pair for topic, pairs in found.items() if topic != "_schemas" for pair in pairs]
    read = [pair for pair in read if not (isinstance(pair[0], dict) and "keytype" in pair[0])]
    assert sorted(json.dumps(pair, sort_keys=True) for pair in read) == told
    assert names


def test_what_does_not_fit_its_schema_is_a_problem(kwiresniff: Read) -> None:
    """An order cut short, an order with a parcel's id, and a parcel of a negative weight."""
    done = kwiresniff("read", "-o", "jsonl", "--value-format", "auto", "-Y", "api == Produce", SERDES)
    problems = [one for exchange in exchanges(done) for one in exchange["problems"]]
    assert [(one["code"], one["topic"], one["record_offset"]) for one in problems] == [
        ("payload_does_not_fit", "orders", 2),
        ("payload_does_not_fit", "orders", 3),
        ("payload_does_not_fit", "parcels", 1),
    ]
    assert "of which 6 are there" in problems[0]["message"] and "weight: minimum 0" in problems[2]["message"]


def test_formats_and_schemas_are_named(kwiresniff: Read) -> None:
    """Beside the data, and trace ids as notes of the exchange."""
    done = kwiresniff("read", "-o", "jsonl", "--schemas", SCHEMAS, *FORMATS, "-Y", "api == Produce", SERDES)
    found = exchanges(done)
    members = [
        (one.get("format"), one.get("schema"))
        for exchange in found
        for _, records in record_sets(exchange["request"])
        for record in records
        for one in (record.get("decoded") or {}).values()
    ]
    assert ("avro", "orders-value version 1 (id 4)") in members
    assert ("protobuf", "payments-value version 1 (id 6)") in members
    assert ("json-schema", "parcels-value version 1 (id 5)") in members
    assert ("avro", "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63") in members
    assert {format for format, _ in members} >= {"msgpack", "cbor", "cloudevents", "json"}
    notes = [note for exchange in found for note in exchange.get("notes") or ()]
    assert [note["trace_id"] for note in notes] == [
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "80f198ee56343ba864fe8b2a57d3eff7",
    ]


def test_values_are_in_trees_and_files(kwiresniff: Read, tmp_path: Path) -> None:
    """Of ``read`` and of ``export``."""
    options = ("--schemas", SCHEMAS, *FORMATS, "-Y", "api == Produce")
    tree = kwiresniff("read", *options, SERDES)
    assert tree.code == 0 and "Ada" in tree.out and "Bergen" in tree.out
    target = tmp_path / "out.jsonl"
    assert kwiresniff("export", *options, SERDES, "-O", str(target)).code == 0
    assert '"town":"Bergen"' in target.read_text().replace(" ", "")


def test_redacted_values_are_not_decoded_for_show(kwiresniff: Read) -> None:
    """Nor are reasons that quote them."""
    done = kwiresniff("read", "-o", "jsonl", "--redact", "--schemas", SCHEMAS, *FORMATS, SERDES)
    assert done.code == 0
    for secret in ("Bergen", "12.50", "4bf92f35", "minimum"):
        assert secret not in done.out


def test_what_does_not_fit_a_redacted_schema_is_told_in_plain_words(kwiresniff: Read) -> None:
    """The schema has no name there, and the sentence needs none."""
    done = kwiresniff("doctor", "--redact", "--schemas", SCHEMAS, *FORMATS, "--fail-on", "never", SERDES)
    assert "writes 1 record that does not fit the schema that it names" in done.out
    assert "records that do not fit the schema that they name" in done.out


METER = """syntax = "proto3"; package field;
message Site { string name = 1; }
message Meter { string station = 1; int32 watts = 2; }
"""


def test_apicurios_serializers_are_read_in_each_of_their_forms(kwiresniff: Read, tmp_path: Path) -> None:
    """A content id of four bytes, a global id of eight, a header; the schemas are those of the recipe's program."""
    fields = [{"name": "station", "type": "string"}, {"name": "celsius", "type": "double"}]
    reading = {"type": "record", "name": "Reading", "namespace": "field", "fields": fields}
    for number in (1, 2, 3, 4):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(reading))
    for number in (5, 6):
        (tmp_path / f"{number}.proto").write_text(METER)
    capture = str(FOLDER / "apicurio.pcap.xz")
    done = kwiresniff("read", "-o", "jsonl", "--schemas", str(tmp_path), "-Y", "api == Produce", capture)
    found = [value for pairs in values_by_topic(exchanges(done), "request").values() for _, value in pairs]
    assert found == [
        *({"station": "north", "celsius": celsius} for celsius in (1.5, 2.5, 3.5, 4.5)),
        *({"station": "north", "watts": watts} for watts in (5, 6)),
    ]


def test_events_of_debezium_are_taken_out_of_connects_envelope(kwiresniff: Read) -> None:
    """With a schema dates and decimals become what they mean; without one they stay numbers."""
    capture = str(FOLDER / "connect.pcap.xz")
    done = kwiresniff("read", "-o", "jsonl", "--value-format", "auto", "-Y", "api == Produce", capture)
    first, second = (value for pairs in values_by_topic(exchanges(done), "request").values() for _, value in pairs)
    assert first["operation"] == second["operation"] == "create"
    assert first["after"] == {
        "id": 7,
        "amount": "12.50",
        "due": "2026-02-01",
        "placed": "2026-01-02T03:04:05.678000Z",
        "changed": "2026-01-02T03:04:05.678901Z",
        "note": None,
    }
    assert second["after"]["placed"] == 1767323045678


def test_keys_of_kafka_streams_have_their_windows(kwiresniff: Read) -> None:
    """A visit at 03:04:05 is in the minute of 03:04, one at 03:05:05 in the next; all three are one session."""
    capture = str(FOLDER / "windows.pcap.xz")
    done = kwiresniff("read", "-o", "jsonl", "--value-format", "auto", "-Y", "api == Produce", capture)
    windows = [
        (key["window"].get("start"), key["window"].get("end"), key["window"].get("sequence"))
        for pairs in values_by_topic(exchanges(done), "request").values()
        for key, _ in pairs
        if isinstance(key, dict) and key["key"] == "/start"
    ]
    day = "2026-01-02T03:0"
    assert (f"{day}4:00.000Z", None, None) in windows  # repartition, and the changelog of the second count
    assert (f"{day}4:00.000Z", None, 0) in windows  # the changelog of a window store
    assert (f"{day}5:00.000Z", None, 0) in windows
    assert (f"{day}4:05.000Z", f"{day}5:05.000Z", None) in windows  # the changelog of a session store


def test_the_pipeline_has_decoded_values_beside_the_bytes() -> None:
    """In the table of records, and a password of a registry is in no file of its output."""
    pytest.importorskip("pyarrow")
    from kwiresniff.cli.pipeline_options import Decoding
    from kwiresniff.pipeline.batches import table_batches
    from kwiresniff.pipeline.plan import WorkUnit, find_sources
    from kwiresniff.pipeline.task import options_of

    rules = tuple(FORMATS[1::2])
    settings = Decoding(schemas=(SCHEMAS,), value_format=rules).settings()
    (source,) = find_sources([SERDES])
    rows = [row for batch in table_batches("records", WorkUnit(source), settings) for row in batch.to_pylist()]
    found = [json.loads(row["value_decoded"]) for row in rows if row["api"] == "Produce" and row["value_decoded"]]
    told = [row["value"] for row in TRUTH if row["value"] is not None]
    data = [one["data"] for one in found if "subject" not in one["data"]]
    assert sorted(map(str, data)) == sorted(map(str, told))
    settings = Decoding(schemas=("http://ada:secret@host:8081",), value_format=rules[:1]).settings()
    said = options_of(settings, ("records",), "series")
    assert said["--schemas"] == ["http://host:8081"] and "secret" not in str(said)


def test_a_task_of_the_pipeline_that_was_not_told_a_schema_says_so(tmp_path: Path) -> None:
    """The capture begins behind the records of ``_schemas``."""
    pytest.importorskip("pyarrow")
    from kwiresniff.cli.pipeline_options import Decoding
    from kwiresniff.pipeline.batches import table_batches
    from kwiresniff.pipeline.plan import WorkUnit, find_sources

    segments = segments_of(Path(SERDES))
    late = [one for one in segments if one[1] - segments[0][1] > 700_000_000]
    (source,) = find_sources(write(tmp_path, late))
    settings = Decoding(value_format=("auto",)).settings()
    rows = [row for batch in table_batches("problems", WorkUnit(source), settings) for row in batch.to_pylist()]
    said = [row["message"] for row in rows if row["code"] == "plugin_failed"]
    assert len(said) == 1 and "failed: the capture does not have the schema with" in said[0]


def test_programs_in_python_read_values() -> None:
    """With the places of schemas and the rules of formats that the command has."""
    import kwiresniff

    wanted = "api == Produce and topic in (bare, packed)"
    found = kwiresniff.read(SERDES, filter=wanted, schemas=SCHEMAS, value_formats=FORMATS[1::2])
    values = [
        record["decoded"]["value"]["data"]
        for exchange in found
        if exchange.request is not None
        for _, records in record_sets({"body": exchange.request.body})
        for record in records
    ]
    assert values[0] == {"celsius": -4.25} and values[1]["raw"] == b"\x00\xff"


def test_two_clusters_may_have_one_id_for_two_schemas(kwiresniff: Read, tmp_path: Path) -> None:
    """Both registries gave the id 4 to a schema of orders, and in one of them a field is called otherwise. The orders
    of each cluster are read when the schemas of both are known."""
    segments = segments_of(Path(SERDES))
    other = [
        with_payload(one, bytes(one[6][one[7] : one[8]]).replace(b'\\"customer\\"', b'\\"purchase\\"'))
        for one in at_another_time(elsewhere(segments), 450)
    ]
    (capture,) = write(tmp_path, sorted([*segments, *other], key=lambda one: one[1]))
    wanted = "api == Fetch and topic == orders"
    done = kwiresniff("read", "-o", "jsonl", "--value-format", "auto", "-Y", wanted, capture)
    found = {
        (exchange["broker"], name)
        for exchange in exchanges(done)
        for _, records in record_sets(exchange["response"])
        for record in records
        for name in data_of(record.get("decoded") or {}, "value") or ()
        if name in ("customer", "purchase")
    }
    assert found == {("10.9.0.1:9092", "customer"), ("10.4.0.1:9092", "purchase")}
