"""The skimmer is never surer than the scanner: what it calls clean holds no error code and fits."""

from __future__ import annotations

import random

import pytest

from kwiresniff.codec import encoder, error_skimmer, scanner
from kwiresniff.codec.skim import skimmer
from kwiresniff.errors import DecodeError
from tests.codec.definitions import array, field, message
from tests.oracle.vectors import entries

ERRORS = frozenset({"error_code"})


def says_nothing(api_key: int, version: int, data: bytes) -> bool:
    try:
        return scanner(api_key, version, "response", ERRORS)(data, 0) == []
    except DecodeError:
        return False


def responses() -> list[tuple[int, int, bytes]]:
    return [
        (entry.api_key, entry.version, vector.raw)
        for entry in entries()
        if entry.kind == "response"
        for vector in entry.vectors
    ]


def test_kafkas_own_bytes_are_clean_only_where_the_scanner_finds_nothing() -> None:
    clean = 0
    for api_key, version, data in responses():
        skim = error_skimmer(api_key, version)
        if skim is not None and skim.clean(data, 0):
            clean += 1
            assert says_nothing(api_key, version, data), (api_key, version)
    assert clean > 300


def test_damaged_bytes_are_never_called_clean_when_they_are_not() -> None:
    rng = random.Random(7)
    for api_key, version, data in responses()[::7]:
        skim = error_skimmer(api_key, version)
        if skim is None or not data:
            continue
        for _ in range(12):
            broken = bytearray(data)
            broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            cut = bytes(broken[: rng.randrange(len(broken) + 1)]) if rng.random() < 0.3 else bytes(broken)
            if skim.clean(cut, 0):
                assert says_nothing(api_key, version, cut), (api_key, version, cut)


@pytest.mark.parametrize(("code", "clean"), [(0, True), (6, False), (-1, False)])
def test_a_produce_response_is_clean_without_an_error(code: int, clean: bool) -> None:
    partition = {"index": 0, "error_code": code, "base_offset": 7, "log_append_time_ms": -1, "log_start_offset": 0,
                 "record_errors": [], "error_message": None}  # fmt: skip
    body = {"responses": [{"name": "orders", "partition_responses": [partition]}], "throttle_time_ms": 0}
    data = encoder(0, 8, "response")(body)
    skim = error_skimmer(0, 8)
    assert skim is not None
    assert skim.clean(b"head" + data, 4) is clean


def test_codes_that_are_no_plain_field_are_left_to_the_scanner() -> None:
    assert skimmer(message(array("error_code", "INT16")), ERRORS) is None
    assert skimmer(message(field("error_code", "INT32")), ERRORS) is None
