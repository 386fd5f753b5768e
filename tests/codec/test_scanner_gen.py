"""Quick scans find what the steps of a scanner find, or leave the body to them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.codec import body_scanner
from kwiresniff.codec.body_scanner import BodyScanner
from kwiresniff.codec.field_layout import LARGE_BYTES
from kwiresniff.codec.scan_steps import leaf_steps, record_set_steps
from kwiresniff.codec.scanner_gen import compile_quick_scan
from kwiresniff.schema.types import MessageVersion
from tests.support.definitions import (
    EVERYTHING,
    EVERYTHING_BYTES,
    PRODUCE_RESPONSE_V8,
    PRODUCE_RESPONSE_V8_BYTES,
    array,
    message,
)
from tests.support.kafka_vectors import entries
from tests.support.sample import sampled

#: What ``stats`` asks for, by error codes and topics, and numbers that stand between strings.
LEAVES = (
    frozenset({"error_code"}), frozenset({"topicName", "topic_id"}), frozenset({"error_code", "topicName", "topic_id"}),
    frozenset({"throttle_time_ms", "error_message"}),
)  # fmt: skip


def quick(definition: MessageVersion, raw: bytes, *wanted: str) -> list[tuple[str, Any]] | None:
    """What the quick scan for some leaves finds."""
    return compile_quick_scan(leaf_steps(definition, frozenset(wanted)))(raw, 0)


def test_leaves_are_found_by_name_enumeration_and_entity() -> None:
    """Of a Produce response with an error in it."""
    raw = PRODUCE_RESPONSE_V8_BYTES
    assert quick(PRODUCE_RESPONSE_V8, raw, "throttle_time_ms") == [("throttle_time_ms", 100)]
    assert quick(PRODUCE_RESPONSE_V8, raw, "error_code", "topicName") == [("name", "t"), ("error_code", 6)]
    found = [("index", 3), ("batch_index", 2), ("error_message", "no!")]
    assert quick(PRODUCE_RESPONSE_V8, raw, "index", "error_message", "batch_index") == found


def test_every_type_is_found() -> None:
    """In a message with a field of each type, up to where it has tagged fields, which are left to the steps."""
    wanted = ("flag", "small", "port", "crc", "ratio", "topic_id", "name", "blob")
    assert quick(EVERYTHING, EVERYTHING_BYTES, *wanted) is None  # a structure behind these has a port as well
    assert quick(EVERYTHING, EVERYTHING_BYTES, *(name for name in wanted if name != "port")) == [
        ("flag", True), ("small", -1), ("crc", 2147483649), ("ratio", 1.5), ("topic_id", "ABEiM0RVZneImaq7zN3u_w"),
        ("name", "ab"), ("blob", b"\x00\xff"),
    ]  # fmt: skip


@pytest.mark.parametrize("every", sampled([5, 1], first=1))
def test_it_finds_what_the_steps_find_in_kafkas_own_bytes_and_in_damaged_ones(every: int) -> None:
    """Messages at all versions, whole, cut and with a byte changed. Of whole ones it leaves few to the steps."""
    rng = random.Random(5)
    agreed = left = kept = 0
    for entry in entries()[::every]:
        if entry.kind not in ("request", "response"):
            continue
        definition = schema.message(entry.api_key, entry.version, entry.kind)
        for steps in (*(leaf_steps(definition, leaves) for leaves in LEAVES), record_set_steps(definition)):
            scan, scanner = compile_quick_scan(steps), BodyScanner(steps)
            for raw in (vector.raw for vector in entry.vectors[:3]):
                found = scan(raw, 0)
                assert scanner.scan(raw, 0), (entry.title, entry.version)
                assert found is None or found == scanner.found, (entry.title, entry.version)
                agreed, left = agreed + (found is not None), left + (found is None)
                broken = bytearray(raw or b"\0")
                broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
                for bad in (bytes(broken), raw[: rng.randrange(len(raw) + 1)]):
                    found = scan(bad, 0)
                    fits = scanner.scan(bad, 0)
                    assert found is None or (fits and found == scanner.found), (entry.title, entry.version, bad)
                    kept += found is not None
    assert agreed > 4 * left and kept > 300 / every


def test_a_large_frame_is_left_to_the_steps() -> None:
    """Steps count what it is made of."""
    definition = message(array("topics", "COMPACT_STRING", entity="topicName"), flexible=True)
    raw = b"\x03\x02a\x02b"
    assert quick(definition, raw + bytes(LARGE_BYTES - len(raw)), "topicName") == [("topics", "a"), ("topics", "b")]
    assert quick(definition, raw + bytes(LARGE_BYTES + 1 - len(raw)), "topicName") is None


@pytest.mark.parametrize("raw", ["7fffffff 0000", "ffffffff", "00000001 fffe 00000000", "00000001 0001 74 80000000"])
def test_hostile_counts_and_lengths_are_left_to_the_steps(raw: str) -> None:
    """Before anything is made of them."""
    assert quick(PRODUCE_RESPONSE_V8, bytes.fromhex(raw), "throttle_time_ms") is None


def test_a_scanner_goes_on_as_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the quick scan that it has made, interpreted: of bodies with errors, without, and cut ones."""
    monkeypatch.setattr(body_scanner, "QUICK_AFTER", 1)
    sound = PRODUCE_RESPONSE_V8_BYTES.replace(b"\0\0\0\3\0\6", b"\0\0\0\3\0\0")
    scanner = BodyScanner(leaf_steps(PRODUCE_RESPONSE_V8, frozenset({"error_code"})))
    for _ in range(3):
        assert scanner.scan(PRODUCE_RESPONSE_V8_BYTES, 0) and scanner.found == [("error_code", 6)]
        assert not scanner.scan(PRODUCE_RESPONSE_V8_BYTES[:20], 0, 55) and scanner.found == [("error_code", 6)]
        assert scanner.scan(sound, 0) and scanner.found == []
