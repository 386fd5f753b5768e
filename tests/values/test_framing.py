"""Frames in front of payloads and headers, by the descriptions of those who write them."""

from __future__ import annotations

import struct
import zlib
from typing import Any
from uuid import UUID

import pytest

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.framing import MAX_INDEXES, claims, inflated, message_indexes, message_name
from kwiresniff_values.limits import MAX_PAYLOAD_BYTES
from kwiresniff_values.problems import Misfit

GUID = UUID("3dfd5e15-fed2-4e3c-9039-71478db70f95")


def found(data: bytes, part: str = "value", **headers: bytes | None) -> list[tuple[str, str, bytes]]:
    said = [{"key": name.replace("__dot__", "."), "value": value} for name, value in headers.items()]
    return [(claim.by, claim.id, claim.payload) for claim in claims(part, data, said)]


def test_confluents_id_stands_in_front() -> None:
    """A byte 0 and four bytes; of nine bytes or more it may be Apicurio's id of eight as well."""
    assert found(b"\0\0\0\1\0abc") == [("id", "256", b"abc")]
    assert found(b"\0" + struct.pack(">Q", 7) + b"abc") == [
        ("id", "0", b"\0\0\0\7abc"),
        ("global id", "7", b"abc"),
    ]
    assert found(b"\0\0\0\0") == found(b"") == found(b"\1\0\0\0\1abc") == []


def test_eight_bytes_may_be_a_number_of_kafkas_own() -> None:
    """LongSerializer writes eight bytes that begin with a 0."""
    (claim,) = claims("value", struct.pack(">q", 1 << 24), [])
    assert claim.doubtful and claim.id == "1"


def test_confluents_guid_stands_in_a_header_of_its_part() -> None:
    """A byte 1 and sixteen bytes, then the indexes of a Protobuf message; an id in a header as well."""
    header = b"\1" + GUID.bytes
    assert found(b"abc", __value_schema_id=header) == [("guid", str(GUID), b"abc")]
    assert found(b"abc", "key", __key_schema_id=header) == [("guid", str(GUID), b"abc")]
    assert found(b"abc", "key", __value_schema_id=header) == []
    assert found(b"abc", __value_schema_id=b"\0\0\0\0\5") == [("id", "5", b"abc")]
    for broken in (b"", b"\1", header[:-1], b"\2" + GUID.bytes, header + b"\xff", None):
        assert found(b"abc", __value_schema_id=broken) == []
    (claim,) = claims("value", b"abc", [{"key": "__value_schema_id", "value": header + b"\4\2\0"}])
    assert claim.indexes == (1, 0)


def test_apicurios_id_stands_in_a_header() -> None:
    """Eight bytes, global or of a content."""
    for name, by in (("globalId", "global id"), ("contentId", "content id")):
        header: dict[str, Any] = {"key": f"apicurio.value.{name}", "value": struct.pack(">Q", 12)}
        assert [(c.by, c.id) for c in claims("value", b"abc", [header])] == [(by, "12")]
        assert list(claims("key", b"abc", [header])) == []


def test_apicurio_names_a_message_of_protobuf_in_front() -> None:
    """As ``Ref { string name = 1; }`` behind its length; Confluent's indexes are no such thing."""
    assert message_name(b"\7\n\5Meter\n\5north") == ("Meter", b"\n\5north")
    assert message_name(b"\3\n\1M") == ("M", b"")
    for other in (b"", b"\0\n\5north", b"\7\n\6Meter", b"\7\n\5Mete", b"\7\n\5\xffeter", b"\xff\n\5Meter", b"\4\2\0"):
        assert message_name(other) is None


def test_glues_version_stands_in_front() -> None:
    """A byte 3, a byte for the compression, a UUID."""
    assert found(b"\3\0" + GUID.bytes + b"abc") == [("version id", str(GUID), b"abc")]
    (claim,) = claims("value", b"\3\5" + GUID.bytes + zlib.compress(b"abc"), [])
    assert claim.compressed and inflated(claim.payload) == b"abc"
    assert found(b"\3\1" + GUID.bytes + b"abc") == found(b"\3\0" + GUID.bytes[:-1]) == []


def test_azures_id_stands_in_the_content_type() -> None:
    """Of Avro alone."""
    header: dict[str, Any] = {"key": "content-type", "value": b"avro/binary+4f2c8dd2"}
    assert [(c.registry, c.id) for c in claims("value", b"abc", [header])] == [("azure", "4f2c8dd2")]
    for other in (b"application/json", b"avro/binary", b"avro/binary+../x", b"\xff"):
        assert list(claims("value", b"abc", [{"key": "content-type", "value": other}])) == []


def test_indexes_of_a_message_are_zigzag_varints() -> None:
    """As Confluent's documentation has them: [1, 0] is 2, 1, 0; a single 0 stands for [0]."""
    assert message_indexes(b"\0abc") == ((0,), b"abc")
    assert message_indexes(b"\4\2\0abc") == ((1, 0), b"abc")
    assert message_indexes(b"\2\x80\2abc") == ((128,), b"abc")


@pytest.mark.parametrize("data", [b"", b"\4\2", b"\xff" * 10, b"\3", bytes([0x82, 0x01])])
def test_indexes_that_break_off_or_have_no_end_do_not_fit(data: bytes) -> None:
    """Neither does a negative number of them, or more than there can be."""
    with pytest.raises(Misfit):
        message_indexes(data)
    assert message_indexes(b"\x80\1" + b"\0" * MAX_INDEXES) == ((0,) * MAX_INDEXES, b"")


def test_decompression_is_bounded() -> None:
    """A megabyte and no more; what breaks off or is no zlib does not fit."""
    assert inflated(zlib.compress(b"\0" * MAX_PAYLOAD_BYTES)) == b"\0" * MAX_PAYLOAD_BYTES
    with pytest.raises(TooMuch, match=f"more than {MAX_PAYLOAD_BYTES}"):
        inflated(zlib.compress(b"\0" * (MAX_PAYLOAD_BYTES + 1)))
    for data in (b"abc", zlib.compress(b"abc")[:-1]):
        with pytest.raises(Misfit):
            inflated(data)
