from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console, RenderableType

from kwiresniff.render.histogram import latency_range, sparkline
from kwiresniff.render.line_wrapping import cells
from kwiresniff.render.tables import plain_table, stats_table
from kwiresniff.results.stats import LatencySummary, StatRow

Golden = Callable[[str, str], None]
MS = 1_000_000


def latency(count: int, middle_ms: float, buckets: dict[float, int]) -> LatencySummary:
    low, mean, p50, p90, p95, p99, high = (int(middle_ms * factor * MS) for factor in (0.2, 1.1, 1, 1.8, 2.4, 5.2, 17))
    counts = tuple((int(bound * MS), number) for bound, number in buckets.items())
    return LatencySummary(count, low, mean, p50, p90, p95, p99, high, counts)


ROWS = [
    StatRow(
        ("api",),
        ("Produce",),
        12_345,
        3,
        0,
        48_200_000,
        1_200_345,
        latency(12_345, 1.2, {0.5: 20, 1: 4_000, 2: 8_000, 5: 300, 10: 24, 20: 1}),
    ),
    StatRow(
        ("api",),
        ("Fetch",),
        8_000,
        0,
        2,
        700_000,
        48_900_111,
        latency(1_000, 0.8, {0.5: 300, 1: 700}),
        (("long poll", latency(7_000, 480, {200: 1_000, 500: 6_000})),),
        latency(90, 2, {1: 40, 2: 50}),
        latency(7_000, 479, {200: 1_000, 500: 6_000}),
        latency(8_000, 0.7, {0.5: 6_000, 1: 2_000}),
    ),
    StatRow(
        ("api",),
        ("JoinGroup",),
        3,
        1,
        0,
        390,
        210,
        None,
        (("rebalance", latency(2, 2_900, {2_000: 1, 5_000: 1})),),
    ),
    StatRow(("api",), ("a\x1b[31m\u202eb [bold]x[/]",), 1, 0, 1, 10, 0, None),
]


def shown(table: RenderableType | list[str], width: int, color: bool = False, ascii: bool = False) -> str:
    if isinstance(table, list):
        return "".join(line + "\n" for line in table)
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii" if ascii else "utf-8")
    console = Console(
        file=out,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        markup=False,
        highlight=False,
    )
    console.print(table)
    out.flush()
    return raw.getvalue().decode()


@pytest.mark.parametrize("width", [80, 120, 160])
def test_the_table_is_exactly_this(golden: Golden, width: int) -> None:
    golden(f"stats-{width}.txt", shown(stats_table(ROWS, by=["api"], width=width, color=False), width))


def test_the_table_in_ascii_is_exactly_this(golden: Golden) -> None:
    text = shown(stats_table(ROWS, by=["api"], width=160, color=False, unicode=False), 160, ascii=True)
    assert text.isascii()
    golden("stats-160-ascii.txt", text)


def test_the_table_of_pairs_has_a_column_for_each(golden: Golden) -> None:
    rows = [
        StatRow(("client", "api"), (client, api), 10, 0, 0, 100, 200, latency(10, 2, {2: 5, 5: 5}))
        for client in ("billing-service-in-frankfurt-blue-1", "orders")
        for api in ("Fetch", "Metadata")
    ]
    golden("stats-80-pairs.txt", shown(stats_table(rows, by=["client", "api"], width=80, color=False), 80))


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120, 140, 160, 200])
def test_the_table_fits_the_width(width: int) -> None:
    lines = shown(stats_table(ROWS, by=["api"], width=width, color=False), width).splitlines()
    assert max(map(cells, lines)) <= width
    assert all("Produce" in line or "12,345" not in line for line in lines), "rows are not folded"


def test_a_narrow_table_keeps_count_and_the_tail() -> None:
    head = shown(stats_table(ROWS, by=["api"], width=80, color=False), 80).splitlines()[0]
    assert head.split() == ["api", "count", "errors", "p50", "p99", "max", "histogram"]


def test_the_total_sums_what_can_be_summed() -> None:
    line = next(
        line
        for line in shown(stats_table(ROWS, by=["api"], width=160, color=False), 160).splitlines()
        if "total" in line
    )
    assert line.split() == ["total", "20,349", "4", "3", "46.6", "MB", "47.8", "MB"]


def test_there_is_no_total_by_topic_because_an_exchange_can_be_about_two() -> None:
    rows = [StatRow(("topic",), (name,), 1, 0, 0, 10, 10, None) for name in "ab"]
    assert "total" not in shown(stats_table(rows, by=["topic"], width=80, color=False), 80)


def test_hostile_keys_are_escaped_and_never_markup() -> None:
    text = shown(stats_table(ROWS, by=["api"], width=160, color=False), 160)
    assert "a\\x1b[31m\\u202eb [bold]x[/]" in text
    assert text.replace("\n", "").isprintable()


def test_no_rows_is_an_empty_table() -> None:
    assert "count" in shown(stats_table([], by=["api"], width=80, color=False), 80)


def test_without_colour_there_is_none() -> None:
    assert "\x1b" not in shown(stats_table(ROWS, by=["api"], width=80, color=False), 80)


def test_any_list_becomes_a_table(golden: Golden) -> None:
    rows: list[list[object]] = [["json", "plugins/json_values.py", 3], ["evil\x1b[2J", None, 12]]
    golden("plain-60.txt", shown(plain_table(["plugin", "from", "adds"], rows, right=["adds"]), 60))


def test_bars_in_the_same_place_are_the_same_latency() -> None:
    fast, slow = ((1, 4), (2, 1)), ((2, 1), (5, 4))
    scale = latency_range([fast, slow])
    assert scale == (1, 2, 5)
    assert sparkline(fast, scale, 10, " ▁▂▃▄▅▆▇█") == "█▄"
    assert sparkline(slow, scale, 10, " ▁▂▃▄▅▆▇█") == " ▄█"


def test_a_single_slow_one_among_a_million_is_still_seen() -> None:
    buckets = ((1, 1_000_000), (1_000, 1))
    assert sparkline(buckets, (1, 1_000), 10, " ▁▂▃▄▅▆▇█") == "█▁"


def test_a_long_scale_is_grouped_into_the_width() -> None:
    buckets = tuple((bound, 1) for bound in range(40))
    assert len(sparkline(buckets, range(40), 14, " .:#")) <= 14
