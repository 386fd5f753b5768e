"""A digest says of a body what the decoded body says, and there is none where anything else would have to be told."""

from __future__ import annotations

import random
import struct
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.analysis.body_entities import names_of, partitions_of
from kwiresniff.analysis.topic_parts import parts_of
from kwiresniff.base.api_keys import FETCH, PRODUCE, SHARE_FETCH
from kwiresniff.codec import digests
from kwiresniff.codec.digests import DigestReader
from kwiresniff.codec.field_layout import MAX_ENTRIES
from kwiresniff.digest import Digest
from kwiresniff.errors import DecodeError
from kwiresniff.model import Body, Direction, Problem
from kwiresniff.schema.index import Api
from tests.support.encoding import encoder
from tests.support.error_codes import error_codes
from tests.support.random_bodies import random_body, usual_body
from tests.support.record_vectors import vectors
from tests.support.sample import sampled

INTERNAL_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
#: Bodies made of each message in each version.
ROUNDS = 3


def reader() -> DigestReader:
    return DigestReader(INTERNAL_ID.__eq__)


def names_in(body: Body) -> tuple[list[str], list[str], list[str]]:
    """Topics, groups and transactional ids of a decoded body."""
    found = names_of(body)
    return list(found.topics), list(found.groups), list(found.transactional_ids)


def named(digest: Digest) -> tuple[list[str], list[str], list[str]]:
    """Those of a digest, each once."""
    topics = [*(digest.topics or ()), *(digest.topic_ids or ())]
    lists = (topics, digest.groups or (), digest.transactional_ids or ())
    return tuple(list(dict.fromkeys(one)) for one in lists)  # type: ignore[return-value]


