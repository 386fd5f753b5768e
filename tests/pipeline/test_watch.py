"""Batches of a watched folder without Spark: what arrives when, and what is carried from one to the next."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kwiresniff.errors import KwiresniffError
from kwiresniff.export.table_columns import WRITTEN
from kwiresniff.pipeline import open_state
from kwiresniff.pipeline.file_watcher import FileWatcher
from kwiresniff.pipeline.open_state import batches, run_batch
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.plan import file_at
from kwiresniff.pipeline.unit_reader import Settings
from kwiresniff.pipeline.watch import Watch
from tests.support.exported import Json, details_of, exchange_of, exchanges, export, packets, recorded
from tests.support.paths import CAPTURES
from tests.support.sample import mostly_slow, one_in

parquet = pytest.importorskip("pyarrow.parquet")

SECOND = 10**9
IDLE_NS = 10**18
CAPTURE = CAPTURES / "first-look.pcap"


class Folder:
    """A watched folder and its output. Every step makes everything anew, as a restart would."""

    def __init__(self, path: Path, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.inputs = path / "in"
        self.inputs.mkdir()
        self.store = OutputStore(str(path / "out"))
        self.store.create()
        self.round = 0

    def add(self, name: str, content: bytes, modified_s: int) -> Path:
        """A file that was moved in when it was complete."""
        target = self.inputs / name
        target.write_bytes(content)
        os.utime(target, ns=(modified_s * SECOND, modified_s * SECOND))
        return target

    def step(self, now_s: int = 10**6, *, finish: bool = False, idle_ns: int = IDLE_NS) -> list[str]:
        """One batch; returns the names of the files that it read."""
        arrivals = FileWatcher(str(self.inputs), self.store.watch, 60)
        last = arrivals.poll(now_s * SECOND, finish=finish)
        work = batches(arrivals.rounds(self.round, last), last, str(self.inputs), "series", self.store.watch)
        for batch in work:
            run_batch(batch, self.settings, WRITTEN, self.store.out, idle_ns)
        arrivals.forget(self.round)
        self.round = last
        return [os.path.basename(file.path) for batch in work for file in batch.files]

    def rows(self, table: str) -> list[dict[str, Any]]:
        found = []
        for file in self.store.files(table):
            parts = dict(part.split("=", 1) for part in Path(file).parts if "=" in part)
            found += [{**row, **parts} for row in parquet.ParquetFile(file).read().to_pylist()]
        return found

    def exchanges(self, *, files: bool = True) -> list[Json]:
        return sorted((exchange_of(row, files=files) for row in self.rows("exchanges")), key=repr)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def pieces(capture: Path, size: int) -> list[bytes]:
    """The capture in files of ``size`` packets."""
    header, *rest = packets(capture.read_bytes())
    return [b"".join([header, *rest[at : at + size]]) for at in range(0, len(rest), size)]


CLASSIC = one_in(3, (path for path in recorded() if path.suffix == ".pcap"))


@pytest.mark.slow
@pytest.mark.parametrize("capture", CLASSIC, ids=lambda path: path.name)
def test_a_stream_of_files_gives_what_export_gives_of_the_whole(capture: Path, tmp_path: Path) -> None:
    """Fed file by file, everything made anew between any two; exchanges, connections and problems."""
    folder = Folder(tmp_path)
    for number, content in enumerate(pieces(capture, 61)):
        folder.add(f"trace.pcap{number or ''}", content, 1000 + number)
        assert len(folder.step()) == 1
    assert folder.step(finish=True) == []
    files = sorted(folder.inputs.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    objects = export(tmp_path / "all.jsonl", *files)
    assert folder.exchanges(files=len(files) > 1) == sorted(exchanges(objects), key=repr)
    for kind in ("connection", "problem"):
        expected = [value for value in objects if value["kind"] == kind]
        found = [details_of(row) for row in folder.rows(f"{kind}s")]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize("size", mostly_slow([1, 50, 1000], 2))
def test_however_the_capture_is_cut(size: int, folder: Folder, tmp_path: Path) -> None:
    """A packet a file, several batches at a time."""
    for number, content in enumerate(pieces(CAPTURE, size)):
        folder.add(f"trace.pcap{number or ''}", content, 1000 + number)
        if number % 3 == 2:
            folder.step()
    folder.step(finish=True)
    whole = exchanges(export(tmp_path / "whole.jsonl", CAPTURE))
    assert [without_places(one) for one in folder.exchanges()] == sorted(map(without_places, whole), key=repr)


@pytest.mark.parametrize("where", ["api == Metadata", "latency > 1ms and topic == first-look", "error != 0"])
def test_a_filter_lets_through_what_it_lets_through_of_the_whole(where: str, tmp_path: Path) -> None:
    """Exchanges, and connections that have one of them: also those that end in a later batch than it came in."""
    folder = Folder(tmp_path, Settings(where=where))
    for number, content in enumerate(pieces(CAPTURE, 20)):
        folder.add(f"trace.pcap{number or ''}", content, 1000 + number)
        folder.step()
    folder.step(finish=True)
    objects = export(tmp_path / "whole.jsonl", CAPTURE, options=["-Y", where])
    expected = sorted(map(without_places, exchanges(objects)), key=repr)
    assert [without_places(one) for one in folder.exchanges()] == expected
    connections = {value["client"] for value in objects if value["kind"] == "connection"}
    assert {row["client"] for row in folder.rows("connections")} == connections
    assert len(connections) < len(export(tmp_path / "all.jsonl", CAPTURE, options=["-Y", "size >= 0"]))


def test_names_of_topics_from_a_file_last(tmp_path: Path) -> None:
    """The metadata came before the capture began; what a batch carries to the next knows the names, too."""
    header, *rest = packets((CAPTURES / "java-transactions.pcap").read_bytes())
    names = {"pLmThL4WSzOfzitb_7m2pQ": "one", "eHuHFAzuTc2AoDpLMKPwTg": "two"}
    (tmp_path / "topics.txt").write_text("".join(f"{name} {topic_id}\n" for topic_id, name in names.items()))
    found = []
    for settings in (Settings(), Settings(topics=file_at(str(tmp_path / "topics.txt")))):
        (tmp_path / str(settings.topics is None)).mkdir()
        folder = Folder(tmp_path / str(settings.topics is None), settings)
        for number, packet in enumerate([rest[109:150], rest[150:]]):
            folder.add(f"trace.pcap{number or ''}", b"".join([header, *packet]), 1000 + number)
            folder.step()
        folder.step(finish=True)
        found.append([row["topics"] for row in sorted(folder.rows("exchanges"), key=lambda row: row["time"])])
    assert {topic for topics in found[0] for topic in topics} >= names.keys()
    assert found[1] == [[names.get(topic, topic) for topic in topics] for topics in found[0]]


def without_places(value: Json) -> Json:
    """An exchange without its packet numbers, which count from 1 in every file."""
    places = ("file", "first_packet", "last_packet")
    for direction in ("request", "response"):
        if value[direction] is not None:
            value[direction] = {name: part for name, part in value[direction].items() if name not in places}
    return value


@pytest.mark.parametrize("moment", ["before the state", "before the commit", "after the commit"])
def test_a_batch_that_was_killed_is_done_again_once(
    moment: str, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch that is repeated writes its files again under their names, so that no row is there twice."""
    first, second, third = pieces(CAPTURE, 45)
    folder.add("trace.pcap", first, 1000)
    folder.step()
    folder.add("trace.pcap1", second, 1001)

    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "before the state":
            patch.setattr(open_state.States, "write", die)
        elif moment == "before the commit":
            patch.setattr(OutputStore, "commit", die)
        else:
            patch.setattr(FileWatcher, "forget", die)
        with pytest.raises(Killed):
            folder.step()
    folder.store.clean()
    folder.step()
    folder.add("trace.pcap2", third, 1002)
    folder.step()
    folder.step(finish=True)
    whole = exchanges(export(tmp_path / "whole.jsonl", CAPTURE))
    assert [without_places(one) for one in folder.exchanges()] == sorted(map(without_places, whole), key=repr)


