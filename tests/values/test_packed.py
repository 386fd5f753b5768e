"""MessagePack and CBOR by the libraries that write them, and hostile bytes within bounds."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

msgpack = pytest.importorskip("msgpack")
cbor2 = pytest.importorskip("cbor2")

from kwiresniff.plugins.answers import TooMuch  # noqa: E402
from kwiresniff_values.limits import MAX_DECIMAL_BITS, MAX_PACKED_BYTES, MAX_VALUES  # noqa: E402
from kwiresniff_values.packed import read_cbor, read_msgpack  # noqa: E402
from kwiresniff_values.problems import Misfit  # noqa: E402

VALUE = {"a": [1, -2.5, None, True, b"\xff"], "b": {"c": "é"}, "d": 2**63}
SAID = {**VALUE, "d": str(2**63)}


def test_msgpack_is_read_as_it_was_packed() -> None:
    """Numbers of more than 63 bits become text; keys too."""
    assert read_msgpack(msgpack.packb(VALUE)) == SAID
    assert read_msgpack(msgpack.packb({1: {None: 2}})) == {"1": {"None": 2}}
    assert read_msgpack(msgpack.packb(msgpack.ExtType(5, b"x"))) == {"extension": 5, "data": b"x"}
    assert read_msgpack(msgpack.packb(msgpack.Timestamp(1, 5000))) == "1970-01-01T00:00:01.000005+00:00"


def test_cbor_is_read_as_it_was_packed() -> None:
    """Tags that mean something become what they mean."""
    more = {"t": datetime(2026, 1, 2, tzinfo=UTC), "n": Decimal("1.5"), "u": UUID(int=1)}
    said = {"t": "2026-01-02T00:00:00+00:00", "n": {"tag": 4, "value": [-1, 15]}, "u": str(UUID(int=1))}
    assert read_cbor(cbor2.dumps({**VALUE, **more})) == {**SAID, **said}
    assert read_cbor(bytes.fromhex("82f7f0")) == [None, {"simple": 16}]
    assert read_cbor(cbor2.dumps(cbor2.CBORTag(999, "x"))) == {"tag": 999, "value": "x"}


@pytest.mark.parametrize("tag", [4, 5, 30, 35, 36, 258])
def test_tags_that_would_compute_or_compile_are_left_alone(tag: int) -> None:
    """A regular expression, MIME, and exponents of any size."""
    assert read_cbor(cbor2.dumps(cbor2.CBORTag(tag, ["(a+)+$", 1]))) == {"tag": tag, "value": ["(a+)+$", 1]}


@pytest.mark.parametrize("read", [read_msgpack, read_cbor])
def test_what_breaks_off_or_goes_on_is_neither(read: Any) -> None:
    """Each cut, and one byte more."""
    data = (msgpack.packb if read is read_msgpack else cbor2.dumps)(VALUE)
    for end in range(len(data)):
        with pytest.raises(Misfit):
            read(data[:end])
    with pytest.raises(Misfit, match=r"left over|extra data"):
        read(data + b"\0")


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_msgpack, b"\x91" * 100_000),
        (read_cbor, b"\x81" * 100_000),
        (read_msgpack, b"\xdd\xff\xff\xff\xff" * 200),  # claims four billion items
        (read_cbor, bytes.fromhex("d81c81d81d00")),  # a list that is its own item
        (read_msgpack, b"\xdd" + (MAX_VALUES + 1).to_bytes(4, "big") + b"\0" * (MAX_VALUES + 1)),
        (read_cbor, b"\x9a" + (MAX_VALUES + 1).to_bytes(4, "big") + b"\0" * (MAX_VALUES + 1)),
    ],
)
def test_too_deep_or_too_many_is_too_much(read: Any, data: bytes) -> None:
    """In levels, in circles and in values."""
    with pytest.raises(TooMuch):
        read(data)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_cbor, b"\x9a\xff\xff\xff\xff" * 60),
        (read_msgpack, b"\xc6\xff\xff\xff\xff"),
        (read_cbor, b"\x5b\x00\x00\x00\x00\xff\xff\xff\xff"),
        (read_msgpack, b"\x81\x91\x01\x02"),  # a list for a key
        (read_cbor, bytes.fromhex("a1c2490100000000000000000102")),  # a number of 72 bits for a key
        (read_msgpack, b"\xc1"),
        (read_cbor, b"\x62\xff\xff"),
    ],
)
def test_what_claims_more_than_is_there_is_refused_without_making_room(read: Any, data: bytes) -> None:
    """A header of five bytes claims four billion items."""
    with pytest.raises(Misfit):
        read(data)


@pytest.mark.parametrize("read", [read_msgpack, read_cbor])
def test_bytes_are_bounded_before_anything_is_made_of_them(read: Any) -> None:
    """Each may be a list."""
    with pytest.raises(TooMuch, match=f"{MAX_PACKED_BYTES} bytes"):
        read(b"\x80" * (MAX_PACKED_BYTES + 1))


def test_a_number_of_many_bytes_is_hexadecimal() -> None:
    """Decimal digits would take the square of its length."""
    data = b"\xc2\x5a\x00\x03\x00\x00" + b"\xff" * 0x30000
    assert read_cbor(data) == "0x" + "ff" * 0x30000
    assert read_cbor(cbor2.dumps(2**MAX_DECIMAL_BITS - 1)) == str(2**MAX_DECIMAL_BITS - 1)
