"""The compressions that captures come in, recognised by content, and how what undoes one is read."""

from __future__ import annotations

from typing import Protocol

#: A skippable frame of zstd, which pzstd puts before each other one: this, the length of what follows, and that.
SKIPPABLE = b"\x50\x2a\x4d\x18"
#: First bytes of the compressed formats, and what people call them.
MAGICS: dict[bytes, str] = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    SKIPPABLE: "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
}
LONGEST_MAGIC = max(map(len, MAGICS))


class Source(Protocol):
    """Bytes in order: at most ``size`` of them a call, none at the end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""


class DamagedStream(Exception):
    """The compressed bytes break off or make no sense; the message says which, as the end of a sentence."""


def compression_of(head: bytes) -> str:
    """The name of the compression of data that starts with ``head``, or an empty text."""
    return next((name for magic, name in MAGICS.items() if head.startswith(magic)), "")
