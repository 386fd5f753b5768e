"""A source read on from where an earlier batch stopped: its new files, with the connections that were left open.

What a batch leaves open is written beside what it decoded and counts from the same commit on, so the rows of a batch
are there exactly when the next one goes on behind it. A batch that is done again, because nobody heard of its end,
finds its commit; one that was interrupted begins anew from the state before it, and leaves the same files.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from glob import escape, glob
from typing import Any

from kwiresniff import __version__
from kwiresniff.capture import CaptureSet, open_captures
from kwiresniff.errors import CaptureError, KwiresniffError
from kwiresniff.model import Problem, Sink
from kwiresniff.pipeline.atomic_files import replace_bytes
from kwiresniff.pipeline.file_watcher import Round
from kwiresniff.pipeline.output_store import Commit, OutputStore, numbered
from kwiresniff.pipeline.plan import CaptureSeries, File, WorkUnit, plain_name, series_path
from kwiresniff.pipeline.rows import Rows
from kwiresniff.pipeline.task import add_totals, write_unit
from kwiresniff.pipeline.unit_reader import Pass, Settings, counts_of, unreadable
from kwiresniff.session.checkpoint import StateError, dump, load

#: Names of files kept for the messages that began in them. Minutes of a day have 1,440.
MAX_FILE_NAMES = 4_096


@dataclass(frozen=True, slots=True)
class Batch:
    """The work of one task: the new files of a source. ``round`` is the last of the rounds they were taken in.

    ``grown`` are files read before that were not finished, with the bytes left out. ``finish`` ends what is open.
    """

    source: str
    round: int
    files: tuple[File, ...] = ()
    grown: tuple[tuple[str, int], ...] = ()
    finish: bool = False

    @property
    def id(self) -> str:
        """Fit for a file name, in the order of the rounds."""
        return f"{self.source_id}-{self.round:08}"

    @property
    def source_id(self) -> str:
        """The id of the capture series that the batch belongs to."""
        return CaptureSeries(self.source, ()).id


class States:
    """The state of the open connections of a source, by round: ``FOLDER/SOURCE/00000007.state``.

    A line of JSON about the source, then the analyzer as ``kwiresniff.session.checkpoint`` writes it. They are open to
    the users to whom ``FOLDER`` is.
    """

    def __init__(self, folder: str, source_id: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._mode = stat.S_IMODE(os.stat(folder).st_mode)
        for name in ("open", source_id):
            folder = os.path.join(folder, name)
            with suppress(FileExistsError):
                os.mkdir(folder, self._mode)
        self._folder = folder

    def before(self, round: int) -> tuple[dict[str, Any], bytes] | None:
        """The newest state of a round before this one; older ones are removed."""
        paths = [path for number, path in numbered(self._folder, ".state") if number < round]
        for path in paths[:-1]:
            os.unlink(path)
        if not paths:
            return None
        with open(paths[-1], "rb") as file:
            try:
                return json.loads(file.readline()), file.read()
            except ValueError:
                raise KwiresniffError(
                    f"{paths[-1]}: damaged; remove it to have its source begin anew, in mid-connection"
                ) from None

    def write(self, round: int, about: dict[str, Any], state: bytes) -> None:
        """The state behind a round."""
        path = os.path.join(self._folder, f"{round:08}.state")
        replace_bytes(path, json.dumps(about).encode() + b"\n" + state, self._mode & 0o666)


def sources_with_state(folder: str) -> list[str]:
    """The names of the sources that have been read from."""
    found = []
    top = os.path.join(folder, "open")
    for source_id in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        state = States(folder, source_id).before(1 << 62)
        if state is not None:
            found.append(state[0]["source"])
    return found


def batches(rounds: Iterable[Round], last: int, watched: str, grouping: str, folder: str) -> list[Batch]:
    """The work of some rounds, of which ``last`` is the last: a batch for each source, the longest first.

    ``folder`` is where ``States`` are; when the rounds are the end, sources without new files are ended too.
    """
    files: dict[str, list[File]] = {}
    grown: dict[str, list[tuple[str, int]]] = {}
    finish = False
    for one in rounds:
        for file in one.files:
            files.setdefault(source_name(file.path, watched, grouping), []).append(file)
        for path, size in one.grown:
            grown.setdefault(source_name(path, watched, grouping), []).append((path, size))
        finish = one.finish
    names = {*files, *grown, *(sources_with_state(folder) if finish else ())}
    found = [Batch(name, last, tuple(files.get(name, ())), tuple(grown.get(name, ())), finish) for name in names]
    return sorted(found, key=lambda batch: (-sum(file.size_bytes for file in batch.files), batch.source))


def source_name(path: str, watched: str, grouping: str) -> str:
    """The source that a file belongs to by its name."""
    if grouping == "one":
        return os.path.join(os.path.abspath(watched), "*")
    return plain_name(path) if grouping == "file" else series_path(path)


class _Names(Sequence[str]):
    """File names by the index that packet references carry."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names

    def __getitem__(self, index: Any) -> Any:
        return self._names.get(index)

    def __len__(self) -> int:
        return max(self._names, default=0) + 1


