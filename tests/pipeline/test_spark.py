"""The data source and the commands, on a small Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.cli.main import main
from kwiresniff.pipeline import batch_run as run_module
from kwiresniff.pipeline import session
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.plan import plan
from kwiresniff.pipeline.query import open_views
from tests.support.exported import Json, exchange_of, exchanges, export, recorded, rotate, shifted
from tests.support.paths import CAPTURES
from tests.support.sample import one_in
from tests.support.transformations import elsewhere, segments_of, write


def frame(spark: Any, *paths: Path, **options: str) -> Any:
    return spark.read.format("kwiresniff").options(**options).load([str(path) for path in paths])


def test_the_data_source_says_what_export_says_about_captures(spark: Any, tmp_path: Path) -> None:
    """Several captures in one job, exchange for exchange in the order of the capture."""
    paths = one_in(3, recorded())
    expected = {str(path): exchanges(export(tmp_path / f"{path.name}.jsonl", path)) for path in paths}
    found: dict[str, list[Json]] = {path: [] for path in expected}
    for row in frame(spark, *paths, parallelism="2").collect():
        found[row["source"]].append(exchange_of(row.asDict(recursive=True)))
    assert found == expected


def test_a_single_path_a_table_and_a_filter(spark: Any) -> None:
    """A single path gives a table that can be filtered, as in a notebook."""
    capture = str(CAPTURES / "java-group-classic.pcap")
    joins = spark.read.format("kwiresniff").load(capture).where("api = 'JoinGroup' and latency_ns > 0")
    assert joins.count() > 0
    connections = spark.read.format("kwiresniff").option("table", "connections").load(capture)
    assert connections.agg({"exchanges": "sum"}).first()[0] == spark.read.format("kwiresniff").load(capture).count()


def test_columns_and_conditions_reach_the_data_source(spark: Any) -> None:
    """Only what is asked for is read, and it is what there is without asking."""
    capture = CAPTURES / "java-group-classic.pcap"
    whole = frame(spark, capture).collect()
    assert frame(spark, capture, columns="connection_id").count() == len(whole)
    few = frame(spark, capture, columns="api, latency_ns")
    assert [tuple(row) for row in few.collect()] == [(row["api"], row["latency_ns"]) for row in whole]
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    broker = whole[0]["broker"]
    asked = frame(spark, capture).where(f"api in ('Fetch', 'JoinGroup') and broker = '{broker}' and outcome = 'ok'")
    expected = [row for row in whole if row["api"] in ("Fetch", "JoinGroup") and row["broker"] == broker]
    assert asked.collect() == [row for row in expected if row["outcome"] == "ok"] != []
    assert frame(spark, capture, where="api == Fetch").collect() == [row for row in whole if row["api"] == "Fetch"]
    with pytest.raises(Exception, match="no nonsense"):
        frame(spark, capture, columns="nonsense")


def test_a_stream_gives_the_exchanges_of_files_as_they_arrive(spark: Any, tmp_path: Path) -> None:
    """A connection goes on from the first file to the second, which comes when the first was read; each row once."""
    capture = CAPTURES / "first-look.pcap"
    watched = tmp_path / "in"
    watched.mkdir()
    later = tmp_path / "later"
    later.mkdir()
    files = rotate(capture, later, 30)
    expected = exchanges(export(tmp_path / "out.jsonl", *files))
    read = spark.readStream.format("kwiresniff").option("state", str(tmp_path / "state")).option("settle", "1ms")
    for file in files:
        os.rename(file, watched / file.name)
        query = (
            read.load(str(watched)).writeStream.format("parquet").option("path", str(tmp_path / "table"))
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "table")).collect()
    found = [exchange_of(row.asDict(recursive=True)) for row in rows]
    ended = [one for one in expected if one["outcome"] != "unanswered"]

    def key(one: Json) -> tuple[int, int, str]:
        return one["request"]["timestamp_ns"], one["correlation_id"], json.dumps([one["request"], one["outcome"]])

    for one in ended:
        del one["request"]["file"], one["response"]["file"]
    assert sorted(map(key, found)) == sorted(map(key, ended)) != []


def test_rotated_files_are_one_source(spark: Any, tmp_path: Path) -> None:
    """A connection in both files comes out once, with all its exchanges."""
    capture = CAPTURES / "first-look.pcap"
    files = rotate(capture, tmp_path, 30)
    expected = exchanges(export(tmp_path / "out.jsonl", *files))
    found = [exchange_of(row.asDict(recursive=True), files=True) for row in frame(spark, *files).collect()]
    assert found == expected
    assert len(expected) == len(exchanges(export(tmp_path / "whole.jsonl", capture)))


@pytest.fixture
def command(spark: Any, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs ``kwiresniff pipeline`` on the session of the tests."""

    def run(*args: str) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["pipeline", *args])
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return run


