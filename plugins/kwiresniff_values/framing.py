"""Which schema a key or value names, in front of its bytes or in the record's headers.

* Confluent: byte 0 and the schema's id in 4 bytes, or, in the header ``__key_schema_id`` or ``__value_schema_id``, byte
  1 and the schema's GUID in 16 bytes. For Protobuf the indexes of the message follow either of them: zigzag varints,
  their number first; a single 0 stands for the first message. See "Wire format" in Schema Registry's documentation.
* Apicurio Registry: byte 0 and a content id in 4 bytes, as Confluent, or byte 0 and a global id in 8; or the header
  ``apicurio.value.globalId`` or ``.contentId`` (8 bytes), with ``apicurio.key`` for keys. ``apicurio.value.encoding``
  is JSON where Avro is written so. For Protobuf a message ``Ref { string name = 1; }`` follows, behind its length.
* AWS Glue Schema Registry: byte 3, a byte that is 5 where zlib compresses the rest and else 0, the UUID of the schema's
  version in 16 bytes.
* Azure Schema Registry: content type ``avro/binary+ID`` in the header ``content-type``.

All numbers are big endian.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_PAYLOAD_BYTES
from kwiresniff_values.problems import Misfit

CONFLUENT_HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
#: Kafka's own numbers of eight bytes begin with a 0 as well.
LONG_BYTES = 8
MAX_INDEXES = 64
_GLUE_STORED, _GLUE_ZLIB = 0, 5
_GLUE_PREFIX = 18
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]*")
_AZURE = re.compile(r"avro/binary\+([0-9a-zA-Z]{1,64})")


class Claim(NamedTuple):
    """A schema by its ``id`` in what ``registry`` calls so, and the bytes that are said to be of it.

    ``by`` is ``id``, ``guid``, ``content id``, ``global id`` or ``version id``. Where ``indexes`` are not None they are
    not in the payload. What is ``doubtful`` may be a number of Kafka's own just as well. What is ``compressed`` is so
    by zlib; with ``in_json`` it is JSON, whatever the schema is.
    """

    registry: str
    by: str
    id: str
    payload: bytes
    indexes: tuple[int, ...] | None = None
    doubtful: bool = False
    compressed: bool = False
    in_json: bool = False

    def __str__(self) -> str:
        return f"{self.by} {self.id}"


def claims(part: str, data: bytes, headers: Iterable[Mapping[str, Any]]) -> Iterator[Claim]:
    """The claims that a key or value may make, the most certain first."""
    by_name = {header.get("key"): header.get("value") for header in headers}
    texts = {
        name.lower(): value for name, value in by_name.items() if isinstance(name, str) and isinstance(value, bytes)
    }
    named = _confluent_header(part, data, texts) or _apicurio_header(part, data, texts) or _azure(data, texts)
    if named is not None:
        yield named
        return
    if data[:1] == b"\0" and len(data) >= 5:
        doubtful = len(data) == LONG_BYTES
        yield Claim("confluent", "id", str(int.from_bytes(data[1:5], "big")), data[5:], doubtful=doubtful)
        if len(data) >= 9:
            yield Claim("apicurio", "global id", str(int.from_bytes(data[1:9], "big")), data[9:])
    elif data[:1] == b"\3" and len(data) >= _GLUE_PREFIX and data[1] in (_GLUE_STORED, _GLUE_ZLIB):
        identity = str(UUID(bytes=data[2:_GLUE_PREFIX]))
        yield Claim("glue", "version id", identity, data[_GLUE_PREFIX:], compressed=data[1] == _GLUE_ZLIB)


def _confluent_header(part: str, data: bytes, headers: Mapping[str, bytes]) -> Claim | None:
    said = headers.get(CONFLUENT_HEADERS[part])
    if said is None:
        return None
    if said[:1] == b"\1" and len(said) >= 17:
        by, identity, rest = "guid", str(UUID(bytes=said[1:17])), said[17:]
    elif said[:1] == b"\0" and len(said) >= 5:
        by, identity, rest = "id", str(int.from_bytes(said[1:5], "big")), said[5:]
    else:
        return None
    try:
        indexes = message_indexes(rest)[0] if rest else ()
    except Misfit:
        return None
    return Claim("confluent", by, identity, data, indexes)


def _apicurio_header(part: str, data: bytes, headers: Mapping[str, bytes]) -> Claim | None:
    for by, name in (("global id", "globalid"), ("content id", "contentid")):
        said = headers.get(f"apicurio.{part}.{name}")
        if said is not None and len(said) == LONG_BYTES:
            in_json = headers.get(f"apicurio.{part}.encoding") == b"JSON"
            return Claim("apicurio", by, str(int.from_bytes(said, "big")), data, in_json=in_json)
    return None


def _azure(data: bytes, headers: Mapping[str, bytes]) -> Claim | None:
    match = _AZURE.fullmatch(headers.get("content-type", b"").decode("utf-8", "replace"))
    return Claim("azure", "id", match[1], data, ()) if match else None


def message_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """The indexes of a Protobuf message in its file, outermost first, and the bytes behind them; raises Misfit."""
    count, at = _zigzag(data, 0)
    if count == 0:
        return (0,), data[at:]
    if not 0 < count <= MAX_INDEXES:
        raise Misfit(f"a message has {count} indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return tuple(indexes), data[at:]


def message_name(data: bytes) -> tuple[str, bytes] | None:
    """The name of a Protobuf message that Apicurio's serializer writes in front, and the bytes behind it; or None."""
    if len(data) < 3 or data[0] > 0x7F or data[1] != 0x0A or data[2] != data[0] - 2 or len(data) <= data[0]:
        return None
    end = data[0] + 1
    match = _NAME.fullmatch(data[3:end])
    return (match[0].decode("ascii"), data[end:]) if match else None


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at == len(data) or shift > 28:
            raise Misfit("the indexes of the message break off")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def inflated(data: bytes) -> bytes:
    """The data that zlib compressed; raises Misfit for other bytes, TooMuch beyond MAX_PAYLOAD_BYTES."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, MAX_PAYLOAD_BYTES + 1)
    except zlib.error as error:
        raise Misfit(f"no zlib: {error}") from None
    if len(found) > MAX_PAYLOAD_BYTES:
        raise TooMuch(f"that decompresses to more than {MAX_PAYLOAD_BYTES} bytes")
    if not stream.eof:
        raise Misfit("zlib breaks off")
    return found
