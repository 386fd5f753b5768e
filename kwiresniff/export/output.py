"""Where output goes: a file, compressed when its name says so, or standard output for ``-``.

A file appears under its name only when it is complete: it is written beside it under a temporary name that nobody can
foresee, for nobody else to read, and moved into place by ``close`` with the mode that a new file has, or the one before
it had. What is not a regular file (a FIFO, ``/dev/stdout``) is written to directly.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, BinaryIO, Self

from kwiresniff.errors import ExportError

#: Fewer and larger writes: a write costs about 2 us of system call, so a line each would be felt.
BUFFER_BYTES = 1 << 20
#: zlib's 6 costs more time than all the decoding; 3 keeps most of the ratio on JSON at a third of the time.
GZIP_LEVEL = 3
ZSTD_LEVEL = 3

COMPRESSIONS = (".gz", ".zst")


def split_name(path: str) -> tuple[str, str]:
    """The format and the compression a name asks for: ``a.jsonl.gz`` is ``("jsonl", ".gz")``."""
    name = os.path.basename(path).lower()
    compression = next((ending for ending in COMPRESSIONS if name.endswith(ending)), "")
    if compression:
        name = name[: -len(compression)]
    return os.path.splitext(name)[1].lstrip("."), compression


class Output:
    """A binary stream to write to, and what has to happen when it is done.

    Used as a context manager it commits at a clean exit and at Ctrl-C (what was written so far is kept), and
    discards the file at any other error.
    """

    def __init__(self, path: str, stdout: BinaryIO | None = None, *, private: bool = False) -> None:
        """``private``: a new file is readable by its owner alone, whatever the umask is."""
        self.path = path
        self._private = private
        self._temporary: str | None = None
        self._layers: list[Any] = []
        if path == "-":
            raw: Any = io.BufferedWriter(_Unclosable(stdout or sys.stdout.buffer), BUFFER_BYTES)
        else:
            raw = self._create(path)
        self._layers.append(raw)
        compression = split_name(path)[1]
        if compression == ".gz":
            self._layers.append(gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0))
        elif compression == ".zst":
            self._layers += [stream := _ZstdStream(raw), io.BufferedWriter(stream, BUFFER_BYTES)]
        self.stream: IO[bytes] = self._layers[-1]

    def _create(self, path: str) -> IO[bytes]:
        target = path
        try:
            if _is_replaceable(path):
                self.path = os.path.realpath(path)  # what a symbolic link names is replaced, not the link
                folder = os.path.dirname(self.path)
                target = os.path.join(folder, f".kwiresniff-{os.urandom(8).hex()}.part")
                private = open(target, "xb", buffering=BUFFER_BYTES, opener=_private)  # noqa: SIM115  closed by close()
                self._temporary = target
                return private
            return open(target, "wb", buffering=BUFFER_BYTES)
        except (OSError, ValueError) as error:  # a name with a zero byte in it
            why = error.strerror if isinstance(error, OSError) else error
            raise ExportError(f"{path}: cannot write here ({why}); choose another output file") from error

    def close(self) -> None:
        """Writes what is buffered and gives the file its name."""
        try:
            if self._temporary is not None:
                os.fchmod(self._layers[0].fileno(), _mode_of(self.path, private=self._private))
            for layer in reversed(self._layers):
                layer.close()
            if self._temporary is not None:
                os.replace(self._temporary, self.path)
                self._temporary = None
        except BrokenPipeError:
            raise
        except OSError as error:
            self.discard()
            name = "standard output" if self.path == "-" else self.path
            advice = "; make room and run it again" if error.errno == errno.ENOSPC else ""
            raise ExportError(f"{name}: cannot write ({error.strerror}){advice}") from error

    def discard(self) -> None:
        """Forgets what was written; a file that was there before stays as it was."""
        for layer in reversed(self._layers):
            with suppress(OSError, ValueError):
                layer.close()
        if self._temporary is not None:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, KeyboardInterrupt):
            self.close()
        else:
            self.discard()


def _private(path: str, flags: int) -> int:
    """Opens a new file; a file or a link with its name is an error."""
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def _mode_of(path: str, *, private: bool) -> int:
    """The mode of the file that is there, or of a new one."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        if private:
            return 0o600
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask


class _Unclosable(io.RawIOBase):
    """Passes writes on to a stream that is not ours to close."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        self._stream.write(data)  # type: ignore[call-overload]
        self._stream.flush()
        return len(memoryview(data))  # type: ignore[arg-type]


def _is_replaceable(path: str) -> bool:
    """Whether the name may be replaced: nothing is there yet, or a regular file is."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


class _ZstdStream(io.RawIOBase):
    """Compresses what is written; each write becomes at least one zstd block, so writes should be large."""

    def __init__(self, raw: IO[bytes]) -> None:
        import cramjam

        self._raw = raw
        self._compressor = cramjam.zstd.Compressor(level=ZSTD_LEVEL)

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        piece = memoryview(data).tobytes()  # type: ignore[arg-type]
        self._compressor.compress(piece)
        self._raw.write(bytes(self._compressor.flush()))
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._raw.write(bytes(self._compressor.finish()))
        super().close()


def refuse_capture(files: Sequence[str], path: str) -> None:
    """Raises ExportError where a file to be written is one of the captures that are read."""
    if path != "-" and os.path.exists(path):
        for file in files:
            if os.path.exists(file) and os.path.samefile(file, path):
                raise ExportError(f"{path}: this is one of the captures that are read; name another file")
