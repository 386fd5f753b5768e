"""Records in the formats that applications use, by the serializers of confluent-kafka, msgpack, cbor2 and cloudevents.

Usage: values_serdes.py BOOTSTRAP REGISTRY FOLDER. What each record was made from is written to FOLDER/truth.jsonl, the
registry's schemas to FOLDER/schemas. The topic ``_schemas`` is written here in the form in which Confluent's registry
keeps it, from what the registry of the recipe says: that one keeps its schemas elsewhere. The frames of AWS Glue and of
Azure are put together here, because their serializers need those services.
"""

from __future__ import annotations

import importlib.resources
import io
import json
import sys
import uuid
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import cbor2
import fastavro
import msgpack
from cloudevents.core.bindings.kafka import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [{"name": "name", "type": "string"}, {"name": "tags", "type": {"type": "map", "values": "int"}}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "shop.Customer"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "due", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "lines", "type": {"type": "array", "items": "double"}},
    ],
}
ADDRESS = {"title": "Address", "type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
PARCEL = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Parcel",
    "type": "object",
    "properties": {"weight": {"type": "number", "minimum": 0}, "to": {"$ref": "address.json"}},
    "required": ["weight", "to"],
}
PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Payment {
  int64 order = 1;
  string method = 2;
  google.protobuf.Timestamp at = 3;
  message Refund { int32 cents = 1; repeated string reasons = 2; }
  repeated Refund refunds = 4;
}
message Receipt { bool printed = 1; bytes seal = 2; }
"""
READING = {"type": "record", "name": "Reading", "fields": [{"name": "celsius", "type": "float"}]}
GLUE_VERSION = uuid.UUID("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
AZURE_ID = "4f2c8dd2e8a94b1f8a7d2a4f5f0f3c11"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

bootstrap, url, folder = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop", "linger.ms": 50})
truth: list[dict[str, Any]] = []


def produce(
    topic: str,
    value: bytes,
    truth_value: Any,
    key: bytes | None = None,
    truth_key: Any = None,
    headers: dict[str, bytes | str] | None = None,
) -> None:
    """Sends a record, and notes what its key and value were made from; a misfit is made from nothing."""
    producer.produce(topic, value, key, headers=headers or {})
    truth.append({"topic": topic, "key": truth_key, "value": truth_value})


def proto_classes(scratch: Path) -> dict[str, Any]:
    """The message classes of ``PROTO``."""
    (scratch / "payment.proto").write_text(PROTO)
    well_known = str(importlib.resources.files("grpc_tools") / "_proto")
    target = scratch / "payment.desc"
    assert protoc.main(["", f"-I{scratch}", f"-I{well_known}", f"-o{target}", "payment.proto"]) == 0
    files = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file
    from google.protobuf import timestamp_pb2  # adds what is imported to the pool

    del timestamp_pb2
    pool = descriptor_pool.Default()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    names = ("shop.Payment", "shop.Payment.Refund", "shop.Receipt")
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def avro_bytes(schema: dict[str, Any], value: Any) -> bytes:
    """Avro without anything in front."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def context(topic: str, part: MessageField = MessageField.VALUE, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, part, headers)


def shop_records(scratch: Path) -> list[tuple[Any, ...]]:
    """What the serializers of confluent-kafka make, each with the arguments of ``produce``; schemas are registered."""
    registry.register_schema("shop.Customer", Schema(json.dumps(CUSTOMER), "AVRO"))
    customer = SchemaReference("shop.Customer", "shop.Customer", 1)
    write_order = AvroSerializer(registry, Schema(json.dumps(ORDER), "AVRO", [customer]))
    write_key = AvroSerializer(registry, '"string"')
    registry.register_schema("address", Schema(json.dumps(ADDRESS), "JSON"))
    address = SchemaReference("address.json", "address", 1)
    write_parcel = JSONSerializer(Schema(json.dumps(PARCEL), "JSON", [address]), registry)
    classes = proto_classes(scratch)
    found: list[tuple[Any, ...]] = []
    for number in (1001, 1002):
        order = {
            "id": number,
            "customer": {"name": "Ada", "tags": {"vip": 1}},
            "amount": Decimal("12.50"),
            "placed": datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
            "due": date(2026, 2, 1) if number == 1001 else None,
            "state": "PAID",
            "lines": [1.5, -2.25],
        }
        key = write_key(f"order-{number}", context("orders", MessageField.KEY))
        found.append(("orders", write_order(order, context("orders")), order, key, f"order-{number}"))
    parcel = {"weight": 2.5, "to": {"town": "Bergen"}}
    found.append(("parcels", write_parcel(parcel, context("parcels")), parcel))
    payment = classes["shop.Payment"](order=1001, method="card")
    payment.at.FromJsonString("2026-01-02T03:04:05Z")
    payment.refunds.add(cents=250, reasons=["late", "wet"])
    said = {
        "order": "1001",
        "method": "card",
        "at": "2026-01-02T03:04:05Z",
        "refunds": [{"cents": 250, "reasons": ["late", "wet"]}],
    }
    write = ProtobufSerializer(classes["shop.Payment"], registry, {"use.deprecated.format": False})
    found.append(("payments", write(payment, context("payments")), said))
    refund = classes["shop.Payment.Refund"](cents=99)
    write = ProtobufSerializer(classes["shop.Payment.Refund"], registry, {"use.deprecated.format": False})
    found.append(("payments", write(refund, context("payments")), {"cents": 99}))
    receipt = classes["shop.Receipt"](printed=True, seal=b"\xff\x00")
    write = ProtobufSerializer(classes["shop.Receipt"], registry, {"use.deprecated.format": False})
    found.append(("payments", write(receipt, context("payments")), {"printed": True, "seal": "/wA="}))
    # An order cut short, and one whose id is a parcel's.
    order_bytes = found[0][1]
    found.append(("orders", order_bytes[:-3], None))
    found.append(("orders", found[2][1][:5] + order_bytes[5:], None))
    found.append(("parcels", found[2][1][:5] + b'{"weight": -1, "to": {}}', None))
    return found


