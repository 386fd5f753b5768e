"""What the reading processes of ``browse`` send, which all give an exchange the same number."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.browse.messages import Matches, Reported, Saved
from kwiresniff.cli.browse import model_of
from kwiresniff.cli.browse_jobs import filter_captures, report_captures, save_exchanges, save_packets
from kwiresniff.cli.index_job import index_captures
from kwiresniff.cli.options import ReadOptions
from kwiresniff.errors import ExportError
from kwiresniff.index import ExchangeIndex, Indexed
from kwiresniff.index.background import Failed
from kwiresniff.index.forks import Forks
from kwiresniff.render.tree_row import Row
from tests.support.command import Run
from tests.support.paths import CAPTURES
from tests.support.sample import mostly_slow

RECORDINGS = [
    CAPTURES / "incidents" / "fenced.pcap.xz", CAPTURES / "java-moved-leader.pcap", CAPTURES / "java-fetch.pcapng",
    CAPTURES / "incidents" / "load-balanced.pcap.xz", CAPTURES / "cluster-inside.pcap.xz",
]  # fmt: skip


def index_of(path: Path) -> ExchangeIndex:
    """The index that its process sends."""
    sent: list[Any] = []
    index_captures(sent.append, [str(path)], ReadOptions())
    index = ExchangeIndex()
    for one in sent:
        assert isinstance(one, Indexed)
        index.extend(one.part)
    assert [one.done for one in sent] == [False] * (len(sent) - 1) + [True]
    return index


def rows_of(path: Path, expression: str) -> list[int]:
    """The rows that a filter lets through."""
    sent: list[Any] = []
    filter_captures(sent.append, [str(path)], ReadOptions(), expression)
    assert all(isinstance(one, Matches) for one in sent) and sent[-1].done
    return [row for one in sent for row in array("q", one.numbers)]


@pytest.mark.parametrize("path", mostly_slow(RECORDINGS, every=3), ids=lambda path: path.name)
def test_a_filter_numbers_exchanges_as_the_index_does(path: Path) -> None:
    """Although the one decodes more of each than the other, and events at the end are put in order."""
    index = index_of(path)
    keys = {index.apis[2 * row] for row in range(len(index))}
    for key in keys:
        assert rows_of(path, f"api_key == {key}") == [row for row in range(len(index)) if index.apis[2 * row] == key]
    for row in range(0, len(index), max(len(index) // 5, 1)):
        one = index.exchange(row)
        wanted = f"connection == {one.connection.id} and correlation_id == {one.correlation_id}"
        assert row in rows_of(path, f"{wanted} and not (topic == nothing)")


def test_what_the_tabs_show_can_be_sent_to_another_process() -> None:
    """The findings are those of the doctor."""
    import pickle

    sent: list[Any] = []
    report_captures(sent.append, [str(RECORDINGS[0])], ReadOptions(), [("api",)], "")
    (message,) = pickle.loads(pickle.dumps(sent))
    assert isinstance(message, Reported)
    assert [one.severity for one in message.findings] == ["error", "info", "info"]


def test_a_filter_chooses_what_is_counted_and_not_what_is_found(kwiresniff: Run) -> None:
    """The counts are those of stats, topics and groups with -Y; findings are about all there is."""
    path, expression = str(RECORDINGS[0]), "api == Produce or api == Fetch"
    sent: list[Any] = []
    report_captures(sent.append, [path], ReadOptions(), [("api",), ("api", "client")], expression)
    (message,) = sent
    wanted = json.loads(kwiresniff("stats", path, "-Y", expression, "-o", "json", "--by", "api").out)
    assert {row.key[0]: row.count for row in message.stats["api"]} == {one["api"]: one["count"] for one in wanted}
    assert all(len(row.key) == 2 for row in message.stats["api+client"]) and message.stats["api+client"]
    assert [one.severity for one in message.findings] == ["error", "info", "info"]
    assert message.expression == expression and message.done


def test_saved_rows_are_the_lines_of_read(tmp_path: Path, kwiresniff: Run) -> None:
    """In every member, and for their owner alone."""
    path, out = RECORDINGS[0], tmp_path / "saved.jsonl"
    read = [json.loads(line) for line in kwiresniff("read", str(path), "-o", "jsonl").out.splitlines()]
    exchanges = [one for one in read if one["kind"] == "exchange"]
    rows = [row for row, one in enumerate(exchanges) if one["api"] == "Produce"]
    sent: list[Any] = []
    save_exchanges(sent.append, [str(path)], ReadOptions(), array("q", rows).tobytes(), str(out))
    saved = [json.loads(line) for line in out.read_text().splitlines()]
    assert saved == [exchanges[row] for row in rows] != []
    assert out.stat().st_mode & 0o777 == 0o600


def shown(rows: Sequence[Row]) -> str:
    """The text of rows of a tree."""
    return "".join(str(row.chunks) + shown(row.children) for row in rows)


def test_all_processes_of_a_program_hash_with_one_key_and_those_of_another_with_another(tmp_path: Path) -> None:
    """Without --redact-key, too: what is saved has the hashes that the tree shows."""
    path, out = str(CAPTURES / "first-look.pcap"), tmp_path / "saved.jsonl"
    found = []
    for _ in range(2):
        model, jobs = model_of((path,), ReadOptions(redact=True))
        index_captures(model.take, *jobs.arguments)  # type: ignore[arg-type]
        row = [model.index.apis[2 * row] for row in range(len(model.index))].index(PRODUCE)
        details = model.details(row, whole=True)
        tree = shown(details.rows) if details is not None else ""
        with closing(Forks()) as forks:
            work = forks.start(jobs.save_rows, *jobs.arguments, array("q", [row]).tobytes(), str(out))
            assert isinstance(work.receive(), Saved)
            with pytest.raises(EOFError):
                work.receive()
        hashes = set(re.findall(r'"hash":"(\w+)"', out.read_text()))
        assert hashes and all(one in tree for one in hashes)
        found.append(hashes)
    assert not found[0] & found[1]


PLUGIN = """
import json
from kwiresniff.plugins import DoesNotFit

