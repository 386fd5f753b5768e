"""Integers read out of bytes, and whether the hot modules are compiled: machine integers then, as ``i64`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64


def u16(data: bytes, at: i64) -> i64:
    """Two bytes at ``at``, big-endian."""
    high: i64 = data[at]
    low: i64 = data[at + 1]
    return high << 8 | low


def u32(data: bytes, at: i64) -> i64:
    """Four bytes at ``at``, big-endian."""
    first: i64 = data[at]
    second: i64 = data[at + 1]
    third: i64 = data[at + 2]
    last: i64 = data[at + 3]
    return first << 24 | second << 16 | third << 8 | last


def u32_little(data: bytes, at: i64) -> i64:
    """Four bytes at ``at``, little-endian."""
    first: i64 = data[at]
    second: i64 = data[at + 1]
    third: i64 = data[at + 2]
    last: i64 = data[at + 3]
    return last << 24 | third << 16 | second << 8 | first


def i16(data: bytes, at: i64) -> i64:
    """Two bytes at ``at``, big-endian, signed."""
    return (u16(data, at) ^ 0x8000) - 0x8000


def i32(data: bytes, at: i64) -> i64:
    """Four bytes at ``at``, big-endian, signed."""
    return (u32(data, at) ^ 0x80000000) - 0x80000000


#: A compiled function is no Python function.
COMPILED: Final[bool] = type(u16).__name__ != "function"
