"""Elements are jumped over by their definition; the bytes are written by hand after the protocol guide."""

from __future__ import annotations

from random import Random

import pytest

from kwiresniff import codec, schema
from kwiresniff.codec.body_walker import GARBLED, ElementSkipper, MessageSkipper
from kwiresniff.codec.plan import element_plan
from kwiresniff.errors import DecodeError
from kwiresniff.model import Direction
from kwiresniff.schema.types import WireField
from tests.support.encoding import encoder
from tests.support.random_bodies import random_body

FLEXIBLE = WireField(
    "results",
    "STRUCT",
    fields=(
        WireField("error_code", "INT16", enum="error_code"),
        WireField("name", "COMPACT_NULLABLE_STRING"),
        WireField("replicas", "INT32", array=True, nullable=True),
        WireField("data", "COMPACT_BYTES"),
        WireField("epoch", "INT32", tag=0, default=-1),
    ),
)
OLD = WireField(
    "topics",
    "STRUCT",
    fields=(
        WireField("name", "STRING"),
        WireField("rate", "FLOAT64"),
        WireField("partitions", "STRUCT", array=True, fields=(WireField("records", "RECORDS"),)),
    ),
)
#: Error code, name "a", replicas 1 and 2, no data, no tagged fields.
ELEMENT = b"\0\0" + b"\x02a" + b"\x03\0\0\0\1\0\0\0\2" + b"\x01" + b"\0"


def skipped(field: WireField, flexible: bool, raw: bytes, at: int = 0) -> tuple[int, ElementSkipper]:
    skipper = ElementSkipper(raw)
    return skipper.skip(element_plan(field, flexible), at), skipper


def test_an_element_ends_behind_its_last_field() -> None:
    """Four fields, two values in the array, and the element itself."""
    end, skipper = skipped(FLEXIBLE, True, b"xyz" + ELEMENT + b"more", 3)
    assert (end, skipper.nodes) == (3 + len(ELEMENT), 7)
    assert not (skipper.failed or skipper.garbled or skipper.loaded or skipper.recorded)


@pytest.mark.parametrize("size", range(len(ELEMENT)))
def test_an_element_that_is_cut_anywhere_is_not_skipped(size: int) -> None:
    """Whoever reads on says what is missing."""
    assert skipped(FLEXIBLE, True, ELEMENT[:size])[0] == -1


def test_what_there_would_be_to_tell_is_noticed() -> None:
    """An error code, a name that is not UTF-8, bytes, records."""
    assert skipped(FLEXIBLE, True, b"\0\3" + ELEMENT[2:])[1].failed
    assert skipped(FLEXIBLE, True, ELEMENT.replace(b"a", b"\xff"))[1].garbled
    assert skipped(FLEXIBLE, True, ELEMENT[:-2] + b"\x02z\0")[1].loaded
    old = b"\0\1t" + bytes(8) + b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\1r"
    end, skipper = skipped(OLD, False, old)
    assert (end, skipper.nodes, skipper.recorded) == (len(old), 8, True)


def test_tagged_fields_are_passed_over_known_or_not() -> None:
    """Tag 0 with its four bytes, tag 9 with one; a known one of another size than it says is not skipped."""
    front = ELEMENT[:-1]
    end, skipper = skipped(FLEXIBLE, True, front + b"\2" + b"\0\4\0\0\0\7" + b"\x09\1x")
    assert (end, skipper.nodes) == (len(front) + 10, 9)
    assert skipped(FLEXIBLE, True, front + b"\1" + b"\0\5\0\0\0\7x")[0] == -1


def test_nulls_are_skipped_where_they_may_be() -> None:
    """The name and the replicas may be null, the data may not."""
    assert skipped(FLEXIBLE, True, b"\0\0\0\0\1\0")[0] == 6
    assert skipped(FLEXIBLE, True, b"\0\0\0\0\0\0")[0] == -1


def test_counts_and_lengths_that_cannot_be_are_not_skipped() -> None:
    """More replicas than there are bytes, and a varint of six bytes."""
    assert skipped(FLEXIBLE, True, b"\0\0\0" + b"\xff\xff\xff\xff\x07" + bytes(100))[0] == -1
    assert skipped(FLEXIBLE, True, b"\0\0\0" + b"\xff\xff\xff\xff\xff\x07" + bytes(100))[0] == -1


def test_a_value_without_fields_is_an_element_too() -> None:
    """Strings one behind the other."""
    assert skipped(WireField("names", "COMPACT_STRING"), True, b"\x03ab\x01")[0] == 3
    assert skipped(WireField("codes", "INT8"), True, b"\7\7", 1)[0] == 2


DIRECTIONS: tuple[Direction, Direction] = ("request", "response")


def test_a_message_is_passed_over_where_it_can_be_decoded_and_nowhere_else() -> None:
    """Random bodies of the oldest and the newest version of every message, sound, cut and damaged: what the decoder
    says of each."""
    rng = Random("skipped messages")
    taken = refused = 0
    for api_key in schema.API_NAMES:
        for version, direction in {(version, way) for version in schema.version_range(api_key) for way in DIRECTIONS}:
            message = schema.message(api_key, version, direction)
            skipper, decode = MessageSkipper(message), codec.decoder(api_key, version, direction, "skip")
            raw = encoder(api_key, version, direction)(random_body(message, rng))
            for _ in range(12):
                damaged = bytearray(raw[: rng.randint(0, len(raw))] if rng.random() < 0.2 else raw)
                for _ in range(rng.randint(0, 2) if damaged else 0):
                    damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
                frame = b"header" + bytes(damaged)
                try:
                    _, expected = decode(frame, 6, [])
                    taken += 1
                except DecodeError:
                    expected = -1
                    refused += 1
                assert skipper.skip(frame, 6) == expected, (message.name, version, direction, frame)
    assert min(taken, refused) > 1_000


def test_where_no_element_is_skipped_what_is_said_is_about_the_first() -> None:
    """So that it need not be read again: a text that is not UTF-8, and an element that breaks off."""
    steps = element_plan(FLEXIBLE, True)
    garbled = ELEMENT.replace(b"a", b"\xff")
    skipper = ElementSkipper(garbled + ELEMENT)
    assert skipper.run(steps, 0, 2, 100, GARBLED) == 0
    assert (skipper.end, skipper.nodes, skipper.garbled) == (len(ELEMENT), 7, True)
    skipper = ElementSkipper(ELEMENT[:-1])
    assert skipper.run(steps, 0, 1, 100, GARBLED) == 0
    assert skipper.end == -1
