"""What conversations are made of: who says which bytes, in turn, and the pieces that many protocols share."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from struct import pack

from tests.support.encoding.primitives import write_uvarint

CLIENT, SERVER = 0, 1
#: (side, bytes): what one side sends before the other does.
Said = list[tuple[int, bytes]]
Speaker = Callable[[Random], Said]

CONVERSATIONS: dict[str, Speaker] = {}
WORDS = (
    "orders", "payment", "billing-service", "client-1", "group", "user", "host", "topic", "consumer", "c-1", "default",
    "metrics", "a.b.c",
)  # fmt: skip
TURNS = 24


def conversation(name: str) -> Callable[[Speaker], Speaker]:
    def keep(speaker: Speaker) -> Speaker:
        CONVERSATIONS[name] = speaker
        return speaker

    return keep


def word(rng: Random) -> bytes:
    return rng.choice(WORDS).encode()


def framed(body: bytes) -> bytes:
    """With a big-endian length of 32 bits that does not count itself, as Kafka's frames."""
    return pack(">i", len(body)) + body


def s16(text: bytes) -> bytes:
    return pack(">H", len(text)) + text


def s32(text: bytes) -> bytes:
    return pack(">I", len(text)) + text


def protobuf(*fields: tuple[int, int | bytes]) -> bytes:
    """Fields as (number, value): varints and bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += write_uvarint(number << 3) + write_uvarint(value)
        else:
            out += write_uvarint(number << 3 | 2) + write_uvarint(len(value)) + value
    return out
