"""Windowed keys, by the layouts of Kafka Streams' serializers."""

from __future__ import annotations

import struct

import pytest

from kwiresniff_values.windows import windowed

START = 1_767_323_045_678  # 2026-01-02T03:04:05.678Z
SAID = "2026-01-02T03:04:05.678Z"


def test_a_repartition_topic_has_the_start_behind_the_key() -> None:
    """Eight bytes."""
    found = windowed("app-by-window-repartition", b"/start" + struct.pack(">q", START))
    assert found == (b"/start", {"start": SAID, "start_ms": START})


def test_a_changelog_has_a_sequence_number_behind_it() -> None:
    """Four more bytes."""
    found = windowed("app-store-changelog", b"/start" + struct.pack(">qi", START, 3))
    assert found == (b"/start", {"start": SAID, "start_ms": START, "sequence": 3})


@pytest.mark.parametrize("topic", ["app-store-changelog", "app-x-repartition"])
def test_a_session_has_its_end_and_its_start(topic: str) -> None:
    """In this order."""
    found = windowed(topic, b"k" + struct.pack(">qq", START + 1_000, START))
    assert found is not None and found.key == b"k"
    assert found.members == {
        "start": SAID,
        "end": "2026-01-02T03:04:06.678Z",
        "start_ms": START,
        "end_ms": START + 1_000,
    }


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ("orders", b"/start" + struct.pack(">q", START)),
        (None, b"/start" + struct.pack(">q", START)),
        ("app-x-repartition", b"a key of text only"),
        ("app-x-changelog", b"a key of text only"),
        ("app-x-changelog", struct.pack(">q", 7)),
        ("app-x-changelog", b""),
        ("app-x-repartition", b"k" + struct.pack(">q", 946_684_799_999)),
        ("app-x-repartition", b"k" + struct.pack(">q", 4_102_444_800_000)),
    ],
)
def test_other_keys_and_topics_have_no_window(topic: str | None, key: bytes) -> None:
    """A time outside of this century is none."""
    assert windowed(topic, key) is None
