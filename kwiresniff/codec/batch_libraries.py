"""The libraries that batches are read and written with, each loaded when the first one needs it.

They take milliseconds to load, and many a short capture has no batch, or none that is compressed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def crc32c() -> Callable[[bytes], int]:
    """The function for the checksum of batches of magic 2 (CRC-32C, Castagnoli)."""
    from google_crc32c import value

    function: Callable[[bytes], int] = value
    return function


@cache
def cramjam() -> Any:
    """The module for all compression codecs."""
    import cramjam

    return cramjam
