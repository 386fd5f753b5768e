"""What a unit leaves in the output folder, whatever happens on the way; without Spark."""

from __future__ import annotations

import datetime
import errno
import json
import os
import platform
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.cli.main import main
from kwiresniff.errors import ExportError
from kwiresniff.export.table_columns import TABLES, WRITABLE
from kwiresniff.model import Segment, feed_of
from kwiresniff.pipeline import table_writer
from kwiresniff.pipeline.aggregate import merged
from kwiresniff.pipeline.batch_run import make_job
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.plan import CaptureSeries, File, WorkUnit, find_sources
from kwiresniff.pipeline.task import run_unit, settings_text
from kwiresniff.pipeline.unit_reader import Settings, UnitReader
from tests.support.exported import exchange_of, exchanges, export, recorded, rotate
from tests.support.paths import CAPTURES
from tests.support.sample import mostly_slow, one_in
from tests.support.transformations import elsewhere, segments_of, write

parquet = pytest.importorskip("pyarrow.parquet")

SETTINGS = Settings()
TEXT = settings_text(SETTINGS, WRITABLE)
CAPTURE = CAPTURES / "java-group-classic.pcap"


@pytest.fixture
def store(tmp_path: Path) -> OutputStore:
    found = OutputStore(str(tmp_path / "out"))
    found.create()
    return found


def unit_of(*paths: Path) -> WorkUnit:
    (source,) = find_sources([str(path) for path in paths])
    return WorkUnit(source)


def work(store: OutputStore, unit: WorkUnit) -> dict[str, Any]:
    return run_unit(unit, SETTINGS, WRITABLE, store.out)


def read(store: OutputStore, table: str) -> list[dict[str, Any]]:
    return [row for file in store.files(table) for row in parquet.ParquetFile(file).read().to_pylist()]


def everything(store: OutputStore) -> dict[str, list[str]]:
    return {table: sorted(map(repr, read(store, table))) for table in WRITABLE}


def row_groups(store: OutputStore) -> int:
    return sum(parquet.ParquetFile(file).metadata.num_row_groups for file in store.files("exchanges"))


def on_disk(store: OutputStore) -> set[str]:
    return {
        os.path.relpath(os.path.join(folder, name), store.out)
        for table in WRITABLE
        for folder, _, names in os.walk(os.path.join(store.out, table))
        for name in names
    }


def test_files_lie_in_folders_by_date(store: OutputStore) -> None:
    """Folders are named as in a Hive layout, which Spark and others read."""
    work(store, unit_of(CAPTURE))
    days = {row["date"] for row in _rows_with_folders(store)}
    apis = {row["api"] for row in _rows_with_folders(store)}
    assert len(days) == 1 and {"ApiVersions", "JoinGroup", "Fetch"} <= apis
    assert all(name.split(os.sep)[1].startswith("date=20") for name in on_disk(store) if name.startswith("exchanges"))


def _rows_with_folders(store: OutputStore) -> list[dict[str, Any]]:
    found = []
    for file in store.files("exchanges"):
        parts = dict(part.split("=", 1) for part in os.path.relpath(file, store.out).split(os.sep)[1:-1])
        found += [{**row, **parts} for row in parquet.ParquetFile(file).read().to_pylist()]
    return found


def test_parquet_holds_every_exchange_of_export(store: OutputStore, tmp_path: Path) -> None:
    """Each once."""
    work(store, unit_of(CAPTURE))
    expected = exchanges(export(tmp_path / "out.jsonl", CAPTURE))
    found = [exchange_of(row) for row in _rows_with_folders(store)]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize("capture", mostly_slow(one_in(4, recorded()), 4), ids=lambda path: path.name)
def test_a_table_does_not_depend_on_which_others_are_written(capture: Path, tmp_path: Path) -> None:
    """Records are decoded only for the tables that show them; the others hold the same without."""
    found = []
    shown = [table for table in WRITABLE if table not in ("exchanges", "records")]
    for number, tables in enumerate((WRITABLE, shown)):
        store = OutputStore(str(tmp_path / str(number)))
        store.create()
        run_unit(unit_of(capture), SETTINGS, tables, store.out)
        found.append({table: read(store, table) for table in shown})
    assert found[0] == found[1]


