"""What ApiVersions responses offer, which are read once for all clients that get the same."""

from __future__ import annotations

from typing import Any

from kwiresniff.analysis.offered_versions import MAX_READ, OfferReader
from kwiresniff.model import Message


def answer(frame: bytes, *offers: tuple[int, int, int], version: int = 3, size_bytes: int = 0) -> Message:
    """A response with these bytes that offers ``(api_key, lowest, highest)``."""
    body: dict[str, Any] = {
        "api_keys": [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in offers]
    }
    message = Message(1, 0, 1, 0, size_bytes or len(frame), frame)
    message.version, message.body_offset, message.body = version, 4, body
    return message


def test_the_same_bytes_are_read_once() -> None:
    """Whatever the correlation id before them."""
    reader = OfferReader()
    first = reader.offer_in(answer(b"\0\0\0\1same", (0, 3, 11), (18, 0, 4)))
    assert first == {0: (3, 11), 18: (0, 4)}
    assert reader.offer_in(answer(b"\0\0\0\2same")) is first


def test_other_bytes_versions_and_what_is_cut_are_read_anew() -> None:
    reader = OfferReader()
    assert reader.offer_in(answer(b"\0\0\0\1same", (0, 3, 11))) == {0: (3, 11)}
    assert reader.offer_in(answer(b"\0\0\0\1else", (0, 3, 12))) == {0: (3, 12)}
    assert reader.offer_in(answer(b"\0\0\0\1same", (0, 3, 13), version=0)) == {0: (3, 13)}
    assert reader.offer_in(answer(b"\0\0\0\1same", (0, 3, 14), size_bytes=9)) == {0: (3, 14)}


def test_it_forgets_all_when_there_are_too_many() -> None:
    """So that forged answers take no more memory than real ones."""
    reader = OfferReader()
    first = reader.offer_in(answer(b"\0\0\0\1same", (0, 3, 11)))
    for number in range(MAX_READ):
        reader.offer_in(answer(b"\0\0\0\1" + bytes([number]), (number, 0, 1)))
    assert reader.offer_in(answer(b"\0\0\0\1same", (0, 3, 11))) is not first
