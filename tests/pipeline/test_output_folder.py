"""Output folders: which a command takes, which it refuses, and to whom they are open."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.errors import ExportError
from kwiresniff.export.table_columns import TABLES, WRITTEN
from kwiresniff.pipeline.batch_run import Run
from kwiresniff.pipeline.file_watcher import FileWatcher
from kwiresniff.pipeline.open_state import batches, run_batch
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.task import options_of
from kwiresniff.pipeline.unit_reader import Settings
from kwiresniff.pipeline.watch import Watch
from tests.support.paths import CAPTURES, ROOT

pytest.importorskip("pyarrow.parquet")

CAPTURE = CAPTURES / "first-look.pcap"
SETTINGS = Settings()


def made(out: Path, settings: Settings = SETTINGS) -> OutputStore:
    """A folder in which a run was done, as far as the next one looks."""
    store = OutputStore(str(out))
    store.create({**options_of(settings, WRITTEN, "series"), "--both-ends": False})
    store.commit("0-0of1", {"files": [], "unit": {}, "failed": None, "counts": {"files": 1}})
    return store


def run(out: Path, settings: Settings = SETTINGS, **more: Any) -> Run:
    return Run([str(CAPTURE)], str(out), settings=settings, parallelism=1, **more)


def watch(folder: Path, out: Path, settings: Settings = SETTINGS, **more: Any) -> Watch:
    return Watch(str(folder), str(out), settings=settings, idle_ns=10**9, settle_s=1, every_s=None, **more)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"settings": replace(SETTINGS, where="api == Fetch")}, "--where none then, api == Fetch now"),
        ({"settings": replace(SETTINGS, redact_key="secret")}, "--redact none then, with key "),
        ({"settings": replace(SETTINGS, ports=(9093,))}, "--port none then, 9093 now"),
        ({"settings": replace(SETTINGS, decode_as=("udp.port==8473,vxlan",))}, "then, udp.port==8473,vxlan now"),
        ({"settings": replace(SETTINGS, max_decompressed=1 << 20)}, "--max-decompressed none then, 1048576 now"),
        ({"tables": ("problems",)}, "clients,clusters,"),
        ({"grouping": "file"}, "--grouping series then, file now"),
        ({"both_ends": True}, "--both-ends off then, on now"),
    ],
)
def test_a_run_with_other_options_is_refused(now: dict[str, Any], said: str, tmp_path: Path) -> None:
    """In one line that names them and what to do; with --fresh it is done."""
    made(tmp_path)
    run(tmp_path)
    with pytest.raises(ExportError) as refused:
        run(tmp_path, **now)
    assert said in str(refused.value) and "--fresh" in str(refused.value)
    assert "secret" not in str(refused.value)
    run(tmp_path, **now, resume=False)


def test_the_key_of_hashes_is_not_written_down(tmp_path: Path) -> None:
    """Two keys are told apart, and neither stands in the folder."""
    made(tmp_path, replace(SETTINGS, redact_key="one key"))
    with pytest.raises(ExportError, match="--redact with key"):
        run(tmp_path, replace(SETTINGS, redact_key="another key"))
    assert not any(b"one key" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("format", [None, 1, 99])
def test_the_folder_of_another_version_is_refused(format: int | None, tmp_path: Path) -> None:
    """By run and by query; 0.1.0 wrote no number of its format."""
    store = made(tmp_path)
    file = tmp_path / "_kwiresniff" / "made.json"
    if format is None:
        file.unlink()
    else:
        file.write_text(json.dumps({**json.loads(file.read_text()), "format": format}))
    for ask in (lambda: run(tmp_path), store.check):
        with pytest.raises(ExportError, match=r"other columns; name another --out, or do it all again with --fresh"):
            ask()
    run(tmp_path, resume=False)


def test_a_watch_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    """Neither where the output lies in the folder that is watched, nor where Spark does not start."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()

    def no_java() -> Any:
        raise ExportError("no Java")

    with pytest.raises(ExportError, match="lies in the folder"):
        watch(folder, folder / "out")
    with pytest.raises(ExportError, match="no Java"):
        watch(folder, out).execute(no_java, print)
    assert list(tmp_path.rglob("*")) == [folder]


def test_a_run_without_spark_leaves_nothing(tmp_path: Path) -> None:
    """A folder that was there stays, empty; one with the output of an earlier run keeps it."""
    there, not_there, full = tmp_path / "there", tmp_path / "not there", tmp_path / "full"
    there.mkdir()
    made(full)
    before = sorted(full.rglob("*"))

    def no_java() -> Any:
        raise ExportError("no Java")

    for out in (there, not_there, full):
        with pytest.raises(ExportError, match="no Java"):
            run(out).execute(no_java, print)
    assert sorted(tmp_path.iterdir()) == [full, there] and not list(there.iterdir())
    assert set(before) <= set(full.rglob("*"))


@pytest.mark.parametrize("files", [0, 1])
def test_a_folder_into_which_nothing_was_read_is_removed(files: int, tmp_path: Path) -> None:
    """A capture without Kafka has no rows, and was read."""
    store = OutputStore(str(tmp_path / "out"))
    with store.locked():
        store.commit("0-0of1", {"files": [], "unit": {}, "failed": None, "counts": {"files": files}})
        store.write_manifest({})
    assert bool(list(tmp_path.iterdir())) == bool(files)


@pytest.mark.parametrize("private", [True, False])
def test_what_watch_remembers_is_closed_to_other_users(private: bool, tmp_path: Path) -> None:
    """On a cluster executors may be another user, and the folder is as open as others."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / CAPTURE.name).write_bytes(CAPTURE.read_bytes())
    store = OutputStore(str(tmp_path / "out"))
    before = os.umask(0o022)
    try:
        store.create()
        store.create_watch(private=private)
        watcher = FileWatcher(str(folder), store.watch, 0)
        last = watcher.poll(10**18 * 4)
        (batch,) = batches(watcher.rounds(0, last), last, str(folder), "series", store.watch)
        run_batch(batch, SETTINGS, WRITTEN, store.out, 10**18)
    finally:
        os.umask(before)
    (state,) = Path(store.watch).rglob("*.state")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (state, state.parent, Path(store.watch))]
    assert modes == ([0o600, 0o700, 0o700] if private else [0o644, 0o755, 0o755])


def test_files_that_were_not_read_are_counted_by_name(tmp_path: Path) -> None:
    """A text in a folder is no capture; the manifest names it."""
    from kwiresniff.pipeline.plan import WorkUnit, find_sources
    from kwiresniff.pipeline.task import run_unit, totals

    (tmp_path / "in").mkdir()
    text = tmp_path / "in" / "notes.txt"
    text.write_text("no capture")
    (source,) = find_sources([str(tmp_path / "in")])
    store = OutputStore(str(tmp_path / "out"))
    store.create()
    found = totals([run_unit(WorkUnit(source), SETTINGS, WRITTEN, store.out)])
    assert (found["files"], found["skipped_files"], found["not_read"]) == (0, 1, [str(text)])


def test_the_docs_have_every_column_with_its_type() -> None:
    """Table for table, in order."""
    lines = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8").splitlines()
    for table, columns in TABLES.items():
        start = next(at for at, line in enumerate(lines) if line.startswith(f"`{table}`") and line.endswith(":"))
        rows = [f"| `{column.name}` | `{column.type}` | {column.meaning} |" for column in columns]
        assert lines[start + 4 : start + 5 + len(rows)] == [*rows, ""]
