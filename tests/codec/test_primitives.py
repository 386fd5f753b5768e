from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwiresniff.codec import primitives, record
from kwiresniff.errors import DecodeError
from tests.support.encoding.primitives import uuid_bytes, write_uvarint

# The worked examples of the Protocol Buffers encoding guide, which the protocol guide refers to, and the limits.
UVARINTS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8001",
    150: "9601",
    300: "ac02",
    16384: "808001",
    2**32 - 1: "ffffffff0f",
}
VARINTS = {0: "00", -1: "01", 1: "02", -2: "03", 2**31 - 1: "feffffff0f", -(2**31): "ffffffff0f"}
VARLONGS = {0: "00", -64: "7f", 64: "8001", 2**63 - 1: "feffffffffffffffff01", -(2**63): "ffffffffffffffffff01"}

Read = Callable[[bytes, int], tuple[int, int]]


def read_varint(raw: bytes, position: int) -> tuple[int, int]:
    return record.read_varint(raw, position, 5)


def read_varlong(raw: bytes, position: int) -> tuple[int, int]:
    return record.read_varint(raw, position, 10)


KINDS = [
    pytest.param(primitives.read_uvarint, write_uvarint, UVARINTS, "truncated", id="uvarint"),
    pytest.param(read_varint, primitives.write_varlong, VARINTS, "bad_record", id="varint"),
    pytest.param(read_varlong, primitives.write_varlong, VARLONGS, "bad_record", id="varlong"),
]


@pytest.mark.parametrize(("read", "write", "vectors", "code"), KINDS)
def test_varints_are_written_and_read_as_the_guides_say(
    read: Read, write: Callable[[int], bytes], vectors: dict[int, str], code: str
) -> None:
    for value, text in vectors.items():
        raw = bytes.fromhex(text)
        assert write(value) == raw
        assert read(b"\xff" + raw + b"\xff", 1) == (value, 1 + len(raw))


@pytest.mark.parametrize(("read", "write", "vectors", "code"), KINDS)
def test_a_varint_cut_short_is_refused(
    read: Read, write: Callable[[int], bytes], vectors: dict[int, str], code: str
) -> None:
    for text in vectors.values():
        raw = bytes.fromhex(text)
        for cut in range(len(raw)):
            with pytest.raises(DecodeError) as caught:
                read(raw[:cut], 0)
            assert caught.value.code == code


@pytest.mark.parametrize(
    ("read", "most", "code"),
    [(primitives.read_uvarint, 5, "bad_varint"), (read_varint, 5, "bad_record"), (read_varlong, 10, "bad_record")],
)
def test_a_varint_longer_than_its_type_is_refused(read: Read, most: int, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read(b"\x80" * most + b"\x01", 0)
    assert caught.value.code == code


def test_an_unsigned_varint_of_more_than_32_bits_is_refused() -> None:
    with pytest.raises(DecodeError) as caught:
        primitives.read_uvarint(b"\xff\xff\xff\xff\x1f", 0)
    assert caught.value.code == "bad_varint"


def test_a_varint_with_needless_zero_groups_is_read() -> None:
    assert primitives.read_uvarint(b"\x83\x80\x00", 0) == (3, 3)


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (write_uvarint, -1),
        (write_uvarint, 2**32),
        (primitives.write_varlong, -(2**63) - 1),
    ],
)
def test_what_does_not_fit_is_not_written(write: Callable[[int], bytes], value: Any) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        write(value)


def test_uuids_print_as_kafka_prints_them() -> None:
    # The first is the topic id of Kafka's own metadata topic.
    assert primitives.uuid_text(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert primitives.uuid_text(b"\xff\xef" + b"\xfb" * 14) == "_-_7-_v7-_v7-_v7-_v7-w"


@given(st.binary(min_size=16, max_size=16))
def test_uuids_come_back_from_their_text(raw: bytes) -> None:
    assert uuid_bytes(primitives.uuid_text(raw)) == raw


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 23, "A" * 21 + "B", "A" * 21 + "!", "é" * 22, "AAAAAAAAAAAAAAAAAAAAA+"]
)
def test_what_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a UUID"):
        uuid_bytes(text)


def test_tag_sections_are_read_whole_and_bounded() -> None:
    section = bytes.fromhex("02 00 01 aa 9001 02 bbcc")
    assert primitives.read_tags(section, 1, section[0]) == ({0: b"\xaa", 144: b"\xbb\xcc"}, len(section))
    assert primitives.skip_tags(section, 1, section[0]) == len(section)
    for cut in range(1, len(section)):
        with pytest.raises(DecodeError):
            primitives.read_tags(section[:cut], 1, section[0])
    with pytest.raises(DecodeError) as caught:
        primitives.read_tags(b"\xff\xff\xff\xff\x0f", 1, 0xFF)
    assert caught.value.code == "bad_array_count"
