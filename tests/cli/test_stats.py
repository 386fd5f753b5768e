"""``kwiresniff stats``."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from tests.support.capture_files import heartbeats, metadata_v0, pcap, save
from tests.support.command import Run
from tests.support.damages import snapped, thinned
from tests.support.paths import CAPTURES


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return save(tmp_path / "a.pcap", heartbeats(5, failing=True, client_port=41_000), metadata_v0("orders"))


def test_a_row_has_counts_bytes_and_latency(kwiresniff: Run, capture: str) -> None:
    rows = {row["api"]: row for row in json.loads(kwiresniff("stats", "-o", "json", capture).out)}
    beat = rows["Heartbeat"]
    assert (beat["count"], beat["errors"], beat["negotiation"], beat["unanswered"]) == (5, 0, 1, 0)
    # Header v1 with client id "c-1" is 13 bytes, the body 5 + 2, 4, 6 + 2; the answer 4 and 2.
    assert (beat["request_bytes"], beat["response_bytes"]) == (5 * (13 + 7 + 4 + 8), 5 * 6)
    assert (beat["latency"]["count"], beat["latency"]["min_ns"], beat["latency"]["max_ns"]) == (5, 10**6, 10**6)
    assert rows["Metadata"]["errors"] == 1


def test_json_lines_have_a_row_each_for_every_table(kwiresniff: Run, capture: str) -> None:
    done = kwiresniff("stats", "-o", "jsonl", "--by", "topic,api+client,broker,connection", capture)
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(row["by"], row["count"]) for row in rows] == [
        (["topic"], 5), (["topic"], 1), (["api", "client"], 5), (["api", "client"], 1), (["broker"], 6),
        (["connection"], 5), (["connection"], 1),
    ]  # fmt: skip
    assert [row["topic"] for row in rows[:2]] == ["(no topic)", "orders"]
    assert rows[2]["client"] == "c-1 10.0.0.1"


def test_the_table_names_what_it_counts(kwiresniff: Run, capture: str) -> None:
    done = kwiresniff("stats", capture)
    assert (done.code, done.err) == (0, "")
    assert "Heartbeat" in done.out
    assert "1.00 ms" in done.out


def test_a_filter_applies_before_counting(kwiresniff: Run, capture: str) -> None:
    rows = json.loads(kwiresniff("stats", "-o", "json", "-Y", "topic == orders", capture).out)
    assert [(row["api"], row["count"]) for row in rows] == [("Metadata", 1)]


def test_topics_are_counted_by_name_with_a_filter_that_needs_bodies_too(kwiresniff: Run, capture: str) -> None:
    rows = json.loads(kwiresniff("stats", "-o", "json", "--by", "topic", "-Y", "topic == orders", capture).out)
    assert [(row["topic"], row["count"]) for row in rows] == [("orders", 1)]


def test_a_reader_that_leaves_a_long_table_early_is_no_error(tmp_path: Path) -> None:
    capture = save(tmp_path / "a.pcap", *[heartbeats(1, client_port=10_000 + number) for number in range(1_500)])
    command = [sys.executable, "-m", "kwiresniff", "stats", "--by", "connection", capture]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 0)
    process.stderr.close()


def test_an_error_code_of_another_name_is_an_error_and_no_topic(kwiresniff: Run) -> None:
    """AddPartitionsToTxn tells its errors as partition_error_code."""
    capture = str(Path(__file__).parents[2] / "captures" / "eras" / "era-1.1-clients.pcap.xz")
    done = kwiresniff("read", "-o", "jsonl", "-Y", "api == AddPartitionsToTxn", capture)
    exchanges = [one for one in map(json.loads, done.out.splitlines()) if one["kind"] == "exchange"]
    failed = [one for one in exchanges if one["errors"]]
    assert failed
    rows = json.loads(kwiresniff("stats", "-o", "json", "--by", "api,topic", capture).out)
    (row,) = [row for row in rows if row.get("api") == "AddPartitionsToTxn"]
    assert (row["count"], row["errors"] + row["negotiation"]) == (len(exchanges), len(failed))
    assert all(isinstance(row.get("topic", ""), str) for row in rows)


def test_errors_in_responses_that_break_off_are_counted(kwiresniff: Run, tmp_path: Path) -> None:
    """``stats`` counts as many as ``read`` reports, at several snap lengths and with a tenth of the packets lost."""
    recording = Path(__file__).parents[2] / "captures" / "java-admin-topics.pcap"
    segments = list(open_captures([str(recording)]))
    file = tmp_path / "damaged.pcap"
    broken = 0
    for damaged in (snapped(segments, 112), snapped(segments, 128), thinned(segments, 0.1, random.Random(1))):
        file.write_bytes(pcap(damaged))
        lines = map(json.loads, kwiresniff("read", "-o", "jsonl", str(file)).out.splitlines())
        failed = [line for line in lines if line["kind"] == "exchange" and line["errors"]]
        rows = json.loads(kwiresniff("stats", "-o", "json", str(file)).out)
        assert {row["api"]: row["errors"] for row in rows if row["errors"]} == Counter(line["api"] for line in failed)
        broken += sum(any(problem["code"] == "gap" for problem in line["problems"]) for line in failed)
    assert broken >= 10


def test_records_are_those_that_the_recipe_wrote_and_read(kwiresniff: Run) -> None:
    """Five orders are produced and read in this recording."""
    done = kwiresniff("stats", "--records", "--by", "topic", "-o", "jsonl", str(CAPTURES / "first-look.pcap"))
    rows = {row["topic"]: row for row in map(json.loads, done.out.splitlines())}
    assert (rows["orders"]["request_records"], rows["orders"]["response_records"]) == (5, 5)


def test_a_table_without_records_says_how_to_get_them(kwiresniff: Run) -> None:
    """At the foot of the last table, and of none that has them."""
    capture = str(CAPTURES / "first-look.pcap")
    plain = kwiresniff("stats", "--by", "api,client", capture).out
    assert plain.count("--records") == 1 and "--records" in plain.rstrip().splitlines()[-1]
    for having in (("--records",), ("--by", "partition"), ("-o", "json")):
        assert "--records" not in kwiresniff("stats", *having, capture).out


def test_tables_by_partition_count_records_by_themselves(kwiresniff: Run) -> None:
    """Bodies are read for them in any case."""
    done = kwiresniff("stats", "--by", "partition", str(CAPTURES / "first-look.pcap"))
    assert done.code == 0 and "produced" in done.out.splitlines()[0]
    assert kwiresniff("stats", "--by", "topic+partition", str(CAPTURES / "first-look.pcap")).code == 2


def test_over_time_each_slice_has_the_requests_that_began_in_it(kwiresniff: Run) -> None:
    """By the times that ``read`` gives them; a slice begins at a whole ten seconds and empty ones are there."""
    file = str(CAPTURES / "latency" / "client.pcap.xz")
    found = [json.loads(line) for line in kwiresniff("read", "-o", "jsonl", file).out.splitlines()]
    begun = Counter(one["request"]["time"][:18] for one in found if one["kind"] == "exchange")
    rows = json.loads(kwiresniff("stats", "--every", "10s", "-o", "json", file).out)
    assert {row["time"][:18]: row["count"] for row in rows} == begun
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    assert {row["time"][18:] for row in rows} == {"0.000000000Z"}


def test_over_time_rows_are_split_by_what_is_asked_for(kwiresniff: Run, capture: str) -> None:
    rows = json.loads(kwiresniff("stats", "--every", "1h", "--by", "api", "-o", "json", capture).out)
    assert {row["api"]: row["count"] for row in rows} == {"Heartbeat": 5, "Metadata": 1}
    assert {tuple(row["by"]) for row in rows} == {("time", "api")}


def test_the_table_over_time_has_a_bar(kwiresniff: Run) -> None:
    """The busiest slice has the longest, and an empty slice none."""
    file = str(CAPTURES / "latency" / "client.pcap.xz")
    head, *lines = kwiresniff("stats", "-q", "--every", "500ms", file).out.splitlines()
    assert head.split()[:3] == ["time", "count", "per_s"]
    rows = [(int(cells[1]), cells[-1]) for cells in map(str.split, lines)]
    assert len(max(rows)[1]) == 20
    assert {bar for count, bar in rows if not count} == {"-"}
    assert len({len(line.split()) for line in lines}) == 1


def test_a_sparkline_has_the_counts_of_the_slices_in_their_order(kwiresniff: Run) -> None:
    """The highest where the table has the most; nothing where nothing began."""
    file = str(CAPTURES / "latency" / "client.pcap.xz")
    counts = [one["count"] for one in json.loads(kwiresniff("stats", "--every", "2s", "-o", "json", file).out)]
    head, line = kwiresniff("stats", "-q", "--every", "2s", "-o", "sparkline", file).out.splitlines()
    drawn = line[head.index("counts") :][: len(counts)]
    levels = [" ▁▂▃▄▅▆▇█".index(char) for char in drawn]
    assert 1 < len(counts) <= 40
    assert [level == 8 for level in levels] == [count == max(counts) for count in counts]
    assert [level == 0 for level in levels] == [count == 0 for count in counts]
    assert kwiresniff("stats", "-o", "sparkline", file).code == 2


@pytest.mark.parametrize("width", ["0s", "10", "-1s", "often"])
def test_a_slice_has_a_width(kwiresniff: Run, capture: str, width: str) -> None:
    done = kwiresniff("stats", "--every", width, capture)
    assert (done.code, "no duration like 100ms or 10s" in done.err) == (2, True)
