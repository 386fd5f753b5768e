"""Inputs from seeds: bytes changed at random, and messages changed where their fields are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from struct import pack
from typing import TypeAlias

from kwiresniff.codec.dissector import dissect
from kwiresniff.model import Node
from kwiresniff.schema.types import MessageVersion

#: Lengths, counts and offsets that hurt careless readers, in two's complement of any width.
EVIL = (-(2**63), -(2**31), -(2**15), -2, -1, 0, 1, 2, 127, 128, 255, 2**15 - 1, 2**16, 2**24, 2**30, 2**31 - 1, 2**40)
#: UNSIGNED_VARINTs that are too long, too large, or not finished.
EVIL_VARINTS = (
    b"\0", b"\x80", b"\x80" * 5, b"\x80" * 10, b"\xff" * 5, b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07",
)  # fmt: skip
#: Offset of a field, its bytes, and whether a varint leads it.
Place: TypeAlias = tuple[int, int, bool]
#: No input is larger; what is to be found in larger ones is a matter of limits, which have tests of their own.
MAX_INPUT_BYTES = 1 << 16

_WIDTHS = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}


def evil_integer(rng: Random, width: int) -> bytes:
    """One of ``EVIL`` as an integer of ``width`` bytes, big-endian."""
    bits = 8 * width
    value = rng.choice(EVIL) & (1 << bits) - 1
    return pack(_WIDTHS[width], value - (1 << bits) if value >> bits - 1 else value)


def _flip(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _integer(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    width = rng.choice((1, 2, 4, 8))
    at = rng.randrange(len(data))
    data[at : at + width] = evil_integer(rng, width)


def _varint(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    data[at : at + rng.randrange(3)] = rng.choice(EVIL_VARINTS)


def _delete(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randint(1, 40)]


def _repeat(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    piece = data[at : at + rng.randint(1, 64)]
    data[at:at] = piece * rng.randint(1, 8)


def _insert(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.randint(1, 16))


def _cut(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data)) :]


def _splice(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    if other:
        start = rng.randrange(len(other))
        at = rng.randrange(len(data))
        data[at : at + rng.randrange(32)] = other[start : start + rng.randint(1, 64)]


_CHANGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip, _set, _set, _integer, _integer, _varint, _delete, _repeat, _insert, _cut, _splice,
)  # fmt: skip


def mutated(rng: Random, seed: bytes, seeds: Sequence[bytes], front: int = 0) -> bytes:
    """``seed`` with one to four changes behind its first ``front`` bytes."""
    data = bytearray(seed[front:])
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        rng.choice(_CHANGES)(rng, data, seeds)
    return seed[:front] + bytes(data[:MAX_INPUT_BYTES])


def places_of(definition: MessageVersion, body: bytes) -> tuple[Place, ...]:
    """Where the fields of a message begin."""
    found: list[Place] = []
    todo: list[Node] = [dissect(definition, body, 0).root]
    while todo and len(found) < 500:
        node = todo.pop()
        if node.offset < len(body) and node.length:
            counted = definition.flexible and node.type in ("ARRAY", "TAGGED_FIELDS")
            found.append((node.offset, node.length, counted or node.type.startswith("COMPACT")))
        todo += node.children
    return tuple(found)


def with_evil_fields(rng: Random, body: bytes, places: Sequence[Place]) -> bytes:
    """A message in which a few fields hold what they should not: evil numbers, lengths and counts, or nothing."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 3) if places else 0):
        at, length, compact = rng.choice(places)
        if at >= len(data):
            continue
        choice = rng.random()
        if choice < 0.15:
            del data[at : at + length]
        elif choice < 0.25:
            data[at:at] = data[at : at + length] * rng.randint(1, 4)
        elif compact:
            data[at : at + 1] = rng.choice(EVIL_VARINTS)
        else:
            width = length if length in _WIDTHS else rng.choice((2, 4))
            data[at : at + width] = evil_integer(rng, width)
    return bytes(data[:MAX_INPUT_BYTES])
