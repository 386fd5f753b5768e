"""The plots of a report."""

from __future__ import annotations

import re
from typing import Any

from kwiresniff.render.page.plots import MAX_MARKS, api_plot, bytes_plot, latency_plot, rate_plot
from kwiresniff.results.findings import Finding
from kwiresniff.results.report import SeriesPoint
from kwiresniff.results.stats import LatencySummary, StatRow
from tests.support.exchanges import START_NS
from tests.support.harmful_text import UNSAFE

SECOND = 1_000_000_000
MS = 1_000_000


def point(second: int, **more: Any) -> SeriesPoint:
    """A second with ten exchanges of a millisecond."""
    values: dict[str, Any] = {
        "ok": 10, "errors": 0, "unanswered": 0, "request_bytes": 1024, "response_bytes": 0, "p50_ns": MS,
        "p99_ns": MS, "max_ns": MS,
    }  # fmt: skip
    return SeriesPoint(START_NS + second * SECOND, SECOND, **{**values, **more})


def finding(number: int, subject: str = "shop", severity: str = "error", **more: Any) -> Finding:
    """A finding that was seen first at that second."""
    return Finding("code", severity, subject, "title", "remedy", 1, (), {}, START_NS + number * SECOND, **more)


def titles(plot: str) -> list[str]:
    return re.findall(r"<title>([^<]*)</title>", plot)


def test_each_slice_tells_its_values() -> None:
    points = [point(0), point(1, errors=5), point(2, ok=0, p50_ns=None, p99_ns=None, max_ns=None)]
    assert titles(rate_plot(points)) == [
        "22:13:20.000, ok 10/s, error 0/s", "22:13:21.000, ok 10/s, error 5/s", "22:13:22.000, ok 0/s, error 0/s",
    ]  # fmt: skip
    assert titles(latency_plot(points))[1:] == ["22:13:21.000, max 1.00 ms, p99 1.00 ms, p50 1.00 ms", "22:13:22.000"]
    assert titles(bytes_plot(points))[0] == "22:13:20.000, to broker 1.00 KB/s, to client 0 B/s"


def test_axes_reach_to_the_greatest_value() -> None:
    """In round numbers: 40 of 0 to 40, 12 KB of 0 to 12 in steps of a power of two."""
    rates = rate_plot([point(0, ok=40)])
    assert re.findall(r'bottom:([\d.]+)%">([^<]+)<', rates)[-1] == ("100.00", "40/s")
    sizes = bytes_plot([point(0, request_bytes=12 << 10)])
    assert [text for _, text in re.findall(r'bottom:([\d.]+)%">([^<]+)<', sizes)] == [
        "0 B/s", "4.00 KB/s", "8.00 KB/s", "12.0 KB/s",
    ]  # fmt: skip


def test_times_are_those_of_the_day() -> None:
    """At whole tens of seconds of a minute, wherever the capture begins; with dates where there are several."""
    plot = rate_plot([point(second) for second in range(45)])
    assert re.findall(r">(\d\d:\d\d:\d\d)<", plot) == ["22:13:20", "22:13:30", "22:13:40", "22:13:50", "22:14:00"]
    long = rate_plot([point(0), point(3 * 86_400)])
    assert "2023-11-16 00:00" in long


def test_a_finding_is_marked_at_its_time() -> None:
    points = [point(second) for second in range(10)]
    plot = rate_plot(points, [finding(5, severity="warning")])
    assert 'class="mark warning" href="#finding-1"' in plot
    assert 'style="left:50.00%;top:0.0em"' in plot
    assert 'class="since warning" d="M500.0 0V1000"' in plot


def test_marks_at_one_time_stand_below_each_other_and_are_few() -> None:
    plot = rate_plot([point(second) for second in range(10)], [finding(5) for _ in range(100)])
    tops = re.findall(r"left:50.00%;top:([\d.]+)em", plot)
    assert tops == ["0.0", "1.3", "2.6", "3.9"]
    assert plot.count('class="since') == MAX_MARKS


def test_what_is_outside_the_capture_is_marked_at_its_edge() -> None:
    plot = rate_plot([point(0)], [finding(-100, last_ns=START_NS + 900 * SECOND)])
    assert "left:0.00%" in plot
    assert not re.search(r'(?:x|width)="-', plot)


def test_an_api_is_drawn_from_its_median_to_its_99th_percentile() -> None:
    """On a scale from 1 to 100 ms: 10 ms are in the middle."""
    latency = LatencySummary(9, MS, 10 * MS, 10 * MS, 90 * MS, 95 * MS, 100 * MS, 100 * MS)
    low = LatencySummary(9, MS, MS, MS, MS, MS, MS, MS)
    rows = [StatRow(("api",), (name,), 9, 0, 0, 0, 0, one, broker=one) for name, one in (("A", latency), ("B", low))]
    plot = api_plot(rows)
    assert 'style="left:50.00%;width:50.00%"' in plot
    assert 'title="p50 10.0 ms, p99 100 ms, max 100 ms"' in plot


def test_names_from_the_wire_are_text() -> None:
    name = "<script>alert(1)</script>\"'&lt;\x1b[31m\u202e"
    latency = LatencySummary(1, MS, MS, MS, MS, MS, MS, MS)
    plots = api_plot([StatRow(("api",), (name,), 1, 0, 0, 0, 0, latency, broker=latency)])
    plots += rate_plot([point(0)], [finding(0, name, severity="error")])
    assert not UNSAFE.search(plots)
    assert "<script" not in plots