def partitions(digest: Digest) -> list[int]:
    """The partitions of the topics of a Produce or Fetch, and all others, each once."""
    parts = [partition.index for topic in digest.parts or () for partition in topic.partitions]
    return list(dict.fromkeys([*parts, *(digest.partitions or ())]))


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_it_names_what_the_decoded_body_names(api: Api, direction: Direction) -> None:
    """Every message at every version, whole, with a byte too many, and cut."""
    read = reader()
    first, last = getattr(api, f"{direction}_versions")
    for version in range(first, last + 1):
        steps = read.steps(api.key, version, direction)
        if steps is None:
            continue
        definition = schema.message(api.key, version, direction)
        rng = random.Random(f"{api.name} {direction} {version} digests")
        for _ in range(ROUNDS):
            body = usual_body(definition, rng)
            raw = encoder(api.key, version, direction)(body)
            digest = read.digest(steps, b"head" + raw, 4)
            assert digest is not None, body
            assert named(digest) == names_in(body), body
            assert partitions(digest) == partitions_of(body), body
            assert digest.throttle_time_ms == body.get("throttle_time_ms", 0)
            assert digest.acks == body.get("acks", -1)
            assert digest.replica_id == body.get("replica_id", -1)
            assert digest.session_id == body.get("session_id", 0)
            assert read.pos == len(raw) + 4
            assert read.digest(steps, raw + b"\0", 0) is not None
            assert read.pos == len(raw)
            for cut in range(0, len(raw), max(1, len(raw) // 8)):
                assert read.digest(steps, raw[:cut], 0) is None


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
def test_there_is_none_of_a_body_of_which_something_has_to_be_told(api: Api) -> None:
    """Error codes and noise: where there is a digest, the decoder finds none of those."""
    read = reader()
    first, last = api.response_versions
    for version in range(first, last + 1):
        steps = read.steps(api.key, version, "response")
        if steps is None:
            continue
        rng = random.Random(f"{api.name} {version} odd digests")
        raw = encoder(api.key, version, "response")(random_body(schema.message(api.key, version, "response"), rng))
        odd = [raw, rng.randbytes(rng.randrange(90))]
        for _ in range(4 * bool(raw)):
            damaged = bytearray(raw)
            damaged[rng.randrange(len(raw))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            odd.append(bytes(damaged))
        for data in odd:
            if read.digest(steps, data, 0) is not None:
                issues: list[Problem] = []
                body, end = codec.decoder(api.key, version, "response", "headers")(data, 0, issues)
                assert (end, issues) == (read.pos, [])
                assert error_codes(schema.message(api.key, version, "response"), body) == []
            errors: list[tuple[str, int]] = []
            digest = read.digest(steps, data, 0, errors)
            if digest is not None:
                body, _ = codec.decoder(api.key, version, "response", "headers")(data, 0, [])
                assert error_codes(schema.message(api.key, version, "response"), body) == errors
                assert named(digest) == names_in(body)


def test_tagged_fields_that_nobody_knows_are_passed_over() -> None:
    """ListGroups v5 of one group: 9 is nobody's tag, and a section may not have more fields than bytes."""
    read = reader()
    steps = read.steps(16, 5, "response")
    assert steps is not None
    head, group = bytes(6) + b"\2", b"\2g\1\1\1"
    for section in (b"\0", b"\1\x09\0", b"\2\x09\2ab\x0a\0"):
        digest = read.digest(steps, head + group + section + section, 0)
        assert digest is not None and digest.groups == ["g"]
    for section in (b"\1\x09\1", b"\2\x09\0", b"\x7f", b"\x81\1\x09\0"):
        assert read.digest(steps, head + group + b"\0" + section, 0) is None


def fetched(wire: bytes, topic: str = "orders") -> bytes:
    """The body of a Fetch v11 response with a partition of a record set."""
    partition: dict[str, Any] = {
        "partition_index": 3, "error_code": 0, "high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0,
        "aborted_transactions": None, "preferred_read_replica": -1, "records": [],
    }  # fmt: skip
    responses = [{"topic": topic, "partitions": [partition]}]
    body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 1, "responses": responses}
    return encoder(FETCH, 11, "response")(body)[:-4] + len(wire).to_bytes(4, "big") + wire


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_batches_are_counted_as_the_decoder_counts_them(row: dict[str, Any]) -> None:
    """One batch, several, and one that is cut short; message sets are the decoder's."""
    read = reader()
    steps = read.steps(FETCH, 11, "response")
    assert steps is not None
    for wire in (row["wire"], row["wire"] * 3, row["wire"] + row["wire"][:-1], row["wire"] + row["wire"][:5]):
        frame = fetched(wire)
        issues: list[Problem] = []
        body, _ = codec.decoder(FETCH, 11, "response", "headers")(frame, 0, issues)
        batches = body["responses"][0]["partitions"][0]["records"]
        digest = read.digest(steps, frame, 0)
        if issues or wire[16] != 2:
            assert digest is None
            continue
        assert digest is not None
        assert digest.parts is not None
        whole = [batch for batch in batches if not batch.get("truncated")]
        assert digest.is_cut == (len(whole) < len(batches))
        assert digest.parts[0].partitions[0].is_cut == digest.is_cut
        assert (digest.batches, digest.records) == (len(whole), sum(batch["records_count"] for batch in whole))
        (topic,) = digest.parts
        (partition,) = topic.partitions
        assert (topic.name, topic.is_id, partition.index, partition.high_watermark) == ("orders", False, 3, 9)
        of_records = [batch for batch in whole if not batch["is_control"]]
        assert partition.batches == len(of_records)
        assert partition.records == sum(batch["records_count"] for batch in of_records)
        assert partition.size_bytes == sum(batch["size_bytes"] for batch in of_records)
        assert partition.is_idempotent == any(batch["producer_id"] >= 0 for batch in whole)
        named = [batch for batch in whole if batch["producer_id"] >= 0][:1]
        names = [(batch["producer_id"], batch["producer_epoch"], batch["base_sequence"]) for batch in named]
        assert partition.producer == b"".join(struct.pack(">qhi", *one) for one in names if one[2] >= 0)
        assert {partition.codec} >= {batch["attributes"] & 7 for batch in of_records}
        fields = {"create_time": "base_timestamp", "log_append_time": "max_timestamp"}
        stamps = [batch[fields[batch["timestamp_type"]]] for batch in of_records]
        assert partition.oldest_ms == min((one for one in stamps if one >= 0), default=-1)
        assert partition.oldest_ms == parts_of(body)[0].partitions[0].oldest_ms
        assert (partition.first_offset, partition.crc) == (whole[0]["base_offset"], whole[0]["crc"])
        assert partition.end_offset == whole[-1]["base_offset"] + whole[-1]["last_offset_delta"] + 1


def test_records_of_a_share_fetch_do_not_count_in_the_partition_of_the_fetch_before() -> None:
    """Whoever holds the digest of the Fetch back would find records in it that came to somebody else."""
    wire, read = next(row["wire"] for row in vectors() if row["wire"][16] == 2), reader()
    steps, shared = read.steps(FETCH, 11, "response"), read.steps(SHARE_FETCH, 1, "response")
    assert steps is not None and shared is not None
    part = {
        "partition_index": 0, "error_code": 0, "error_message": None, "acknowledge_error_code": 0,
        "acknowledge_error_message": None, "current_leader": {"leader_id": 0, "leader_epoch": 0}, "records": wire,
        "acquired_records": [],
    }  # fmt: skip
    body = {
        "throttle_time_ms": 0, "error_code": 0, "error_message": None, "acquisition_lock_timeout_ms": 1,
        "responses": [{"topic_id": "AAAAAAAAAAAAAAAAAAAAAg", "partitions": [part]}], "node_endpoints": [],
    }  # fmt: skip
    held = read.digest(steps, fetched(b""), 0)
    assert held is not None and held.parts is not None
    given = read.digest(shared, encoder(SHARE_FETCH, 1, "response")(body), 0)
    assert given is not None and given.batches == 1
    (partition,) = held.parts[0].partitions
    assert (partition.batches, partition.records, partition.all_bytes, partition.first_offset) == (0, 0, 0, -1)


def test_offsets_stay_within_64_bits() -> None:
    """A batch at the largest offset there is ends there, however many records it says it has."""
    wire = next(row["wire"] for row in vectors() if row["wire"][16] == 2 and int.from_bytes(row["wire"][23:27], "big"))
    behind = int.from_bytes(wire[23:27], "big") + 1
    largest = 2**63 - 1
    read = reader()
    steps = read.steps(FETCH, 11, "response")
    assert steps is not None
    for base, end in (
        (largest, largest),
        (largest - behind, largest),
        (-(2**63), behind - 2**63),
        (2**62, 2**62 + behind),
    ):
        frame = fetched(base.to_bytes(8, "big", signed=True) + wire[8:])
        digest = read.digest(steps, frame, 0)
        assert digest is not None and digest.parts is not None
        body, _ = codec.decoder(FETCH, 11, "response", "headers")(frame, 0, [])
        for topic in (digest.parts[0], parts_of(body)[0]):
            assert (topic.partitions[0].first_offset, topic.partitions[0].end_offset) == (base, end)


def test_batches_of_different_codecs_are_for_the_decoder() -> None:
    """A partition of a digest has one codec."""
    plain = next(row["wire"] for row in vectors() if row["wire"][16] == 2 and not row["wire"][22] & 7)
    packed = next(row["wire"] for row in vectors() if row["wire"][16] == 2 and row["wire"][22] & 7)
    read = reader()
    steps = read.steps(FETCH, 11, "response")
    assert steps is not None
    assert read.digest(steps, fetched(plain + plain), 0) is not None
    assert read.digest(steps, fetched(plain + packed), 0) is None


def test_records_of_kafkas_own_topics_are_for_the_decoder() -> None:
    """What is in them gets opened, by name and by id."""
    read = reader()
    steps = read.steps(FETCH, 11, "response")
    assert steps is not None
    assert read.digest(steps, fetched(b"", topic="__consumer_offsets"), 0) is None
    by_id = read.steps(PRODUCE, 13, "request")
    assert by_id is not None
    for topic_id in (INTERNAL_ID, "ABEiM0RVZneImaq7zN3u_w"):
        body = {"transactional_id": None, "acks": -1, "timeout_ms": 1, "topic_data": [
            {"topic_id": topic_id, "partition_data": [{"index": 0, "records": []}]}]}  # fmt: skip
        digest = read.digest(by_id, encoder(PRODUCE, 13, "request")(body), 0)
        assert (digest is None) == (topic_id == INTERNAL_ID)


def test_a_name_that_comes_again_is_the_same_text() -> None:
    """Where it is looked up, it is found without being compared; another one between them is not taken for it."""
    read = reader()
    steps = read.steps(FETCH, 11, "response")
    assert steps is not None
    found = []
    for topic in ("orders", "orders", "orders2", "bestellungen-ü", "orders", "orders"):
        digest = read.digest(steps, fetched(b"", topic=topic), 0)
        assert digest is not None and digest.topics is not None and digest.parts is not None
        assert digest.topics == [topic] == [part.name for part in digest.parts]
        found += digest.topics
    assert found[0] is found[1] and found[4] is found[5]
    bad = fetched(b"", topic="orders").replace(b"orders", b"orders"[:-1] + b"\xff")
    assert read.digest(steps, bad, 0) is None
    again = read.digest(steps, fetched(b"", topic="orders"), 0)
    assert again is not None and again.topics == ["orders"]


def test_a_forgotten_topic_does_not_take_the_place_of_a_fetched_one() -> None:
    """Both are named; only what is fetched has partitions."""
    read = reader()
    steps = read.steps(FETCH, 11, "request")
    assert steps is not None
    body = {
        "replica_id": -1, "max_wait_ms": 1, "min_bytes": 1, "max_bytes": 1, "isolation_level": 0, "session_id": 5,
        "session_epoch": 2, "rack_id": "",
        "topics": [{"topic": "a", "partitions": [
            {"partition": 4, "current_leader_epoch": 0, "fetch_offset": 2**40, "log_start_offset": -1,
             "partition_max_bytes": 1}]}],
        "forgotten_topics_data": [{"topic": "b", "partitions": [1]}],
    }  # fmt: skip
    digest = read.digest(steps, encoder(FETCH, 11, "request")(body), 0)
    assert digest is not None
    assert digest.topics == ["a", "b"]
    assert digest.parts is not None
    assert [(topic.name, [(one.index, one.offset) for one in topic.partitions]) for topic in digest.parts] == [
        ("a", [(4, 2**40)])
    ]


def test_a_message_of_too_many_values_is_for_the_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoders count what a message is made of, and say when it is too much; a digest is made of as many values."""
    read = reader()
    steps = read.steps(3, 0, "request")
    assert steps is not None
    for count, fits in ((MAX_ENTRIES, True), (MAX_ENTRIES + 1, False)):
        raw = count.to_bytes(4, "big") + bytes(2 * count)
        assert (read.digest(steps, raw, 0) is not None) is fits
        with nullcontext() if fits else pytest.raises(DecodeError, match="values"):
            codec.decoder(3, 0, "request", "headers")(raw, 0, [])


def test_the_ids_that_are_remembered_are_forgotten_in_time() -> None:
    """More ids than are kept give the same texts as few."""
    read = reader()
    steps = read.steps(FETCH, 13, "request")
    assert steps is not None
    frame = encoder(FETCH, 13, "request")(
        {"replica_id": -1, "max_wait_ms": 1, "min_bytes": 1, "max_bytes": 1, "isolation_level": 0, "session_id": 0,
         "session_epoch": 0, "rack_id": "", "forgotten_topics_data": [],
         "topics": [{"topic_id": f"{at:020}AA", "partitions": []} for at in range(digests.MAX_IDS + 50)]}
    )  # fmt: skip
    digest = read.digest(steps, frame, 0)
    assert digest is not None
    assert digest.topic_ids == [f"{at:020}AA" for at in range(digests.MAX_IDS + 50)]


def test_noise_is_never_more_than_noise() -> None:
    """No bytes make the reader fail, or read beyond their end."""
    read = reader()
    rng = random.Random("noise")
    for api_key, version in ((PRODUCE, 3), (PRODUCE, 12), (FETCH, 11), (FETCH, 16), (8, 8), (68, 0)):
        for direction in ("request", "response"):
            steps = read.steps(api_key, version, direction)
            for _ in range(200 if steps is not None else 0):
                data = rng.randbytes(rng.randrange(60)) if rng.random() < 0.5 else bytes(rng.randrange(60))
                if steps is not None and read.digest(steps, data, 0) is not None:
                    with suppress(DecodeError):
                        assert codec.decoder(api_key, version, direction, "headers")(data, 0, [])[1] == read.pos