def write_schemas_topic() -> None:
    """The records of ``_schemas`` for what is registered."""
    for subject in registry.get_subjects():
        for number in registry.get_versions(subject):
            found = registry.get_version(subject, number)
            schema = found.schema
            kind = {} if schema.schema_type in (None, "AVRO") else {"schemaType": schema.schema_type}
            references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references or ()]
            key = {"keytype": "SCHEMA", "subject": subject, "version": number, "magic": 1}
            value = {"subject": subject, "version": number, "id": found.schema_id, **kind, "references": references}
            value |= {"schema": schema.schema_str, "deleted": False}
            producer.produce("_schemas", json.dumps(value), json.dumps(key))
    producer.flush(10)


def guided_records(schemas: Path) -> None:
    """Avro and Protobuf with the schema's GUID in a header; the mock registry of confluent-kafka makes GUIDs."""
    mock = SchemaRegistryClient.new_client({"url": "mock://values"})
    write = AvroSerializer(mock, json.dumps(READING), conf={"schema.id.serializer": header_schema_id_serializer})
    headers: list[tuple[str, bytes]] = []
    value = write({"celsius": 21.5}, context("guided", headers=headers))
    produce("guided", value, {"celsius": 21.5}, headers=dict(headers))
    guid = str(uuid.UUID(bytes=dict(headers)["__value_schema_id"][1:17]))
    (schemas / f"{guid}.avsc").write_text(json.dumps(READING))


def framed_records(schemas: Path) -> None:
    """Frames of AWS Glue, stored and compressed, and Azure's header."""
    (schemas / f"{GLUE_VERSION}.avsc").write_text(json.dumps(READING))
    (schemas / f"{AZURE_ID}.avsc").write_text(json.dumps(READING))
    data = avro_bytes(READING, {"celsius": -4.25})
    produce("glued", b"\x03\x00" + GLUE_VERSION.bytes + data, {"celsius": -4.25})
    produce("glued", b"\x03\x05" + GLUE_VERSION.bytes + zlib.compress(data), {"celsius": -4.25})
    produce("azure", data, {"celsius": -4.25}, headers={"content-type": f"avro/binary+{AZURE_ID}"})
    produce("bare", data, {"celsius": -4.25})
    (schemas / "reading.avsc").write_text(json.dumps(READING))


def schemaless_records() -> None:
    """MessagePack, CBOR, CloudEvents in both modes, and JSON with trace context."""
    reading = {"sensor": 7, "values": [1.5, None, True], "raw": b"\x00\xff", "at": {"deep": {"er": "yes"}}}
    said = {**reading, "raw": {"base64": "AP8="}}
    produce("packed", msgpack.packb(reading), said)
    produce("concise", cbor2.dumps(reading), said)
    produce("concise", cbor2.dumps(datetime(2026, 1, 2, tzinfo=UTC)), "2026-01-02T00:00:00+00:00")
    attributes = {
        "id": "e-1",
        "source": "/shop",
        "type": "order.placed",
        "specversion": "1.0",
        "time": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "datacontenttype": "application/json",
    }
    event = CloudEvent(attributes, {"order": 1001})
    said = {**attributes, "time": "2026-01-02T03:04:05Z", "data": {"order": 1001}}
    for message in (to_binary_event(event), to_structured_event(event)):
        produce("events", message.value, said, headers=message.headers)
    trace = {"traceparent": TRACEPARENT}
    produce("traced", json.dumps({"order": 1001}).encode(), {"order": 1001}, headers=trace)
    trace = {"b3": "80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1"}
    produce("traced", json.dumps([1, 2]).encode(), [1, 2], headers=trace)


def consume(topics: list[str], count: int) -> None:
    """Reads it all once more."""
    settings = {"bootstrap.servers": bootstrap, "client.id": "office", "group.id": "office", "fetch.wait.max.ms": 200}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(topics)
    while count:
        message = consumer.poll(1.0)
        count -= message is not None and message.error() is None
    consumer.close()


def form(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


schemas = Path(folder) / "schemas"
schemas.mkdir()
records = shop_records(Path(folder))
write_schemas_topic()
for record in records:
    produce(*record)
guided_records(schemas)
framed_records(schemas)
schemaless_records()
producer.flush(10)
consume(sorted({row["topic"] for row in truth}), len(truth))
with (Path(folder) / "truth.jsonl").open("w") as stream:
    stream.writelines(json.dumps(row, default=form) + "\n" for row in truth)
