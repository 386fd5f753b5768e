"""Messages with a marked value wherever a credential can stand, and records of Kafka Connect's config topic.

Bodies and batches are encoded by Kafka's definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff import schema
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.model import Direction
from kwiresniff.schema.types import WireField
from tests.support.conversation import exchange_frames
from tests.support.encoding import encode_batch, encoder

SECRET = b"ZjSECRETjZ"
#: The value of a record of Connect's config topic, without the spaces that its converter leaves out.
CONNECT_CONFIGS = b'{"properties":{"connection.password":"' + SECRET + b'"}}'
_CONFIG = "ssl.keystore.password"
#: Requests and responses with credentials or configs, but for SASL's.
_APIS = (19, 32, 33, 38, 39, 40, 41, 44, 51)


def record_batch(key: bytes, value: bytes, *, codec: int = 0) -> bytes:
    """A batch of one record, without compression or with gzip (1)."""
    record = {"offset": 0, "timestamp": 1700000000000, "key": key, "value": value}
    return encode_batch({"records": [record], "compression": CODEC_NAMES[codec]})


def body(fields: tuple[WireField, ...], given: dict[str, Any]) -> dict[str, Any]:
    """A body with one element in each array; ``given`` are the values of fields by name."""
    return {field.name: value_of(field, given) for field in fields if field.tag is None}


def value_of(field: WireField, given: dict[str, Any]) -> Any:
    if field.array and field.type != "STRUCT":
        return []
    if field.type == "STRUCT":
        inner = body(field.fields, given)
        return [inner] if field.array else inner
    if field.name in given and (isinstance(given[field.name], bytes) == ("STRING" not in field.type)):
        return given[field.name]
    if "STRING" in field.type:
        return "orders"
    if field.type == "UUID":
        return given.get(field.name, "AAAAAAAAAAAAAAAAAAAAAA")
    return b"" if "BYTES" in field.type or "RECORDS" in field.type else False if field.type == "BOOLEAN" else 0


def encoded(api_key: int, version: int, direction: Direction, **given: Any) -> bytes:
    return encoder(api_key, version, direction)(body(schema.message(api_key, version, direction).fields, given))


def exchanges() -> Iterator[tuple[bytes, bytes]]:
    """A request and its response, as frames, in the first and the last version of each API."""
    configs: dict[str, Any] = {
        "name": _CONFIG, "config_name": _CONFIG, "key": _CONFIG, "value": SECRET.decode(),
        "config_value": SECRET.decode(), "hmac": SECRET, "salt": SECRET, "salted_password": SECRET,
    }  # fmt: skip
    for api_key in _APIS:
        for version in sorted(set(schema.version_range(api_key))):
            yield frames(api_key, version, configs)
    records = record_batch(b"connector-a", CONNECT_CONFIGS)
    yield frames(0, 8, {"name": "connect-configs", "records": records})
    yield frames(1, 11, {"topic": "connect-configs", "records": records})


def frames(api_key: int, version: int, given: dict[str, Any], correlation_id: int = 9) -> tuple[bytes, bytes]:
    """A request and its response with these values of fields."""
    asked, answered = (encoded(api_key, version, way, **given) for way in ("request", "response"))
    return exchange_frames(api_key, version, correlation_id, asked, answered)


def sasl_exchanges() -> Iterator[tuple[str, bytes, bytes]]:
    """A mechanism, a SaslAuthenticate request with a token of it, and a response with one."""
    for mechanism, token in (
        ("PLAIN", b"\0alice\0" + SECRET),
        ("SCRAM-SHA-256", b"c=biws,r=x,p=" + SECRET),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer " + SECRET + b"\x01\x01"),
        ("AWS_MSK_IAM", b'{"x-amz-signature":"' + SECRET + b'"}'),
        ("UNKNOWN", SECRET),
    ):
        asked, _ = frames(36, 1, {"auth_bytes": token})
        yield mechanism, asked, frames(36, 1, {"auth_bytes": SECRET})[1]
