"""The plots of a report, as SVG to stand inside a page. Drawn by matplotlib, without a screen."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.results.report import SeriesPoint
from kwiresniff.results.stats import StatRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: Inches; the page scales them to its width.
_SIZE: Final = (10.0, 2.4)
_COLORS: Final = {"ok": "#2c7fb8", "error": "#d7301f", "warn": "#fe9929", "second": "#7fcdbb", "dim": "#888888"}
#: APIs compared in one plot.
_APIS: Final = 12
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kwiresniff",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a name from the wire is never a formula
}


def rate_plot(points: Sequence[SeriesPoint]) -> str:
    """Exchanges a second over time, by outcome."""
    figure, axes, times = _over_time(points)
    seconds = [point.width_ns / 1e9 for point in points]
    stacks = {
        "ok": [point.ok / width for point, width in zip(points, seconds, strict=True)],
        "error": [point.errors / width for point, width in zip(points, seconds, strict=True)],
        "unanswered": [point.unanswered / width for point, width in zip(points, seconds, strict=True)],
    }
    stacks = {name: values for name, values in stacks.items() if name == "ok" or any(values)}
    colors = [_COLORS["warn" if name == "unanswered" else name] for name in stacks]
    axes.stackplot(times, *stacks.values(), labels=list(stacks), colors=colors, step="post", linewidth=0)
    axes.set_ylabel("exchanges / s")
    axes.set_ylim(bottom=0)
    return _svg(figure, axes)


def latency_plot(points: Sequence[SeriesPoint]) -> str:
    """Median, 99th percentile and maximum of the broker's own time over time, on a logarithmic scale."""
    figure, axes, times = _over_time(points)
    for name, color in (("max", "dim"), ("p99", "error"), ("p50", "ok")):
        values = [getattr(point, f"{name}_ns") for point in points]
        shown = [value / 1e6 if value else float("nan") for value in values]
        axes.plot(times, shown, ".-", label=name, color=_COLORS[color], linewidth=1, markersize=3)
    if any(point.max_ns for point in points):
        axes.set_yscale("log")
        _durations(axes.yaxis)
    axes.set_ylabel("broker time")
    return _svg(figure, axes)


def bytes_plot(points: Sequence[SeriesPoint]) -> str:
    """Bytes a second each way over time."""
    figure, axes, times = _over_time(points)
    for name, field, color in (("to broker", "request_bytes", "ok"), ("to client", "response_bytes", "second")):
        values = [getattr(point, field) / (point.width_ns / 1e9) / 1e6 for point in points]
        axes.step(times, values, where="post", label=name, color=_COLORS[color], linewidth=1.2)
    axes.set_ylabel("MB / s")
    axes.set_ylim(bottom=0)
    return _svg(figure, axes)


def api_plot(rows: Sequence[StatRow]) -> str:
    """From the median to the 99th percentile of each API, the maximum as a dot."""
    shown = [row for row in rows if row.broker is not None][:_APIS]
    figure, axes = _figure(0.5 + 0.28 * max(len(shown), 1))
    for at, row in enumerate(reversed(shown)):
        latency = row.broker
        assert latency is not None
        low, high, top = (max(ns, 1_000) / 1e6 for ns in (latency.p50_ns, latency.p99_ns, latency.max_ns))
        axes.plot([low, high], [at, at], color=_COLORS["ok"], linewidth=6, solid_capstyle="butt")
        axes.plot([low], [at], "|", color="black", markersize=9)
        axes.plot([top], [at], ".", color=_COLORS["error"], markersize=5)
    axes.set_yticks(range(len(shown)), [escape(row.key[0]) for row in reversed(shown)])
    axes.set_xscale("log")
    _durations(axes.xaxis)
    axes.set_xlabel(f"broker time: median to 99th percentile, dot: maximum (of {len(shown)} APIs)")
    return _svg(figure, axes, legend=False)


def _over_time(points: Sequence[SeriesPoint]) -> tuple[Figure, Axes, list[float]]:
    figure, axes = _figure(_SIZE[1])
    start_ns = points[0].start_ns
    axes.set_xlabel(f"seconds after {format_units.instant(start_ns, 3)}")
    times = [(point.start_ns - start_ns) / 1e9 for point in points]
    axes.set_xlim(0, times[-1] + points[-1].width_ns / 1e9)
    return figure, axes, times


def _durations(axis: Axis) -> None:
    """A logarithmic axis of milliseconds, labelled with durations at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_units.duration(round(value * 1e6))))


def _figure(height: float) -> tuple[Figure, Axes]:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(_SIZE[0], height), layout="constrained")
        return figure, figure.subplots()


def _svg(figure: Figure, axes: Axes, *, legend: bool = True) -> str:
    import matplotlib

    axes.grid(True, color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    out = io.StringIO()
    with matplotlib.rc_context(_SETTINGS):
        if legend:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
        metadata: dict[str, Any] = {"Date": None, "Creator": None, "Type": None, "Format": None}
        figure.savefig(out, format="svg", metadata=metadata, transparent=True)
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    # Its size is that of the page, its shape stays (viewBox).
    head, rest = svg.split(">", 1)
    return re.sub(r' (width|height)="[^"]*"', "", head) + ">" + rest
