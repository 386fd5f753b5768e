"""Files in every format, read back with somebody else's reader."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
import zstandard

from kwiresniff.errors import ExportError
from kwiresniff.export.output import Output
from kwiresniff.export.parquet import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from kwiresniff.export.writers import WRITERS, JsonArrayWriter, format_of
from kwiresniff.model import Event, Problem
from tests.support.exchanges import connection, exchange

EVENTS: list[Event] = [
    exchange(request={"a": b"\xff"}, errors=[("e", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)], outcome="error"),
    Problem("gap", "lost 9 bytes"),
    exchange(client_id=None, latency_ns=None, outcome="unanswered"),
    connection(),
]


def write(path: Path, events: list[Event] = EVENTS) -> Path:
    with Output(str(path)) as out:
        writer = WRITERS[format_of(str(path))](out.stream, ())
        for event in events:
            writer.write(event)
        writer.close()
    return path


def test_json_lines_hold_every_event_in_order(tmp_path: Path) -> None:
    lines = write(tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["exchange", "problem", "exchange", "connection"]


def test_json_is_one_array_of_the_same_objects(tmp_path: Path) -> None:
    lines = write(tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(write(tmp_path / "out.json").read_text()) == [json.loads(line) for line in lines]


def test_json_without_events_is_an_empty_array() -> None:
    out = io.BytesIO()
    JsonArrayWriter(out).close()
    assert json.loads(out.getvalue()) == []


def test_names_choose_the_compression(tmp_path: Path) -> None:
    plain = write(tmp_path / "out.jsonl").read_bytes()
    assert gzip.decompress(write(tmp_path / "out.jsonl.gz").read_bytes()) == plain
    packed = write(tmp_path / "OUT.JSONL.ZST").read_bytes()
    assert zstandard.ZstdDecompressor().stream_reader(packed).read() == plain


def test_a_large_file_survives_zstd(tmp_path: Path) -> None:
    many: list[Event] = [exchange(correlation_id=number) for number in range(8_000)]
    packed = write(tmp_path / "out.jsonl.zst", many).read_bytes()
    plain = zstandard.ZstdDecompressor().stream_reader(packed).read()
    assert [json.loads(line)["correlation_id"] for line in plain.splitlines()] == list(range(8_000))
    assert len(plain) > 3 << 20
    assert len(packed) < len(plain) / 10


def test_parquet_row_groups_are_bounded(tmp_path: Path) -> None:
    one = exchange()
    path = write(tmp_path / "out.parquet", [one] * (ROW_GROUP_ROWS + 5))
    file = pyarrow.parquet.ParquetFile(path)
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [ROW_GROUP_ROWS, 5]


def test_parquet_row_groups_are_bounded_by_their_texts(tmp_path: Path) -> None:
    """A client id may have 32 KB; a row group of them would be half a gigabyte."""
    path = write(tmp_path / "out.parquet", [exchange(client_id="x" * 32_000)] * 1_200)
    file = pyarrow.parquet.ParquetFile(path)
    rows = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    assert sum(rows) == 1_200
    assert max(rows) * 32_000 <= ROW_GROUP_BYTES + 64_000


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from kwiresniff.export.writers import WRITERS\n"
        "import io\n"
        "try: WRITERS['parquet'](io.BytesIO(), ())\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        'ExportError Parquet needs pyarrow, which is not installed; pip install "kwiresniff[parquet]"\n'
    )


@pytest.mark.parametrize("name", ["out.xml", "out", "out.gz", "out.parquet.gz"])
def test_a_name_that_asks_for_no_known_format_is_refused(name: str) -> None:
    with pytest.raises(ExportError, match=r"^out"):
        format_of(name)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), Output(str(path)) as out:
        out.stream.write(b"new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_an_interrupt_keeps_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt), Output(str(path)) as out:
        out.stream.write(b"so far")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"so far"


def test_what_is_not_finished_is_for_nobody_else_and_gets_the_mode_of_a_new_file(tmp_path: Path) -> None:
    """Two of the same name at once have names of their own meanwhile."""
    path = tmp_path / "out.jsonl"
    mask = os.umask(0o027)
    try:
        with Output(str(path)) as one, Output(str(path)):
            one.stream.write(b"{}\n")
            unfinished = list(tmp_path.iterdir())
            assert len({each.name for each in unfinished}) == 2
            assert {stat.S_IMODE(each.stat().st_mode) for each in unfinished} == {0o600}
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(mask)


def test_a_file_that_is_replaced_hands_on_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.touch(0o600)
    with Output(str(path)) as out:
        out.stream.write(b"{}\n")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"{}\n", 0o600)


def test_a_temporary_name_that_somebody_foresaw_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may write in the folder, and puts links there."""
    monkeypatch.setattr(os, "urandom", bytes)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    with Output(str(tmp_path / "probe.jsonl")):
        (name,) = (each.name for each in tmp_path.iterdir() if each != victim)
    (tmp_path / name).symlink_to(victim)
    with pytest.raises(ExportError, match="cannot write here"):
        Output(str(tmp_path / "out.jsonl"))
    assert victim.read_bytes() == b"precious"


def test_a_symbolic_link_goes_on_pointing_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "out.jsonl"
    link.symlink_to(tmp_path / "real" / "file")
    (tmp_path / "real" / "file").write_text("old")
    with Output(str(link)) as out:
        out.stream.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"


def test_a_fifo_is_written_to_and_stays_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "out.jsonl"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE)
    with Output(str(fifo)) as out:
        out.stream.write(b"through")
    assert reader.communicate()[0] == b"through"
    assert fifo.is_fifo()


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"cannot write here \(No such file or directory\)"):
        Output(str(tmp_path / "none" / "out.jsonl"))


def test_standard_output_is_flushed_and_left_open() -> None:
    stdout = io.BytesIO()
    with Output("-", stdout) as out:
        out.stream.write(b"line\n")
        out.stream.flush()
        assert stdout.getvalue() == b"line\n"
    assert not stdout.closed
