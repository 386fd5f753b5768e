"""Mistakes in SQL that need no Spark to be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwiresniff.cli.main import main
from kwiresniff.errors import KwiresniffError
from kwiresniff.export.table_columns import WRITABLE
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.sql_check import check_sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT api, count(*) FROM exchanges WHERE latency_ns > 1e9 GROUP BY api",
        "select * from `exchanges` e join Connections using (source, connection_id) -- it's a 'comment",
        "WITH slow AS (SELECT * FROM exchanges), few (a) as (select 1) SELECT * FROM slow, few",
        "SELECT extract(HOUR FROM time), trim(BOTH ' ' FROM client_id) FROM exchanges",
        "SELECT * FROM (SELECT api FROM exchanges) AS inner_one JOIN latency ON 1 = 1",
        "SELECT a IS DISTINCT FROM b FROM VALUES (1, 2) AS t(a, b)",
        "SELECT 'it''s (', \"FROM nothing\", 'a\\'b' /* ( */ FROM range(5)",
        "(SELECT 1) UNION (SELECT 2 FROM errors)",
        "FROM exchanges SELECT api",
        "SHOW TABLES",
        "SELECT * FROM parquet.`/some/where`",
        "SELECT * FROM exchanges LATERAL VIEW explode(topics) t AS topic JOIN topic_latency USING (topic)",
    ],
)
def test_what_spark_understands_is_let_through(sql: str) -> None:
    """Whatever is not certain is Spark's."""
    check_sql(sql, WRITABLE)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "no SQL"),
        ("  -- nothing", "no SQL"),
        ("SELEC 1", "near 'SELEC'"),
        ("SELECT 'open FROM exchanges", "opened at character 8"),
        ("SELECT count(* FROM exchanges", "not closed"),
        ("SELECT 1) FROM exchanges", "closes nothing"),
        ("SELECT * FROM exchange", "no table 'exchange'; there are audit, clients"),
        ("SELECT * FROM exchanges JOIN brokers USING (source)", "no table 'brokers'"),
        ("SELECT * FROM (SELECT api FROM nowhere)", "no table 'nowhere'"),
    ],
)
def test_a_mistake_is_told(sql: str, said: str) -> None:
    """With what is wrong, and which tables there are."""
    with pytest.raises(KwiresniffError, match=r"^query: ") as told:
        check_sql(sql, WRITABLE)
    assert said in str(told.value)


def test_the_command_tells_it_without_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line."""
    monkeypatch.setattr("kwiresniff.pipeline.spark_session.start_session", None)
    OutputStore(str(tmp_path / "out")).create()
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "query", str(tmp_path / "out"), "SELECT 1 FROM exchange"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("kwiresniff: query: there is no table 'exchange'; there are ")