def test_run_and_query(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """Three captures, one of them corrupt; then a fourth; then nothing new. SQL finds every exchange once, in whatever
    folder."""
    folder, out = tmp_path / "in", tmp_path / "o, [1]{b}*ü"
    folder.mkdir()
    for name in ("first-look.pcap", "java-produce.pcap"):
        (folder / name).write_bytes((CAPTURES / name).read_bytes())
    (folder / "broken.pcap").write_bytes((CAPTURES / "java-fetch.pcapng").read_bytes()[:5000])

    def count() -> int:
        sql = "SELECT count(*) AS n, count(DISTINCT source, connection_id, request_first_packet) AS d FROM exchanges"
        code, text, _ = command("query", str(out), sql, "-o", "jsonl")
        assert code == 0
        answer = json.loads(text)
        assert answer["n"] == answer["d"]
        return int(answer["n"])

    def expected() -> int:
        return sum(len(exchanges(export(tmp_path / "x.jsonl", path))) for path in sorted(folder.iterdir()))

    assert command("run", str(folder), "--out", str(out))[0] == 0
    assert count() == expected()
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["this_run"]["files"] == 3
    assert manifest["total"]["rows"]["exchanges"] == expected()
    code, text, _ = command(
        "query", str(out), "SELECT file, code FROM problems WHERE file LIKE '%broken%'", "-o", "jsonl"
    )
    assert code == 0 and "broken.pcap" in text

    (folder / "franz-go.pcap").write_bytes((CAPTURES / "franz-go.pcap").read_bytes())
    assert command("run", str(folder), "--out", str(out))[0] == 0
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["this_run"]["files"] == 1
    assert count() == expected()

    code, _, err = command("run", str(folder), "--out", str(out))
    assert code == 0
    assert f"0 exchanges from 0 files; {expected()} exchanges in all" in err

    clients = "SELECT sum(exchanges) AS n, sum(aggregate(uses, 0L, (s, u) -> s + u.exchanges)) AS u FROM clients"
    answer = json.loads(command("query", str(out), clients, "-o", "jsonl")[1])
    assert answer["n"] == answer["u"] == expected()

    named = "SELECT {} AS t FROM exchanges WHERE api = 'CreateTopics' ORDER BY time LIMIT 1"
    code, text, err = command(
        "query", str(out), named.format("request_body:topics[0].name"), "-o", "jsonl", "--variant"
    )
    assert code == 0, err
    assert text == command("query", str(out), named.format("topics[0]"), "-o", "jsonl")[1] != ""

    percentiles = "SELECT api, percentile_ns(collect_list(latency), 1.0) AS most FROM latency GROUP BY api"
    longest = "SELECT api, max(latency_ns) AS most FROM exchanges GROUP BY api"
    answers = [command("query", str(out), sql + " ORDER BY api", "-o", "jsonl")[1] for sql in (percentiles, longest)]
    assert answers[0] == answers[1] != ""


def test_logs_of_two_clusters_are_two_and_of_two_sources_one(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """Both clusters have a topic ``orders``, with five records. A capture of the first one that was begun too late to
    be told its id counts with it, because another source was told the id of that broker."""
    segments, folder, out = segments_of(CAPTURES / "first-look.pcap"), tmp_path / "in", tmp_path / "out"
    for name, seen in (("here", segments), ("there", elsewhere(segments)), ("late", segments[len(segments) // 2 :])):
        (folder / name).mkdir(parents=True)
        write(folder / name, seen)
    assert command("run", str(folder), "--out", str(out))[0] == 0
    sql = "SELECT * FROM logs WHERE topic = 'orders' ORDER BY cluster"
    code, text, err = command("query", str(out), sql, "-o", "jsonl")
    assert code == 0, err
    here, there = map(json.loads, text.splitlines())
    assert (here["cluster"], len(here["sources"])) == ("a3dpcmVzbmlmZi1kZW1vMQ", 2)
    assert (there["cluster"], len(there["sources"])) == ("b3RoZXItY2x1c3Rlci1pZA", 1)
    assert (there["partition"], there["produced_records"], there["consumed_records"]) == (0, 5, 5)
    assert here["high_watermark"] == there["high_watermark"] == 5


def test_watch_goes_on_where_it_stopped(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """A streaming query for each of two files, and one for the end; then nothing is left to do.

    The second one was killed before Spark had written down that its batch was done.
    """
    capture, folder, out = CAPTURES / "first-look.pcap", tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    files = rotate(capture, tmp_path, 30)
    watch = ("watch", str(folder), "--out", str(out), "--once", "--settle", "1ms")
    for number, file in enumerate(files):
        file.replace(folder / file.name)
        code, _, err = command(*watch)
        assert code == 0 and "from 1 files" in err, err
        assert (number == 0) == ("in all" not in err)
    checkpoint = out / "_kwiresniff" / "watch" / "checkpoint"
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=name != "1")
    assert command("watch", str(folder), "--out", str(out), "--finish", "-q")[0] == 0
    code, _, err = command(*watch)
    assert code == 0 and "0 exchanges from 0 files" in err
    expected = exchanges(export(tmp_path / "out.jsonl", *(folder / file.name for file in files)))
    open_views(spark_of(), str(out), ["exchanges"])
    rows = spark_of().sql("SELECT * FROM exchanges").collect()
    found = [exchange_of(row.asDict(recursive=True), files=True) for row in rows]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))

    code, _, err = command("run", str(folder), "--out", str(out))
    assert code == 1 and "pipeline watch" in err and err.count("\n") == 1


def test_a_source_in_shards_gives_what_the_whole_gives(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four tasks follow the connections of one capture, as they do of one that is too big for one of them."""
    capture, out = CAPTURES / "franz-go.pcap", tmp_path / "out"
    monkeypatch.setattr(run_module, "plan", partial(plan, min_shard_bytes=1))
    assert command("run", str(capture), "--out", str(out), "--partitions", "4")[0] == 0
    assert len(OutputStore(str(out)).commits()) == 4
    open_views(spark_of(), str(out), ["exchanges"])
    rows = [row.asDict(recursive=True) for row in spark_of().sql("SELECT * FROM exchanges").collect()]

    def key(exchange: Json) -> str:
        return repr({name: value for name, value in exchange.items() if name != "connection"})

    expected = exchanges(export(tmp_path / "out.jsonl", capture))
    assert sorted(map(key, map(exchange_of, rows))) == sorted(map(key, expected))
    assert len({row["connection_id"] for row in rows}) == len({one["connection"] for one in expected})


def test_captures_of_both_ends_tell_a_connection_once(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """The client's host has one connection more, and is told apart by it. The broker's capture ends too soon, the
    client's begins too late, by a clock that is ten minutes ahead: what each lacks is taken from the other one."""
    capture, folder, out = CAPTURES / "java-group-classic.pcap", tmp_path / "in", tmp_path / "out"
    for host, shift_us, only in (("broker", 0, range(200)), ("client", 600_000_000, range(80, 260))):
        (folder / host).mkdir(parents=True)
        shifted(capture, folder / host / "x.pcap", shift_us, only=only)
    (folder / "client" / "x.pcap1").write_bytes((CAPTURES / "first-look.pcap").read_bytes())
    assert command("run", str(folder), "--out", str(out), "--both-ends")[0] == 0
    found = json.loads(command("query", str(out), "SELECT count(*) AS n FROM exchanges", "-o", "jsonl")[1])["n"]
    both = (capture, CAPTURES / "first-look.pcap")
    assert found == sum(len(exchanges(export(tmp_path / "one.jsonl", path))) for path in both)
    problems = "SELECT code, count(*) AS n FROM problems GROUP BY 1"
    told = json.loads(command("query", str(out), problems, "-o", "jsonl")[1])
    assert told["code"] == "other_end" and told["n"] > 5
    assert "0 exchanges from 0 files" in command("run", str(folder), "--out", str(out), "--both-ends")[2]
    (folder / "broker" / "x.pcap").unlink()
    assert "0 exchanges from 0 files" in command("run", str(folder), "--out", str(out), "--both-ends")[2]


def test_captures_on_another_file_system(
    spark: Any, command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """Hadoop's mount table stands for a cluster's: other names, other code to list and read."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    rotate(CAPTURES / "first-look.pcap", folder, 30)
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.kw.link./captures", folder.as_uri())
    code, _, err = command("run", "viewfs://kw/captures/*", f"file://{CAPTURES}/franz-go.pcap", "--out", str(out))
    assert code == 0, err
    sql = "SELECT source, request_file, count(*) AS n FROM exchanges GROUP BY ALL ORDER BY 1, 2"
    found = [json.loads(line) for line in command("query", str(out), sql, "-o", "jsonl")[1].splitlines()]
    assert [row["source"] for row in found] == [
        str(CAPTURES / "franz-go.pcap"),
        *["viewfs://kw/captures/trace.pcap"] * 2,
    ]
    assert [row["request_file"] for row in found[1:]] == [f"viewfs://kw/captures/trace.pcap{n}" for n in ("", "1")]
    whole = len(exchanges(export(tmp_path / "whole.jsonl", CAPTURES / "first-look.pcap")))
    assert sum(row["n"] for row in found[1:]) == whole
    assert not (out / "_kwiresniff" / "inputs").exists()
    assert "from 0 files" in command("run", "viewfs://kw/captures/*", "--out", str(out))[2]

    for arguments, said in (
        (("run", "viewfs://kw/nothing", "--out", str(out)), "no such file"),
        (("run", "gopher://kw/x", "--out", str(out)), "gopher"),
        (("run", "hdfs://nowhere.invalid/x", "--out", str(out)), "nowhere.invalid"),
        (("run", str(folder), "--out", "viewfs://kw/out"), "copy it there"),
        (("watch", "viewfs://kw/captures", "--out", str(tmp_path / "w")), "not a path"),
    ):
        code, _, err = command(*arguments)
        assert code == 1 and said in err and err.count("\n") == 1, err


def spark_of() -> Any:
    """The session that the commands of the tests run on."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def test_a_query_that_makes_no_sense_is_told_in_one_line(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """Without a traceback, naming what is wrong: a column, the grammar, a value that shows only when its row comes."""
    out = tmp_path / "out"
    assert command("run", str(CAPTURES / "first-look.pcap"), "--out", str(out), "-q")[0] == 0
    for sql, said in (
        ("SELECT nothing_like_it FROM exchanges", "nothing_like_it"),
        ("SELEC 1", "near 'SELEC'"),
        ("SELECT raise_error('boom') FROM exchanges", "boom"),
        ("SELECT percentile_ns(collect_list(api), 0.9) FROM exchanges", "TypeError"),
    ):
        code, _, err = command("query", str(out), sql)
        assert code == 1
        assert err.count("\n") == 1 and err.startswith("kwiresniff: query: ") and said in err, err


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_a_query_prints_times_in_utc(
    zone: str, command: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever they stand in a row, in the hour that summer time gives twice, too; what has no zone gets none."""
    out = tmp_path / "out"
    assert command("run", str(CAPTURES / "first-look.pcap"), "--out", str(out), "-q")[0] == 0
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        sql = (
            "SELECT time, request_timestamp_ns AS ns, map('a', array(time)) AS m, "
            "timestamp'2026-11-01 05:30:00Z' AS first, timestamp'2026-11-01 06:30:00Z' AS second, "
            "timestamp_ntz'2026-11-01 05:30:00' AS none, CAST(1.5 AS DECIMAL(2, 1)) AS d FROM exchanges "
            "ORDER BY 2 LIMIT 1"
        )
        code, text, err = command("query", str(out), sql, "-o", "jsonl")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert code == 0, err
    row = json.loads(text)
    moment = datetime.fromtimestamp(row["ns"] // 1000 / 1e6, UTC)
    assert row["time"] == moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert row["m"] == {"a": [row["time"]]}
    assert (row["first"], row["second"]) == ("2026-11-01T05:30:00.000000Z", "2026-11-01T06:30:00.000000Z")
    assert (row["none"], row["d"]) == ("2026-11-01T05:30:00.000000", 1.5)


def test_a_session_of_this_machine_authenticates_its_processes(spark: Any) -> None:
    """With a secret that stands in no setting, and so on no command line."""
    settings = dict(spark.sparkContext.getConf().getAll())
    assert settings["spark.authenticate"] == "true"
    assert "spark.authenticate.secret" not in settings


def test_a_query_leaves_nothing_where_it_is_asked(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """In a process of its own, with Spark's own idea of where tables are: it looks for one there."""
    out, here, temporary = tmp_path / "out", tmp_path / "here", tmp_path / "tmp"
    here.mkdir()
    temporary.mkdir()
    assert command("run", str(CAPTURES / "first-look.pcap"), "--out", str(out), "-q")[0] == 0
    asked = ["pipeline", "query", str(out), "DROP TABLE nothing_like_it"]
    done = subprocess.run(
        [sys.executable, "-m", "kwiresniff", *asked],
        check=False, cwd=here, env=os.environ | {"TMPDIR": str(temporary)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "nothing_like_it" in done.stderr, done.stderr
    assert done.stdout == ""
    assert list(here.iterdir()) == list(temporary.iterdir()) == []


def test_a_named_file_that_is_no_capture_is_told_by_the_data_source(spark: Any, tmp_path: Path) -> None:
    """A file that is no capture becomes a row, so that a job over thousands of files goes on."""
    (tmp_path / "a.pcap").write_text("this is a text", encoding="utf-8")
    (row,) = frame(spark, tmp_path / "a.pcap", table="problems").collect()
    assert row["code"] == "capture_unreadable"


@pytest.mark.usefixtures("spark")
def test_settings_of_the_user_win() -> None:
    """Over those that a session has without."""
    found = session("local[2]", spark__sql__shuffle__partitions="3")
    assert found.conf.get("spark.sql.shuffle.partitions") == "3"
    assert session("local[2]").conf.get("spark.sql.shuffle.partitions") == "2"


def test_spark_finds_the_data_source_by_itself(spark: Any) -> None:
    """The name by which Spark looks for data sources in installed packages, and what it expects there."""
    from pyspark.sql.datasource import DataSource

    from pyspark_kwiresniff import DefaultSource

    assert issubclass(DefaultSource, DataSource)
    assert DefaultSource.name() == "kwiresniff"
