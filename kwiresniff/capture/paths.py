"""From what the user typed to the list of inputs: folders, globs, ``-``."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwiresniff.capture.spooled import is_spool, size_of
from kwiresniff.errors import CaptureError

STANDARD_INPUT = "-"


class Input(NamedTuple):
    """One file to be read; ``path`` is ``-`` for standard input. ``size_bytes`` is None for what can be read once only.
    ``identity`` is the same for two names of one file. ``folder`` is the named one it lies in, empty for a named file,
    which must be a capture.
    """

    path: str
    size_bytes: int | None = None
    identity: tuple[int, int] = (-1, -1)
    folder: str = ""


def expand(paths: Sequence[str], refused: list[CaptureError] | None = None) -> list[Input]:
    """The inputs in the order given, folders by name and recursively, each file once. A CaptureError for a path without
    any is raised, or added to ``refused``.
    """
    inputs: dict[tuple[int, int], Input] = {}
    for path in paths:
        try:
            for found in _expand(path):
                inputs.setdefault(found.identity, found)
        except CaptureError as error:
            if refused is None:
                raise
            refused.append(error)
    return list(inputs.values())


def _expand(path: str) -> Iterator[Input]:
    if path == STANDARD_INPUT:
        yield Input(path)
        return
    try:
        status = os.stat(path)
    except FileNotFoundError:
        import glob

        if not glob.has_magic(path):
            raise CaptureError(f"{path}: no such file or folder") from None
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise CaptureError(f"{path}: no file matches this pattern") from None
        for match in matches:
            yield from _expand(match)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: {reason(error)}") from None
    else:
        if stat.S_ISDIR(status.st_mode) and is_spool(path):
            yield Input(path, size_of(path), (status.st_dev, status.st_ino))
        elif stat.S_ISDIR(status.st_mode):
            files = list(_folder(path))
            if not files:
                raise CaptureError(f"{path}: no capture in this folder")
            yield from files
        else:
            yield _input(path, status, "")


def _folder(path: str) -> Iterator[Input]:
    """Every regular file below ``path``; links to files are followed, links to folders (and their loops) not."""

    def refuse(error: OSError) -> None:
        if error.filename == path:
            raise CaptureError(f"{path}: {reason(error)}") from None

    for folder, folders, names in os.walk(path, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            try:
                status = os.stat(file)
            except OSError:  # a link that leads nowhere
                continue
            if stat.S_ISREG(status.st_mode):
                yield _input(file, status, path)


def _input(path: str, status: os.stat_result, folder: str) -> Input:
    size_bytes = status.st_size if stat.S_ISREG(status.st_mode) else None
    return Input(path, size_bytes, (status.st_dev, status.st_ino), folder)


def reason(error: Exception) -> str:
    """The operating system's word for what went wrong, fit for the end of a sentence."""
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
