"""Bodies by a plan: the ones that the generated decoders give, or none."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.codec.decoder_gen import Decoder, compile_decoder, holds_records
from kwiresniff.codec.field_layout import MAX_ENTRIES
from kwiresniff.codec.primitives import write_uvarint
from kwiresniff.codec.text.body_values import PlanDecoder, ValueReader, value_steps
from kwiresniff.errors import DecodeError
from kwiresniff.model import Direction
from kwiresniff.schema.index import Api
from kwiresniff.schema.types import MessageVersion
from tests.support.random_bodies import random_body, usual_body
from tests.support.sample import sampled

#: Bodies made of each message in each version, and bytes changed in each.
ROUNDS = 3
CHANGES = 8


def by_plan(definition: MessageVersion, frame: bytes, offset: int = 0) -> dict[str, Any] | None:
    """The body of which the frame is the rest."""
    steps, reader = value_steps(definition), ValueReader()
    assert steps is not None
    body = reader.body(steps, frame, offset)
    return body if reader.pos == len(frame) else None


def raised() -> Decoder:
    raise AssertionError("a decoder was made")


def check(definition: MessageVersion, encode: Any) -> None:
    """Whole bodies, bodies with a byte too many, with other bytes, and cut."""
    if holds_records(definition.fields):
        assert value_steps(definition) is None
        return
    decode = compile_decoder(definition)
    steps, reader = value_steps(definition), ValueReader()
    if steps is None:
        assert "FLOAT64" in repr(definition)
        return
    rng = random.Random(f"{definition.name} {definition.kind} {definition.version}")
    for made in (random_body, usual_body):
        for _ in range(ROUNDS):
            raw = encode(made(definition, rng))
            body, end = decode(b"head" + raw, 4, [])
            assert end == 4 + len(raw)
            found = by_plan(definition, b"head" + raw, 4)
            assert repr(found) == repr(body)  # the text tells True from 1, and has the order of members
            if found is not None:
                assert repr(PlanDecoder(steps, raised)(raw + b"\0", 0, [])) == repr(decode(raw + b"\0", 0, []))
            for cut in range(0, len(raw), max(1, len(raw) // CHANGES)):
                assert by_plan(definition, raw[:cut]) is None
            for _ in range(CHANGES if raw else 0):
                at = rng.randrange(len(raw))
                changed = raw[:at] + rng.randbytes(1) + raw[at + 1 :]
                found = reader.body(steps, changed, 0)
                if found is not None:
                    assert repr((found, reader.pos)) == repr(decode(changed, 0, []))


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_every_message_at_every_version_reads_as_the_generated_decoder_has_it(api: Api, direction: Direction) -> None:
    first, last = getattr(api, f"{direction}_versions")
    for version in range(first, last + 1):
        check(schema.message(api.key, version, direction), codec.encoder(api.key, version, direction))


def test_every_message_inside_others_reads_as_the_generated_decoder_has_it() -> None:
    """Subscriptions, records of internal topics and the like; none of them is called differently."""
    for name in schema.data_names():
        first, last = schema.data_versions(name)
        for version in range(first, last + 1):
            check(schema.data_message(name, version), codec.data_encoder(name, version))


def test_unknown_tagged_fields_are_kept_as_bytes_and_those_out_of_order_are_left_to_the_decoder() -> None:
    """ApiVersions v3: features are tag 0, their epoch is tag 1, 9 is nobody's."""
    definition = schema.message(18, 3, "response")
    head, features, epoch, other = b"\0\0\1\0\0\0\0", b"\0\1\1", b"\1\x08" + b"\0" * 7 + b"\5", b"\x09\1x"
    body = by_plan(definition, head + b"\2" + features + epoch)
    assert body is not None and body["finalized_features_epoch"] == 5
    assert by_plan(definition, head + b"\2" + epoch + features) is None
    body = by_plan(definition, head + b"\1" + other)
    assert body is not None and body["_tagged_fields"] == {9: b"x"} and body["finalized_features_epoch"] == -1
    assert by_plan(definition, head + b"\1" + other[:-1]) is None
    assert by_plan(definition, head + b"\1" + b"\0\2\1") is None, "a size of one more than the field has"


def test_a_decoder_is_made_for_what_is_unusual_alone() -> None:
    """Heartbeat v0: three fields, of which the last is a string."""
    definition = schema.message(12, 0, "request")
    steps = value_steps(definition)
    assert steps is not None
    raw = b"\0\1g" + b"\0\0\0\7" + b"\0\1m"
    body = {"group_id": "g", "generation_id": 7, "member_id": "m"}
    assert PlanDecoder(steps, raised)(b"?" + raw, 1, []) == (body, 11)
    decode = PlanDecoder(steps, lambda: compile_decoder(definition))
    assert PlanDecoder(steps, raised)(raw + b"more", 0, []) == decode(raw + b"more", 0, []) == (body, 10)
    with pytest.raises(DecodeError):
        decode(raw[:-1], 0, [])
    with pytest.raises(AssertionError, match="a decoder was made"):
        PlanDecoder(steps, raised)(raw[:-1], 0, [])


def test_more_values_than_a_message_may_be_made_of_are_left_to_the_decoder_which_says_so() -> None:
    """ListGroups v4 asks for groups in a state, a string of one byte where it is empty; DescribeProducers v0 for
    partitions of a topic, eight of which count as one."""
    definition = schema.message(16, 4, "request")
    steps = value_steps(definition)
    assert steps is not None
    for count, fits in ((MAX_ENTRIES, True), (MAX_ENTRIES + 1, False)):
        raw = write_uvarint(count + 1) + b"\1" * count + b"\0"
        assert (by_plan(definition, raw) is not None) is fits
    with pytest.raises(DecodeError, match=f"more than {MAX_ENTRIES:,} values"):
        PlanDecoder(steps, lambda: compile_decoder(definition))(raw, 0, [])
    numbers = b"\2\1" + write_uvarint(MAX_ENTRIES + 9) + bytes(4 * (MAX_ENTRIES + 8)) + b"\0\0"
    body = by_plan(schema.message(61, 0, "request"), numbers)
    assert body is not None and len(body["topics"][0]["partition_indexes"]) == MAX_ENTRIES + 8