class BatchReading(Pass):
    """One pass over a batch. Iterate ``read`` or ``events`` once; the counts are final when that ends."""

    def __init__(
        self,
        batch: Batch,
        settings: Settings,
        idle_ns: int,
        before: tuple[dict[str, Any], bytes] | None,
        *,
        text: bool = False,
    ) -> None:
        """``before`` is the state that the source was left in. Raises KwiresniffError when it cannot be read."""
        super().__init__(settings, text=text)
        self._batch = batch
        self._idle_ns = idle_ns
        self._names: dict[int, str] = {}
        self._next = 0
        if before is not None:
            about, state = before
            try:
                load(self._analyzer, state)
            except StateError as error:
                raise KwiresniffError(
                    f"{batch.source}: {error}; this is {__version__}, it was {about['kwiresniff']}: end with that one "
                    "(--finish), or watch into another --out"
                ) from None
            settings.name_topics(self._analyzer)
            self._names = {int(index): name for index, name in about["files"].items()}
            self._next = about["next_file"]
            self._reading.connections.update(about.get("wanted", ()))
        self.rows = Rows(batch.source, _Names(self._names), self._analyzer.topics.name)
        self._counts = counts_of(None)

    def counts(self) -> dict[str, Any]:
        return {**self._counts, "skipped_files": self._skipped, "not_read": self._not_read}

    def state(self) -> tuple[dict[str, Any], bytes]:
        """The state of the connections that are left open."""
        kept = dict(list(self._names.items())[-MAX_FILE_NAMES:])
        about = {
            "kwiresniff": __version__,
            "source": self._batch.source,
            "next_file": self._next,
            "files": kept,
            "wanted": sorted(self._reading.connections),
        }
        return about, dump(self._analyzer)

    def restart(self) -> None:
        """Drops the open connections, whose state is not valid any more: they begin again, in mid-stream, under new
        numbers.
        """
        connections = self._analyzer.connections
        self._start()
        self._analyzer.connections = connections

    def _read(self, sink: Sink) -> Iterator[None]:
        for path, size in self._batch.grown:
            what = f"{size} bytes came after the file was taken for finished, and are left out; raise --settle"
            details = {"file": path, "left_out_bytes": size}
            sink.on_problem(Problem("grown_file", what, details=details))
        readable = self._readable(replace(file, path=_present(file.path)) for file in self._batch.files)
        for problem in self._problems:
            sink.on_problem(problem)
        for path in open_captures(readable).files if readable else ():  # in the order of their first packets
            yield from self._file(path, sink)
        if self._batch.finish:
            yield from self._analyzer.end()

    def _file(self, path: str, sink: Sink) -> Iterator[None]:
        try:
            rules, secrets = self._settings.decode_as, self._analyzer.tls_secrets
            captures = open_captures([path], first_index=self._next, decode_as=rules, tls_secrets=secrets)
        except CaptureError as error:  # it was there a moment ago
            sink.on_problem(unreadable(path, error))
            return
        self._follow_key_log(captures, sink)
        self._names[self._next] = path
        self._next += 1
        try:
            yield from self._analyzer.read(captures.feed)
        finally:
            self._counts = add_totals(self._counts, counts_of(captures))
            captures.close()
        for problem in captures.problems:
            sink.on_problem(problem._replace(details={"file": path, **(problem.details or {})}))
        yield from self._analyzer.end_idle(self._idle_ns)

    def _follow_key_log(self, captures: CaptureSet, sink: Sink) -> None:
        """Reads what the key log has by now: states hold no secret."""
        if self._settings.keylog is None:
            return
        try:
            captures.follow_key_log(self._settings.keylog)
        except CaptureError as error:  # it is not there yet, or no more
            sink.on_problem(Problem("not_decrypted", str(error)))


def _present(path: str) -> str:
    """The file, or what became of it when a rotation has compressed it meanwhile."""
    if os.path.exists(path):
        return path
    return next((found for found in glob(escape(path) + ".*") if plain_name(found) == path), path)


def run_batch(batch: Batch, settings: Settings, tables: Sequence[str], out: str, idle_ns: int) -> Commit:
    """Decodes a batch into the output folder and commits it; returns the commit, of an earlier attempt if there is."""
    store = OutputStore(out)
    done = store.committed(batch.id)
    if done is not None:
        return done
    states = States(store.watch, batch.source_id)
    narrowed = settings.for_tables(tables)
    reading = BatchReading(batch, narrowed, idle_ns, states.before(batch.round), text="exchanges" in tables)

    def keep(failed: bool) -> None:
        if failed:
            reading.restart()
        states.write(batch.round, *reading.state())

    unit = WorkUnit(CaptureSeries(batch.source, batch.files))
    return write_unit(
        reading, store, batch.id, {"unit": asdict(unit), "round": batch.round}, tables, settings.audit_target, keep
    )
