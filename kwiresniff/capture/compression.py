"""Compressed captures, undone as a stream: gzip, zstd, xz, bzip2 and lz4 frames.

Input is read, and output is given, in pieces of bounded size, so a compression bomb costs time but no memory.
Several members or frames in a row (``cat a.gz b.gz``, parallel compressors) are one stream; what follows the
last one and is not another one is ignored, as gzip does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kwiresniff.capture.compressions import LONGEST_MAGIC, MAGICS, SKIPPABLE, DamagedStream, Source

if TYPE_CHECKING:
    import zstandard

#: Compressed bytes read at a time: large enough to make the calls cheap, small enough to stay in the cache.
INPUT_BYTES = 128 * 1024
#: The window a zstd or xz file may ask for: the zstd command's default limit, twice what ``xz -9`` needs.
MAX_WINDOW_BYTES = 128 * 1024 * 1024
#: Compressed bytes given to zstd at a time, 16 MiB decompressed at the worst: a 4-byte block may be 128 KiB.
ZSTD_STEP_BYTES = 512


class _Decoder(Protocol):
    """The common interface of the decompressors of bz2, lzma and lz4."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self._rest = b""
        self._full = False

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        # Output that stopped at its limit may have more behind it even when all input has been taken.
        return not self._rest and not self._full

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        output = self._inflate.decompress(self._rest + data, max_length)
        self._rest = self._inflate.unconsumed_tail
        self._full = len(output) == max_length
        return output


class _Zstd:
    """zstandard's decompressor with the others' interface, fed in small steps: the library does not bound the output of
    a call, and its stream reader does not report a cut frame.
    """

    def __init__(self, library: zstandard.ZstdDecompressor) -> None:
        """``library`` is for one frame after the other: to make one takes longer than to read a small frame."""
        self._decompressor = library.decompressobj()
        self._input = b""
        self._offset = 0
        self._output = b""
        self._given = 0

    @property
    def eof(self) -> bool:
        return self._decompressor.eof and self._given == len(self._output)

    @property
    def needs_input(self) -> bool:
        return self._given == len(self._output) and self._offset == len(self._input)

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data + self._input[self._offset :]

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if data:
            self._input, self._offset = self._input[self._offset :] + data, 0
        if self._given == len(self._output):
            self._output, self._given = self._steps(max_length), 0
        output = self._output[self._given : self._given + max_length]
        self._given += len(output)
        return output

    def _steps(self, enough: int) -> bytes:
        pieces, size = [], 0
        while size < enough and self._offset < len(self._input) and not self._decompressor.eof:
            step = self._input[self._offset : self._offset + ZSTD_STEP_BYTES]
            self._offset += len(step)
            pieces.append(self._decompressor.decompress(step))
            size += len(pieces[-1])
        return b"".join(pieces)


class _Members:
    """A row of compressed members, each undone by a fresh decompressor."""

    def __init__(self, name: str, source: Source, new: Callable[[], _Decoder], errors: tuple[type[Exception], ...]):
        self._name = name
        self._magics = tuple(magic for magic, known in MAGICS.items() if known == name)
        self._source = source
        self._new = new
        self._errors = errors
        self._decoder = new()
        self._input = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` decompressed bytes, none at the end; raises DamagedStream."""
        while not self._ended:
            decoder = self._decoder
            if decoder.needs_input and not self._input:
                self._input = self._source.read(INPUT_BYTES)
                if not self._input:
                    self._ended = True
                    raise DamagedStream(f"the {self._name} data breaks off")
            data, self._input = self._input, b""
            try:
                output = decoder.decompress(data, size)
            except self._errors as error:
                self._ended = True
                raise DamagedStream(f"the {self._name} data {_wrong(error)}") from error
            if decoder.eof:
                self._next_member(decoder.unused_data or b"")
            if output:
                return output
        return b""

    def _next_member(self, rest: bytes) -> None:
        rest = _behind_skippable(rest).lstrip(b"\0")  # xz pads with zeros, as tapes did
        while len(rest) < LONGEST_MAGIC:
            more = self._source.read(INPUT_BYTES)
            if not more:
                break
            rest = _behind_skippable(rest + more).lstrip(b"\0")
        if rest.startswith(self._magics):
            self._decoder = self._new()
            self._input = rest
        else:
            self._ended = True


def _behind_skippable(data: bytes) -> bytes:
    """The data behind its leading whole skippable frames: skipping each by a decompressor is 1,000 times slower."""
    at, end = 0, len(data)
    while data.startswith(SKIPPABLE, at) and at + 8 <= end:
        behind = at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        if behind > end:
            break
        at = behind
    return data[at:]


def _wrong(error: Exception) -> str:
    if "memory" in str(error).lower():  # both libraries say it in words only
        return f"takes more than {MAX_WINDOW_BYTES >> 20} MB of memory to decompress; decompress the file first"
    return f"is damaged ({error})"


def decompressed(name: str, source: Source) -> Source:
    """``source`` without its compression ``name``, one of the values of MAGICS. Its ``read`` raises DamagedStream."""
    if name == "zstd":
        import zstandard

        library = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        return _Members(name, source, lambda: _Zstd(library), (zstandard.ZstdError,))
    if name == "gzip":
        return _Members(name, source, _Gzip, (zlib.error,))
    if name == "bzip2":
        import bz2

        return _Members(name, source, bz2.BZ2Decompressor, (OSError, ValueError))
    if name == "xz":
        import lzma

        return _Members(name, source, lambda: lzma.LZMADecompressor(memlimit=MAX_WINDOW_BYTES), (lzma.LZMAError,))
    import lz4.frame

    return _Members(name, source, lz4.frame.LZ4FrameDecompressor, (RuntimeError,))