def decode(topic, part, data, headers):
    if topic == "orders" and part == "value":
        if b"ada" in data:
            return {"customer": json.loads(data)["customer"].upper()}
        raise DoesNotFit("order", "the customer is another")

def register(hooks):
    hooks.value_decoder(decode)
    hooks.annotator(lambda exchange: "noted")
    hooks.annotator(lambda exchange: 1 / 0, "broken")
"""


@pytest.mark.parametrize("redacted", [False, True])
def test_plugins_are_asked_about_what_is_selected(redacted: bool, tmp_path: Path) -> None:
    """The tree has what they decode, what does not fit, their notes, and what is wrong with them; with --redact
    nothing that they see in plain.
    """
    path, plugin = str(CAPTURES / "first-look.pcap"), tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    options = ReadOptions(plugin=(str(plugin),), redact=redacted)
    model, jobs = model_of((path,), options)
    index_captures(model.take, *jobs.arguments)  # type: ignore[arg-type]
    row = [model.index.apis[2 * row] for row in range(len(model.index))].index(PRODUCE)
    details = model.details(row, whole=False)
    tree = shown(details.rows) if details is not None else ""
    for text in ('{"customer": "ADA"}', "names schema order and does not fit it", "noted", "ZeroDivisionError"):
        assert (text in tree) is not redacted


def test_saved_packets_are_those_that_read_writes(tmp_path: Path, kwiresniff: Run) -> None:
    """Byte by byte, for their owner alone, and counted alike."""
    path, out, wanted = RECORDINGS[0], tmp_path / "saved.pcapng", tmp_path / "read.pcapng"
    told = kwiresniff("read", str(path), "-Y", "api == Produce", "-w", str(wanted)).err
    sent: list[Any] = []
    rows = array("q", rows_of(path, "api == Produce")).tobytes()
    save_packets(sent.append, [str(path)], ReadOptions(), rows, str(out))
    assert out.read_bytes() == wanted.read_bytes()
    assert out.stat().st_mode & 0o777 == 0o600
    (message,) = sent
    assert isinstance(message, Saved)
    assert told == f"kwiresniff: {message.what}, written to {wanted}\n"


def test_nothing_is_saved_into_a_capture_that_is_browsed(tmp_path: Path) -> None:
    """Neither JSON lines nor packets."""
    path = tmp_path / "fenced.pcap.xz"
    path.write_bytes(RECORDINGS[0].read_bytes())
    for save in (save_exchanges, save_packets):
        with pytest.raises(ExportError, match="one of the captures"):
            save(print, [str(path)], ReadOptions(), array("q", [0]).tobytes(), str(path))
    assert path.read_bytes() == RECORDINGS[0].read_bytes()


def test_a_file_that_cannot_be_written_is_told_without_the_place_in_the_code(tmp_path: Path) -> None:
    """The folder is missing: what to do about it is all that is of use."""
    path, rows = str(tmp_path / "missing" / "out.jsonl"), array("q", [0]).tobytes()
    captures, work = [str(CAPTURES / "first-look.pcap")], "kwiresniff.cli.browse_jobs:save_exchanges"
    with closing(Forks()) as forks:
        saving = forks.start(work, captures, ReadOptions(), rows, path)
        told = saving.receive()
        with pytest.raises(EOFError):
            saving.receive()
    assert isinstance(told, Failed)
    assert told.reason.startswith(f"{path}: cannot write here") and told.reason.endswith("choose another output file")


def test_a_decrypted_exchange_is_found_again() -> None:
    """Its packets hold ciphertext: only the key log shows that the first request is ApiVersions, as any client's."""
    path, options = str(CAPTURES / "java-tls.pcap"), ReadOptions(keylog=str(CAPTURES / "keys" / "java-tls.log"))
    model, _ = model_of((path,), options)
    index_captures(model.take, [path], options)  # type: ignore[arg-type]
    details = model.details(0, whole=False)
    assert details is not None and details.exchange.api == "ApiVersions"
