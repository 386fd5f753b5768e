"""The skimmer is never surer than the scanner: the error codes it is certain of are those that the scanner finds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwiresniff.codec import encoder, error_skimmer, scanner
from kwiresniff.codec.error_scan import MAX_CODES, skimmer
from kwiresniff.errors import DecodeError
from tests.support.definitions import array, field, message
from tests.support.kafka_vectors import entries

ERRORS = frozenset({"error_code"})


def scanned(api_key: int, version: int, data: bytes) -> list[int] | None:
    try:
        return [code for _, code in scanner(api_key, version, "response", ERRORS)(data, 0)]
    except DecodeError:
        return None


def responses() -> list[tuple[int, int, bytes]]:
    return [
        (entry.api_key, entry.version, vector.raw)
        for entry in entries()
        if entry.kind == "response"
        for vector in entry.vectors
    ]


def test_in_kafkas_own_bytes_it_finds_the_codes_that_the_scanner_finds() -> None:
    clean = wrong = 0
    for api_key, version, data in responses():
        skim = error_skimmer(api_key, version)
        codes = skim.codes(data, 0) if skim is not None else None
        if codes is not None:
            clean, wrong = clean + (not codes), wrong + bool(codes)
            assert codes == scanned(api_key, version, data), (api_key, version)
    assert clean > 300
    assert wrong > 300


def test_of_damaged_bytes_it_is_never_surer_than_the_scanner() -> None:
    rng = random.Random(7)
    for api_key, version, data in responses()[::7]:
        skim = error_skimmer(api_key, version)
        if skim is None or not data:
            continue
        for _ in range(12):
            broken = bytearray(data)
            broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            cut = bytes(broken[: rng.randrange(len(broken) + 1)]) if rng.random() < 0.3 else bytes(broken)
            codes = skim.codes(cut, 0)
            if codes is not None:
                assert codes == scanned(api_key, version, cut), (api_key, version, cut)


def produced(*codes: int) -> bytes:
    """A Produce response v8 with a partition for each code, behind four bytes that are none of it."""
    partitions: list[dict[str, Any]] = [
        {"index": 0, "error_code": code, "base_offset": 7, "log_append_time_ms": -1, "log_start_offset": 0,
         "record_errors": [], "error_message": None}
        for code in codes
    ]  # fmt: skip
    body = {"responses": [{"name": "orders", "partition_responses": partitions}], "throttle_time_ms": 0}
    return b"head" + encoder(0, 8, "response")(body)


@pytest.mark.parametrize("codes", [[0], [6], [-1], [0, 6, 0, -1, 32767]])
def test_the_codes_that_are_not_zero_come_in_order(codes: list[int]) -> None:
    skim = error_skimmer(0, 8)
    assert skim is not None
    assert skim.codes(produced(*codes), 4) == [code for code in codes if code]


def test_codes_without_number_are_left_to_the_scanner() -> None:
    skim = error_skimmer(0, 8)
    assert skim is not None
    assert skim.codes(produced(*[6] * MAX_CODES), 4) == [6] * MAX_CODES
    assert skim.codes(produced(*[6] * (MAX_CODES + 1)), 4) is None


def test_codes_that_are_no_plain_field_are_left_to_the_scanner() -> None:
    assert skimmer(message(array("error_code", "INT16")), ERRORS) is None
    assert skimmer(message(field("error_code", "INT32")), ERRORS) is None