def test_a_file_is_finished_when_it_has_a_successor_or_has_not_changed(folder: Folder) -> None:
    """Of two files of a rotation the younger one waits; another series does not wait for it."""
    first, second, _ = pieces(CAPTURE, 45)
    folder.add("a.pcap", first, 1000)
    folder.add("b.pcap", first, 990)
    assert folder.step(now_s=1010) == []
    folder.add("a.pcap1", second, 1008)
    assert folder.step(now_s=1010) == ["a.pcap"]
    assert folder.step(now_s=1051) == ["b.pcap"]
    assert folder.step(now_s=1068) == ["a.pcap1"]
    assert folder.step(now_s=5000) == []


def test_what_comes_too_late_is_told(folder: Folder) -> None:
    """A file that grows after it was taken: how much is left out."""
    first, _, _ = pieces(CAPTURE, 45)
    folder.add("a.pcap", first[:-100], 1000)
    folder.step(now_s=2000)
    folder.add("a.pcap", first, 2001)
    assert folder.step(now_s=3000) == []
    (row,) = [row for row in folder.rows("problems") if row["code"] == "grown_file"]
    assert json.loads(row["details"])["left_out_bytes"] == 100
    assert folder.step(now_s=4000) == [] and folder.step(now_s=4001) == []
    assert sum(row["code"] == "grown_file" for row in folder.rows("problems")) == 1


