"""The output folder: Parquet files under names that a unit always gives them, and what is complete.

    OUT/exchanges/date=2026-01-02/UNIT-0.parquet
    OUT/latency/UNIT-0.parquet
    OUT/manifest.json
    OUT/_kwiresniff/made.json              FORMAT, and the options that the folder was made with
    OUT/_kwiresniff/commits/UNIT.json
    OUT/_kwiresniff/watch/                 only of ``pipeline watch``: what has arrived, what connections left open

A unit's files are written to a place of their own, moved to their names when the unit is done, and count from the
moment its commit stands beside them. Whatever no commit names is left over from a run that was killed and is removed
by the next one. So a unit that runs twice, at once or after another, leaves the same files and no row twice.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kwiresniff import __version__
from kwiresniff.errors import ExportError
from kwiresniff.export.table_columns import TABLES
from kwiresniff.pipeline.atomic_files import replace_bytes
from kwiresniff.pipeline.hadoop import is_remote, local_path
from kwiresniff.pipeline.table_writer import TableWriter

Commit = dict[str, Any]

#: The number of the tables' columns and of what stands beside them. Raised with each change that would mix badly.
FORMAT = 2


class OutputStore:
    """An output folder, on a file system that all executors see."""

    def __init__(self, out: str) -> None:
        if is_remote(out):
            raise ExportError(f"{out}: the output is a folder that workers see as a path; copy it there afterwards")
        self.out = os.path.abspath(local_path(out))
        self._own = os.path.join(self.out, "_kwiresniff")
        self._commits = os.path.join(self._own, "commits")
        self._staging = os.path.join(self._own, "staging")
        self._made = os.path.join(self._own, "made.json")
        self.inputs = os.path.join(self._own, "inputs")
        self.watch = os.path.join(self._own, "watch")
        self._seen: set[str] = set()

    def check_options(self, options: dict[str, Any], *, fresh: bool) -> None:
        """Raises ExportError for a folder that holds something else, or was made by another version or with other
        options. One that is to be made afresh may hold any output of the pipeline."""
        self._check_own()
        if fresh or not os.path.isdir(self._commits) or not (self._units() or os.path.isdir(self.watch)):
            return
        before = self._options()
        names = sorted(name for name in {*before, *options} if before.get(name) != _plain(options.get(name)))
        if names:
            said = "; ".join(
                f"{name} {_shown(before.get(name))} then, {_shown(options.get(name))} now" for name in names
            )
            raise ExportError(
                f"{self.out}: was made with other options ({said}); give the same ones, name another --out, or do it "
                "all again with --fresh"
            )

    def _check_own(self) -> None:
        if os.path.isdir(self.out) and not os.path.isdir(self._own) and os.listdir(self.out):
            raise ExportError(f"{self.out}: holds other files already; name an empty or a new folder")

    def create(self, options: dict[str, Any] | None = None) -> None:
        """Makes the folder, and writes down the options that are given; refuses one that holds something else."""
        self._check_own()
        os.makedirs(self._commits, exist_ok=True)
        os.makedirs(self._staging, exist_ok=True)
        if options is not None or not os.path.exists(self._made):
            replace_json(self._made, {"format": FORMAT, "kwiresniff": __version__, "options": options or {}})

    def create_watch(self, *, private: bool) -> None:
        """Makes the folder of what ``pipeline watch`` remembers; a ``private`` one is closed to other users."""
        os.makedirs(self.watch, exist_ok=True)
        if private:
            os.chmod(self.watch, 0o700)

    def empty(self) -> None:
        """Removes the tables and all that is known of them."""
        self.forget(self._units())
        self.clean()
        shutil.rmtree(self.watch, ignore_errors=True)

    def _options(self) -> dict[str, Any]:
        """The options that the folder was made with; raises ExportError for another format."""
        made: dict[str, Any] = {}
        with suppress(FileNotFoundError), open(self._made, encoding="utf-8") as file:
            made = json.load(file)
        if made.get("format") != FORMAT:
            whose = f"kwiresniff {made['kwiresniff']}" if made else "an older kwiresniff"
            raise ExportError(
                f"{self.out}: was made by {whose}, whose tables have other columns; name another --out, or do it all "
                "again with --fresh"
            )
        options: dict[str, Any] = made["options"]
        return options

    def check(self) -> None:
        """Raises ExportError when no run has written here, or one of another version."""
        if not os.path.isdir(self._commits):
            raise ExportError(f"{self.out}: no output of 'kwiresniff pipeline run' here")
        if self._units():
            self._options()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the folder and keeps other runs on this machine out. A folder that was not there, or was empty, is
        left as it was when no capture has been read into it."""
        was_there = os.path.isdir(self.out)
        was_empty = not was_there or not os.listdir(self.out)
        self.create()
        with open(os.path.join(self._own, "lock"), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ExportError(f"{self.out}: another run is writing here; wait for it or choose another") from None
            try:
                yield
            finally:
                if was_empty and not any(one["files"] or one["counts"]["files"] for one in self.commits().values()):
                    self._remove(keep_folder=was_there)

    def _remove(self, *, keep_folder: bool) -> None:
        """Removes all that the folder was made of."""
        for name in ("_kwiresniff", *TABLES):
            shutil.rmtree(os.path.join(self.out, name), ignore_errors=True)
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.out, "manifest.json"))
        if not keep_folder:
            with suppress(OSError):  # another program has put a file there
                os.rmdir(self.out)

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Raises ExportError, with what to do, when the folder cannot take what is written to it: a full disk."""
        try:
            yield
        except OSError as error:
            what = os.strerror(error.errno) if error.errno else str(error)
            raise ExportError(f"{self.out}: {what}; what is complete stays, run again when there is room") from error

    def commits(self) -> dict[str, Commit]:
        """The commits by unit."""
        return self._read(self._units())

    def new_commits(self) -> dict[str, Commit]:
        """The commits by unit that this was not asked for before: there may be thousands, and each is read once."""
        found = self._read(unit for unit in self._units() if unit not in self._seen)
        self._seen.update(found)
        return found

    def _units(self) -> list[str]:
        names = sorted(os.listdir(self._commits)) if os.path.isdir(self._commits) else ()
        return [name.removesuffix(".json") for name in names if name.endswith(".json")]

    def _read(self, units: Iterable[str]) -> dict[str, Commit]:
        return {unit: commit for unit in units if (commit := self.committed(unit)) is not None}

    def committed(self, unit: str) -> Commit | None:
        """The commit of a unit, None when it is not complete."""
        try:
            with open(os.path.join(self._commits, f"{unit}.json"), encoding="utf-8") as file:
                commit: Commit = json.load(file)
        except FileNotFoundError:
            return None
        return commit

    def commit(self, unit: str, commit: Commit) -> None:
        """Commits a unit: the files that ``commit`` names are part of the output from now on."""
        replace_json(os.path.join(self._commits, f"{unit}.json"), commit)

    def forget(self, units: Iterable[str]) -> None:
        """Revokes the commits of units; ``clean`` removes their files."""
        for unit in units:
            os.unlink(os.path.join(self._commits, f"{unit}.json"))

    def clean(self) -> None:
        """Removes every file that no commit names."""
        named = {name for commit in self.commits().values() for name in commit["files"]}
        for table in TABLES:
            for folder, _, names in os.walk(os.path.join(self.out, table), topdown=False):
                for name in names:
                    path = os.path.join(folder, name)
                    if os.path.relpath(path, self.out) not in named:
                        os.unlink(path)
                with suppress(OSError):  # not empty
                    os.rmdir(folder)
        shutil.rmtree(self._staging, ignore_errors=True)
        os.makedirs(self._staging, exist_ok=True)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Writes the counts of the whole folder."""
        replace_json(os.path.join(self.out, "manifest.json"), manifest)

    def files(self, table: str) -> list[str]:
        """The complete files of a table."""
        prefix = table + os.sep
        names = (name for commit in self.commits().values() for name in commit["files"])
        return [os.path.join(self.out, name) for name in names if name.startswith(prefix)]

    def writer(self, unit: str) -> TableWriter:
        """A writer for the rows of one attempt at a unit."""
        return TableWriter(self.out, os.path.join(self._staging, f"{unit}-{uuid.uuid4().hex}"), unit)


def _plain(value: Any) -> Any:
    """A value as it comes back from JSON."""
    return json.loads(json.dumps(value))


def _shown(value: Any) -> str:
    """An option's value as it is typed."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else {True: "on", False: "off"}.get(value, str(value))


def numbered(folder: str, ending: str) -> list[tuple[int, str]]:
    """The files of a folder that are called ``00000007`` and the ending: number and path of each, in order."""
    names = (name for name in os.listdir(folder) if name.endswith(ending))
    return sorted((int(name.removesuffix(ending)), os.path.join(folder, name)) for name in names)


def replace_json(path: str, value: Any) -> None:
    """Writes a value to a file that is never seen half written."""
    replace_bytes(path, json.dumps(value, indent=1).encode())