@pytest.mark.parametrize("capture", mostly_slow(one_in(3, recorded()), 4), ids=lambda path: path.name)
def test_clients_and_audit_are_those_of_the_commands(
    capture: Path, store: OutputStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """Client for client, verdict for verdict."""
    run_unit(unit_of(capture), Settings(audit_target="4.0"), WRITABLE, store.out)
    for command, arguments in (("clients", []), ("audit", ["--target", "4.0"])):
        with pytest.raises(SystemExit):
            main([command, str(capture), "-o", "jsonl", "-q", *arguments])
        expected = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        found = read(store, command)
        assert [json.loads(row["details"]) for row in found] == expected
        assert [row["client_id"] for row in found] == [one["client_id"] for one in expected]


@pytest.mark.parametrize("capture", mostly_slow(one_in(3, recorded()), 4), ids=lambda path: path.name)
def test_topics_are_those_of_the_command(capture: Path, store: OutputStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Topic for topic, in the same order, whether bodies are decoded for the table of records or not."""
    with pytest.raises(SystemExit):
        main(["topics", str(capture), "-o", "jsonl", "-q"])
    expected = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for tables in (["topics"], ["topics", "records"]):
        run_unit(unit_of(capture), SETTINGS, tables, store.out)
        found = read(store, "topics")
        assert [json.loads(row["details"]) for row in found] == expected
        assert [(row["topic"], row["lag"]) for row in found] == [(one["topic"], one["lag"]) for one in expected]
        assert [row["produced_records"] for row in found] == [one["produced"]["records"] for one in expected]
        assert [row["producers"] for row in found] == [
            list(dict.fromkeys(client["client_id"] for client in one["producers"])) for one in expected
        ]


@pytest.mark.parametrize("capture", mostly_slow(one_in(3, recorded()), 4), ids=lambda path: path.name)
def test_groups_and_producers_are_those_of_the_commands(
    capture: Path, store: OutputStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """Event for event and producer for producer, whether bodies are decoded for the table of records or not."""
    expected = {}
    for command in ("groups", "producers"):
        with pytest.raises(SystemExit):
            main([command, str(capture), "-o", "jsonl", "-q"])
        expected[command] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for tables in (["groups", "producers"], [*WRITABLE]):
        run_unit(unit_of(capture), SETTINGS, tables, store.out)
        for command, found in expected.items():
            assert [json.loads(row["details"]) for row in read(store, command)] == found
    events = [(row["group"], row["event"], row["member_id"] or "") for row in read(store, "groups")]
    assert events == [(one["group"], one["event"], one["member_id"]) for one in expected["groups"]]
    records = [(row["producer_id"], row["records"]) for row in read(store, "producers")]
    assert records == [(one["producer_id"], one["records"]) for one in expected["producers"]]


def test_rows_have_the_cluster_and_its_brokers_have_their_time(store: OutputStore, tmp_path: Path) -> None:
    """Two captures have a topic of one name in two clusters; a third one begins when the first cluster has told its id
    already, and names it by an address. The ids are those in the Metadata of the recording."""
    segments = segments_of(CAPTURES / "first-look.pcap")
    folders = [tmp_path / name for name in ("here", "there", "late")]
    for folder, seen in zip(folders, (segments, elsewhere(segments), segments[len(segments) // 2 :]), strict=True):
        folder.mkdir()
        (capture,) = write(folder, seen)
        work(store, unit_of(Path(capture)))
    here, there, unnamed = "a3dpcmVzbmlmZi1kZW1vMQ", "b3RoZXItY2x1c3Rlci1pZA", "cluster of 10.9.0.1:9092"
    topics = {(row["cluster"], row["topic"]) for row in read(store, "topics")}
    assert topics >= {(here, "orders"), (there, "orders"), (unnamed, "orders")}
    assert {row["cluster"] for row in read(store, "clients")} == {here, there, unnamed}
    for table in ("groups", "producers"):
        assert {row["cluster"] for row in read(store, table)} >= {here, there}
    told = {(row["cluster"], row["cluster_id"], row["broker"]) for row in read(store, "clusters")}
    assert told == {
        (here, here, "10.9.0.1:9092"), (there, there, "10.4.0.1:9092"), (unnamed, None, "10.9.0.1:9092"),
    }  # fmt: skip
    times = [(row["first_time"], row["last_time"]) for row in read(store, "clusters")]
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    first, last = (epoch + datetime.timedelta(microseconds=segments[at][1] // 1000) for at in (0, -1))
    assert all(first <= begin <= end <= last for begin, end in times)


def test_what_a_filter_leaves_out_says_whose_rows_are(store: OutputStore) -> None:
    """Metadata, which names the cluster, is not among the rows."""
    run_unit(unit_of(CAPTURES / "first-look.pcap"), replace(SETTINGS, where="api == Produce"), WRITABLE, store.out)
    assert {row["api"] for row in read(store, "exchanges")} == {"Produce"}
    assert {row["cluster"] for row in read(store, "topics")} == {"a3dpcmVzbmlmZi1kZW1vMQ"}


def test_a_unit_done_twice_leaves_everything_once(store: OutputStore) -> None:
    """Spark runs tasks again when it has doubts."""
    first = work(store, unit_of(CAPTURE))
    before = everything(store)
    assert work(store, unit_of(CAPTURE)) == first
    assert everything(store) == before
    assert on_disk(store) == set(first["files"])


@pytest.mark.parametrize(
    "moment", mostly_slow(["while reading", "before the files have names", "before the commit", "after some have"], 3)
)
def test_a_killed_unit_leaves_nothing_that_counts(
    store: OutputStore, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it happens: done again, the output is the same, with no file left over."""
    work(store, unit_of(CAPTURE))
    expected, names = everything(store), on_disk(store)
    store.forget(store.commits())
    store.clean()
    assert not on_disk(store)

    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "while reading":
            patch.setattr(table_writer, "BUFFER_BYTES", 1)
            patch.setattr(UnitReader, "counts", die)
            patch.setattr(table_writer.TableWriter, "publish", die)
        elif moment == "before the files have names":
            patch.setattr(table_writer.TableWriter, "publish", die)
        elif moment == "after some have":
            replace, left = os.replace, [3]

            def replace_three(source: str, target: str) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                replace(source, target)

            patch.setattr(os, "replace", replace_three)
        else:
            patch.setattr(OutputStore, "commit", die)
        with pytest.raises(Killed):
            work(store, unit_of(CAPTURE))
    assert store.files("exchanges") == []
    store.clean()
    assert not on_disk(store)
    work(store, unit_of(CAPTURE))
    assert everything(store) == expected
    assert on_disk(store) == names


def test_numbers_that_grow_are_written_as_differences(store: OutputStore) -> None:
    """Times, packets and sizes, as the Parquet format calls it; names by their numbers, and bodies as they are."""
    work(store, unit_of(CAPTURE))
    group = parquet.ParquetFile(store.files("exchanges")[0]).metadata.row_group(0)
    columns = map(group.column, range(group.num_columns))
    encodings = {one.path_in_schema: set(one.encodings) for one in columns}
    for name in ("time", "request_timestamp_ns", "response_last_packet", "correlation_id", "latency_ns"):
        assert encodings[name] == {"DELTA_BINARY_PACKED", "RLE"}
    assert "RLE_DICTIONARY" in encodings["client"]
    assert encodings["response_body"] == {"PLAIN", "RLE"}


def test_truth_values_are_a_bit_each(store: OutputStore) -> None:
    """In pages of version 2, as these are, others write runs of them, which not every reader of such pages knows."""
    work(store, unit_of(CAPTURE))
    found = []
    for table in ("exchanges", "errors"):
        group = parquet.ParquetFile(store.files(table)[0]).metadata.row_group(0)
        columns = map(group.column, range(group.num_columns))
        found += [one.encodings for one in columns if one.physical_type == "BOOLEAN"]
    assert len(found) == 2
    assert all("PLAIN" in encodings for encodings in found)


def test_a_column_of_a_row_group_is_one_page(tmp_path: Path) -> None:
    """Texts of 3 MB, in a page of version 2. Its header is a structure of thrift (``PageHeader``, parquet.thrift): the
    kind of the page, and how many bytes are in it before they are compressed."""
    writer = table_writer.TableWriter(str(tmp_path / "out"), str(tmp_path / "staging"), "unit")
    row = dict.fromkeys((name for name, *_ in TABLES["records"]), None) | {"date": 20_000}
    for number in range(3_000):
        writer.add("records", tuple((row | {"value": str(number) * 250}).values()))
    (name,) = writer.publish()
    path = tmp_path / "out" / name
    group = parquet.ParquetFile(path).metadata.row_group(0)
    (column,) = (one for one in map(group.column, range(group.num_columns)) if one.path_in_schema == "value")
    header = path.read_bytes()[column.data_page_offset :][:8]
    field = 0x15  # the next one, a number, which is doubled because it has a sign, and has seven bits in a byte
    assert header[:3] == bytes([field, 2 * 3, field])
    size = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(header[3:7])) // 2
    assert header[6] < 0x80 and header[7] == field
    assert size > sum(len(str(number)) * 250 for number in range(3_000)) > 2 << 20
    assert size < column.total_uncompressed_size < size + 100


def test_small_buffers_make_more_row_groups_of_the_same_rows(
    store: OutputStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded by writing early, not by leaving out."""
    work(store, unit_of(CAPTURE))
    expected, files, groups = everything(store), on_disk(store), row_groups(store)
    monkeypatch.setattr(table_writer, "BUFFER_BYTES", 20_000)
    work(store, unit_of(CAPTURE))
    assert everything(store) == expected
    assert on_disk(store) == files
    assert row_groups(store) > groups


def test_days_without_end_make_few_folders_and_fewer_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture may claim any times: of too many days the rows are together, and no row is lost or there twice."""
    monkeypatch.setattr(table_writer, "MAX_PARTITIONS", 5)
    monkeypatch.setattr(table_writer, "MAX_OPEN", 2)
    monkeypatch.setattr(table_writer, "BUFFER_BYTES", 1)
    writer = table_writer.TableWriter(str(tmp_path / "out"), str(tmp_path / "staging"), "unit")
    days = [(datetime.date(2026, 1, day) - datetime.date(1970, 1, 1)).days for day in range(1, 9)] * 2
    width = len(TABLES["records"])
    for number, day in enumerate(days):
        writer.add("records", (day, *[None] * (width - 1)))
        assert len(writer._files._open) <= 2, number
    names = writer.publish()
    rows = Counter({name: parquet.ParquetFile(tmp_path / "out" / name).metadata.num_rows for name in names})
    by_folder = Counter[str]()
    for name, count in rows.items():
        by_folder[name.split(os.sep)[1]] += count
    assert by_folder == {**{f"date=2026-01-0{day}": 2 for day in range(1, 6)}, f"date={table_writer.NO_VALUE}": 6}


def test_output_that_fails_while_a_source_is_read_is_no_failure_of_the_source(
    store: OutputStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchanges are written while they are read; a full disk ends the task, and nothing is committed."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(table_writer, "BUFFER_BYTES", 1)
    monkeypatch.setattr(table_writer.TableWriter, "_write", full)
    with pytest.raises(ExportError, match="No space left"):
        work(store, unit_of(CAPTURE))
    assert store.commits() == {}


def test_a_source_that_fails_in_the_middle_keeps_what_was_read(
    store: OutputStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row in problems, a mark in the commit, and the next run tries again."""

    def segments(self: UnitReader) -> Iterator[Segment]:
        assert self._captures is not None
        yield from islice(self._captures, 200)
        raise ZeroDivisionError("a bug")

    unit = unit_of(CAPTURE)
    with monkeypatch.context() as patch:
        patch.setattr(UnitReader, "_feed", lambda self: feed_of(segments(self)))
        commit = work(store, unit)
    assert commit["failed"] == "ZeroDivisionError: a bug"
    assert [row["code"] for row in read(store, "problems")] == ["source_failed"]
    rows = commit["counts"]["rows"]
    assert 0 < rows["exchanges"] < len(exchanges(export(tmp_path / "x.jsonl", CAPTURE)))
    assert make_job([unit.source], 1, store.commits(), TEXT).units == (unit,)


def test_only_what_is_new_or_has_grown_is_done_again(store: OutputStore, tmp_path: Path) -> None:
    """A finished source is left alone; one with another file of its series is done anew, its old files leave."""
    first, second = rotate(CAPTURES / "first-look.pcap", tmp_path, 30)
    hidden = second.rename(tmp_path / "later")
    assert make_job([unit_of(CAPTURE).source], 1, store.commits(), TEXT).units == (unit_of(CAPTURE),)
    work(store, unit_of(first))
    work(store, unit_of(CAPTURE))
    done = store.commits()
    assert make_job([unit_of(first).source, unit_of(CAPTURE).source], 1, done, TEXT).units == ()
    hidden.rename(second)
    job = make_job([unit_of(first, second).source, unit_of(CAPTURE).source], 1, done, TEXT)
    assert job.units == (unit_of(first, second),)
    assert job.stale == (unit_of(first).id,)
    assert make_job([unit_of(CAPTURE).source], 1, done, TEXT + "other").units == (unit_of(CAPTURE),)


def test_half_a_source_is_resumed_with_the_other_half(store: OutputStore) -> None:
    """Of two shards one is done; a source that is done in another split is done."""
    source = unit_of(CAPTURE).source
    work(store, WorkUnit(source, 0, 2))
    half = store.commits()
    assert [unit.id for unit in make_job([source], 1, half, TEXT).units] == [WorkUnit(source).id]
    work(store, WorkUnit(source, 1, 2))
    job = make_job([source], 1, store.commits(), TEXT)
    assert job.units == () and job.stale == ()


def test_errors_are_counted_as_the_exchanges_have_them(store: OutputStore) -> None:
    """By name, once for each exchange and as often as they stand in it."""
    work(store, unit_of(CAPTURE))
    exchanged: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for row in read(store, "exchanges"):
        times.update(error["name"] for error in row["errors"])
        exchanged.update({error["name"] for error in row["errors"]})
    found_exchanges: Counter[str] = Counter()
    found_times: Counter[str] = Counter()
    for row in read(store, "errors"):
        found_exchanges[row["error"]] += row["exchanges"]
        found_times[row["error"]] += row["times"]
    assert found_exchanges == exchanged and found_times == times
    assert times.total() > 0


def test_histograms_of_shards_add_up_to_those_of_the_whole(store: OutputStore, tmp_path: Path) -> None:
    """Count, extremes and percentiles come out the same however the work was split."""
    source = unit_of(CAPTURE).source
    work(store, WorkUnit(source))
    whole = merged(row["latency"] for row in read(store, "latency"))
    other = OutputStore(str(tmp_path / "other"))
    other.create()
    for shard in range(3):
        work(other, WorkUnit(source, shard, 3))
    parts = merged(row["latency"] for row in read(other, "latency"))
    assert parts.summary() == whole.summary()
    latencies = [row["latency_ns"] for row in read(store, "exchanges") if row["latency_ns"] is not None]
    assert (whole.count, whole.min_ns, whole.max_ns) == (len(latencies), min(latencies), max(latencies))


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    """Cleaning up must never meet somebody else's files."""
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ExportError, match="other files"):
        OutputStore(str(tmp_path)).create()


def test_two_runs_into_one_folder_are_one_too_many(store: OutputStore) -> None:
    """The second is told so."""
    with store.locked(), pytest.raises(ExportError, match="another run"), store.locked():
        pass


def test_files_that_a_rotation_has_deleted_take_nothing_with_them(store: OutputStore, tmp_path: Path) -> None:
    """What was decoded stays; and when reading the rest anew would lose it, the run says so instead."""
    files = rotate(CAPTURES / "first-look.pcap", tmp_path, 30)
    work(store, unit_of(*files))
    files[0].unlink()
    job = make_job(find_sources([str(tmp_path / "trace.pcap1")]), 1, store.commits(), TEXT)
    assert job.units == () and job.stale == ()
    (tmp_path / "trace.pcap2").write_bytes(CAPTURE.read_bytes())
    with pytest.raises(ExportError, match=r"trace\.pcap: gone since an earlier run"):
        make_job(find_sources([str(tmp_path / "trace.pcap*")]), 1, store.commits(), TEXT)


def test_a_file_may_have_any_name(store: OutputStore, tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are shown as escapes, in every table; nothing fails over them."""
    path = tmp_path / os.fsdecode(b"b\xe9, {1}*.pcap")
    path.write_bytes(CAPTURE.read_bytes())
    commit = work(store, WorkUnit(CaptureSeries(str(path), (File(str(path), 1, 1),))))
    assert commit["failed"] is None
    for table in ("exchanges", "connections", "latency", "clients"):
        found = read(store, table)
        assert found and all(row["source"].endswith("/b\\udce9, {1}*.pcap") for row in found if "source" in row)


#: Decodes a capture as a unit, and prints the megabytes held at most, those held then, those held when all that is free
#: has been given back once more, and how many objects more there are when it was decoded again.
MEMORY = """
import sys
from kwiresniff.base.process_memory import give_back_memory
from kwiresniff.export.table_columns import WRITABLE
from kwiresniff.pipeline.plan import WorkUnit, find_sources
from kwiresniff.pipeline.task import run_unit
from kwiresniff.pipeline.unit_reader import Settings
def megabytes(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith(name))
(source,) = find_sources([sys.argv[1]])
run_unit(WorkUnit(source), Settings(), WRITABLE, sys.argv[2])
print(megabytes("VmHWM"), megabytes("VmRSS"))
give_back_memory()
print(megabytes("VmRSS"))
before = sys.getallocatedblocks()
run_unit(WorkUnit(source), Settings(), WRITABLE, sys.argv[2])
print(sys.getallocatedblocks() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_a_worker_does_not_keep_the_memory_of_a_unit(store: OutputStore) -> None:
    """Workers live on, and may be many: what a unit has freed is the next one's only if that asks for it."""
    command = [sys.executable, "-c", MEMORY, str(CAPTURES / "seed-zstd.pcap.xz"), store.out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    most, kept, left, objects = map(int, done.stdout.split())
    assert most - kept > 15 and kept - left < 5
    assert objects < 300


def test_a_full_disk_is_told_with_the_folder(store: OutputStore) -> None:
    """The error names the folder and says what to do; a table file that is not whole is not committed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(ExportError, match=rf"^{store.out}: File too large; what is complete stays"):
            work(store, unit_of(CAPTURE))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.commits() == {}