def test_a_ring_of_files_is_read_round_after_round(folder: Folder) -> None:
    """tcpdump -W writes under old names again; a compressed file is the one it was made from."""
    first, second, third = pieces(CAPTURE, 45)
    folder.add("a.pcap0", first, 1000)
    folder.add("a.pcap1", second, 1001)
    assert sorted(folder.step()) == ["a.pcap0", "a.pcap1"]
    folder.add("a.pcap0", third, 1002)
    assert folder.step() == ["a.pcap0"]
    packed = folder.inputs / "a.pcap0"
    (folder.inputs / "a.pcap0.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    assert folder.step() == []
    folder.step(finish=True)
    assert len(folder.rows("exchanges")) == len(exchanges(export(folder.inputs / "x.jsonl", CAPTURE)))


def test_a_file_that_is_compressed_before_it_is_read_is_read(folder: Folder, tmp_path: Path) -> None:
    """``tcpdump -z gzip`` compresses a file right after its rotation."""
    path = folder.add("a.pcap", CAPTURE.read_bytes(), 1000)
    arrivals = FileWatcher(str(folder.inputs), folder.store.watch, 60)
    last = arrivals.poll(10**15)
    (batch,) = batches(arrivals.rounds(0, last), last, str(folder.inputs), "series", folder.store.watch)
    (folder.inputs / "a.pcap.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    run_batch(batch, Settings(), WRITTEN, folder.store.out, IDLE_NS)
    assert folder.rows("exchanges")


def test_rotation_may_delete_what_was_read(folder: Folder, tmp_path: Path) -> None:
    """Bytes of unfinished frames are carried, not looked up again."""
    for number, content in enumerate(pieces(CAPTURE, 7)):
        path = folder.add(f"trace.pcap{number or ''}", content, 1000 + number)
        folder.step()
        path.unlink()
    folder.step(finish=True)
    whole = exchanges(export(tmp_path / "whole.jsonl", CAPTURE))
    assert [without_places(one) for one in folder.exchanges()] == sorted(map(without_places, whole), key=repr)


def test_sources_do_not_mix_and_a_broken_file_is_a_problem(folder: Folder) -> None:
    """Two hosts with the same addresses, one file that is cut, one that is no capture."""
    for host in ("one", "two"):
        (folder.inputs / host).mkdir()
        folder.add(f"{host}/x.pcap", CAPTURE.read_bytes(), 1000)
    folder.add("broken.pcap", CAPTURE.read_bytes()[:5000], 1000)
    folder.add("notes.txt", b"broker three is slow", 1000)
    folder.step()
    folder.step(finish=True)
    by_source: dict[str, int] = {}
    for row in folder.rows("exchanges"):
        by_source[os.path.relpath(row["source"], folder.inputs)] = by_source.get(row["source"], 0) + 1
    assert set(by_source) == {"one/x.pcap", "two/x.pcap", "broken.pcap"}
    assert any(row["file"].endswith("broken.pcap") for row in folder.rows("problems"))
    assert {row["file"] for row in folder.rows("problems")} == {str(folder.inputs / "broken.pcap")}


def test_a_damaged_state_is_told_with_what_to_do(folder: Folder) -> None:
    """By its name; what was decoded stays."""
    first, second, _ = pieces(CAPTURE, 45)
    folder.add("a.pcap", first, 1000)
    folder.step()
    (state,) = Path(folder.store.watch, "open").rglob("*.state")
    rows = folder.exchanges()
    folder.add("a.pcap1", second, 1001)
    for content in (b"junk", state.read_bytes()[:-5]):
        state.write_bytes(content)
        with pytest.raises(KwiresniffError, match=r"\.state: damaged; remove it|--finish"):
            folder.step()
    assert folder.exchanges() == rows


def test_silence_ends_connections(folder: Folder, tmp_path: Path) -> None:
    """With an age limit of nothing every file ends what it began; the state does not grow."""
    for number, content in enumerate(pieces(CAPTURE, 45)):
        folder.add(f"trace.pcap{number or ''}", content, 1000 + number)
        folder.step(idle_ns=-1)
    assert len(folder.rows("connections")) >= 7
    assert {row["connection_id"] for row in folder.rows("connections")} == set(
        range(1, len(folder.rows("connections")) + 1)
    )


def test_a_lost_checkpoint_does_not_read_anything_twice(folder: Folder) -> None:
    """Offsets begin behind what was accounted for."""
    folder.add("a.pcap", CAPTURE.read_bytes(), 1000)
    folder.step()
    folder.step()
    arrivals = FileWatcher(str(folder.inputs), folder.store.watch, 60)
    assert arrivals.first == arrivals.last == 1
    shutil.rmtree(folder.inputs)
    folder.inputs.mkdir()
    assert folder.step() == []


@pytest.mark.parametrize(("failures", "said"), [(2, None), (3, "failed to connect back"), (1, "boom")])
def test_a_python_that_starts_too_slowly_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, said: str | None
) -> None:
    """Twice, as Spark gives each ten seconds; whatever else ends a query ends the watch."""
    text = "[STREAM_FAILED] Query terminated with exception: "
    text += "boom" if said == "boom" else "Python worker failed to connect back. SQLSTATE: XXKST"
    queries = [Mock(**{"awaitTermination.side_effect": RuntimeError(text)}) for _ in range(failures)] + [Mock()]
    (tmp_path / "in").mkdir()
    watch = Watch(str(tmp_path / "in"), str(tmp_path / "out"), settings=Settings(), idle_ns=1, settle_s=1, every_s=None)
    started = iter(queries)
    monkeypatch.setattr(Watch, "_start", lambda *_: next(started))
    if said is None:
        assert watch.execute(Mock, Mock())["total"]["files"] == 0
        assert list(started) == []
    else:
        with pytest.raises(KwiresniffError, match=said):
            watch.execute(Mock, Mock())
