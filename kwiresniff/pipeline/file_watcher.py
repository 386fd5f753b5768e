"""Which files of a watched folder are finished, and in which round each of them was taken.

A file is finished when a younger one of its series is there, or when it has not changed for some time. Files that are
moved into the folder when they are complete keep the time of their last change, so they are taken at once. What is
taken together is a round. A round is written to disk before it is used, so that reading it again after an
interruption finds the same files:

    FOLDER/rounds/00000007.json    files taken in round 7
    FOLDER/known.json              files taken in earlier rounds that are still there, and the last of those rounds
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from kwiresniff.capture.paths import expand
from kwiresniff.errors import CaptureError
from kwiresniff.pipeline.output_store import numbered, replace_json
from kwiresniff.pipeline.plan import File, plain_name, series_path

#: The bytes that distinguish a file from another one of its name: a file header and a packet or two.
_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Round:
    """Files that were taken together, oldest first.

    ``grown`` are files taken before that were not finished after all, with the bytes that came too late. ``finish``
    says that nothing more will come.
    """

    files: tuple[File, ...]
    grown: tuple[tuple[str, int], ...] = ()
    finish: bool = False


@dataclass(frozen=True, slots=True)
class _Taken:
    """A file as it was when it was taken; ``head`` is a hash of its first bytes."""

    path: str
    size_bytes: int
    modified_ns: int
    head: str


class FileWatcher:
    """The files of ``watched``, accounted for in ``folder``. One process at a time may look for new ones."""

    def __init__(self, watched: str, folder: str, settle_s: float) -> None:
        """``settle_s`` is for how many seconds a file must not have changed to be finished."""
        self._watched = os.path.abspath(watched)
        self._settle_ns = int(settle_s * 1e9)
        self._rounds = os.path.join(folder, "rounds")
        self._known_path = os.path.join(folder, "known.json")
        os.makedirs(self._rounds, exist_ok=True)
        self.first = 0
        self._known: dict[str, _Taken] = {}
        with suppress(FileNotFoundError), open(self._known_path, encoding="utf-8") as file:
            value = json.load(file)
            self.first = value["round"]
            self._known = {path: _Taken(**taken) for path, taken in value["files"].items()}
        self.last = self.first
        for number, _ in numbered(self._rounds, ".json"):
            self._know(number)
            self.last = max(self.last, number)

    def poll(self, now_ns: int, *, finish: bool = False) -> int:
        """Takes what is finished at ``now_ns``, everything with ``finish``; returns the number of the last round."""
        taken: list[_Taken] = []
        grown: list[tuple[str, int]] = []
        for plain, file in self._finished(now_ns, everything=finish):
            before = self._known.get(plain)
            # A rotated file that has been compressed is the same one; its compressor keeps the time or does not.
            if before is not None and (before.modified_ns == file.modified_ns or before.path != file.path):
                continue
            now = _Taken(file.path, file.size_bytes, file.modified_ns, _head(file.path, file.size_bytes))
            if before is None or before.head != _head(file.path, before.size_bytes):
                taken.append(now)
            elif before.size_bytes < now.size_bytes:
                grown.append((now.path, now.size_bytes - before.size_bytes))
            self._known[plain] = now
        if taken or grown or (finish and not self._has_finished()):
            self.last += 1
            value = {"files": [asdict(one) for one in taken], "grown": grown, "finish": finish}
            replace_json(self._path(self.last), value)
        return self.last

    def rounds(self, after: int, until: int) -> Iterator[Round]:
        """The rounds behind ``after`` up to ``until``."""
        for number in range(after + 1, until + 1):
            value = self._read(number)
            files = [File(one["path"], one["size_bytes"], one["modified_ns"], named=False) for one in value["files"]]
            yield Round(tuple(files), tuple((path, size) for path, size in value["grown"]), value["finish"])

    def forget(self, until: int) -> None:
        """Removes the rounds up to ``until``, which are not needed any more."""
        self._known = {path: taken for path, taken in self._known.items() if os.path.exists(path)}
        self.first = max(self.first, until)
        known = {path: asdict(taken) for path, taken in self._known.items()}
        replace_json(self._known_path, {"round": self.first, "files": known})
        for number, path in numbered(self._rounds, ".json"):
            # The last one stays: it has whether all is finished.
            if number <= until and number < self.last:
                os.unlink(path)

    def _has_finished(self) -> bool:
        with suppress(FileNotFoundError):
            return bool(self._read(self.last)["finish"])
        return False

    def _path(self, number: int) -> str:
        return os.path.join(self._rounds, f"{number:08}.json")

    def _read(self, number: int) -> Any:
        with open(self._path(number), encoding="utf-8") as file:
            return json.load(file)

    def _know(self, number: int) -> None:
        for one in self._read(number)["files"]:
            self._known[plain_name(one["path"])] = _Taken(**one)

    def _finished(self, now_ns: int, *, everything: bool) -> list[tuple[str, File]]:
        here = self._here()
        youngest: dict[str, int] = {}
        for plain, file in here.items():
            series = series_path(plain)
            youngest[series] = max(youngest.get(series, 0), file.modified_ns)
        settled_ns = now_ns - self._settle_ns
        return [
            (plain, file)
            for plain, file in here.items()
            if everything or youngest[series_path(plain)] > file.modified_ns or file.modified_ns <= settled_ns
        ]

    def _here(self) -> dict[str, File]:
        """The files that are there by their names without the ending of a compression, oldest first."""
        found: dict[str, File] = {}
        try:
            inputs = expand([self._watched])
        except CaptureError:  # an empty folder
            return found
        for one in inputs:
            name = os.path.basename(one.path)
            if one.size_bytes is None or name.startswith((".", "_")):
                continue
            with suppress(OSError):  # gone meanwhile
                file = File(one.path, one.size_bytes, os.stat(one.path).st_mtime_ns, named=False)
                plain = plain_name(one.path)
                # While a rotated file is being compressed both are there; the plain one is complete.
                if plain not in found or plain == one.path:
                    found[plain] = file
        return dict(sorted(found.items(), key=lambda item: (item[1].modified_ns, item[0])))


def _head(path: str, size_bytes: int) -> str:
    try:
        with open(path, "rb") as file:
            return blake2b(file.read(min(_HEAD_BYTES, size_bytes)), digest_size=8).hexdigest()
    except OSError:
        return ""
