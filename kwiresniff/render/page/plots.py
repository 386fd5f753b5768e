"""The plots of a report, as SVG and HTML inside the page.

What is drawn is SVG that stretches with the page; what is read (axes, legends, marks) is HTML beside it at places in
percent, so that it stays readable on a small screen. Times are those of the text: the time of day in UTC. Each slice
tells its values when the pointer rests on it. Colours are names of the page's style sheet, which has light, dark and
print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape as quoted
from math import ceil, floor, log2, log10
from typing import Final, NamedTuple

from kwiresniff.base.time_units import DAY_NS
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.results.findings import Finding
from kwiresniff.results.report import SeriesPoint
from kwiresniff.results.stats import StatRow

#: Units of a drawing, both ways.
_SIDE: Final = 1_000
#: APIs compared in one plot, and findings marked.
_APIS: Final = 12
MAX_MARKS: Final = 30
#: Marks that are closer than this share of the width stand below each other.
_MARK_ROOM: Final = 0.035
_MARK_ROWS: Final = 4
#: Steps of a vertical axis.
_MOST_STEPS: Final = 5
#: Labels of the time axis.
_TIMES: Final = 6
#: Widths that labels of the time axis are apart, in nanoseconds.
_STEPS: Final = tuple(
    milliseconds * 1_000_000
    for milliseconds in (
        *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000),
        *(600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000),
    )
)


class Line(NamedTuple):
    """One series of a plot: its name, the colour's name, and a value for each slice; None leaves a hole."""

    name: str
    color: str
    values: Sequence[float | None]


class Axis(NamedTuple):
    """An axis: where a value is, from 0 to 1, what it reads as, and the values that have labels."""

    place: Callable[[float], float]
    text: Callable[[float], str]
    ticks: Sequence[float]


def rate_plot(points: Sequence[SeriesPoint], findings: Sequence[Finding] = ()) -> str:
    """Exchanges a second over time, by outcome, one upon the other."""
    seconds = [point.width_ns / 1e9 for point in points]
    outcomes = (("ok", "ok", "ok"), ("error", "bad", "errors"), ("unanswered", "warn", "unanswered"))
    lines = [
        Line(name, color, [getattr(point, field) / width for point, width in zip(points, seconds, strict=True)])
        for name, color, field in outcomes
    ]
    shown = [line for line in lines if line.name == "ok" or any(line.values)]
    top = max(sum(line.values[at] or 0 for line in shown) for at in range(len(points)))
    unit = 10.0 ** floor(log10(max(top, 1e-3)))
    step = next(unit * share for share in (0.2, 0.5, 1, 2, 5) if top <= unit * share * _MOST_STEPS)
    axis = _linear(step, top, lambda value: f"{value:,.3g}/s")
    return _over_time(points, shown, axis, findings, stacked=True)


def latency_plot(points: Sequence[SeriesPoint], findings: Sequence[Finding] = ()) -> str:
    """Median, 99th percentile and maximum of the broker's own time over time, on a logarithmic scale."""
    lines = [
        Line(name, color, [getattr(point, f"{name}_ns") for point in points])
        for name, color in (("max", "dim"), ("p99", "bad"), ("p50", "ok"))
    ]
    return _over_time(points, lines, _durations([value for line in lines for value in line.values if value]), findings)


def bytes_plot(points: Sequence[SeriesPoint], findings: Sequence[Finding] = ()) -> str:
    """Bytes a second each way over time."""
    lines = [
        Line(name, color, [getattr(point, field) * 1e9 / point.width_ns for point in points])
        for name, color, field in (("to broker", "ok", "request_bytes"), ("to client", "second", "response_bytes"))
    ]
    top = max((value for line in lines for value in line.values if value), default=0)
    step = 2.0 ** ceil(log2(max(top, 1) / _MOST_STEPS))  # sizes are counted in powers of two
    axis = _linear(step, max(top, 1), lambda value: f"{format_units.size(round(value))}/s")
    return _over_time(points, lines, axis, findings)


def api_plot(rows: Sequence[StatRow]) -> str:
    """From the median to the 99th percentile of each API, the maximum as a dot."""
    shown = [row for row in rows if row.broker is not None][:_APIS]
    values = [ns for row in shown if row.broker for ns in (row.broker.p50_ns, row.broker.max_ns)]
    axis = _durations(values)
    parts = ['<div class="bars">']
    for row in shown:
        latency = row.broker
        assert latency is not None
        low, high, top = (100 * axis.place(ns) for ns in (latency.p50_ns, latency.p99_ns, latency.max_ns))
        told = f"{_said('p50', latency.p50_ns)}, {_said('p99', latency.p99_ns)}, {_said('max', latency.max_ns)}"
        parts.append(
            f'<div class="name">{quoted(escape(row.key[0]))}</div><div class="track" title="{quoted(told)}">'
            f'<i class="ok" style="left:{low:.2f}%;width:{max(high - low, 0.3):.2f}%"></i>'
            f'<b class="bad" style="left:{top:.2f}%"></b></div>'
        )
    ticks = "".join(f'<span style="left:{100 * axis.place(ns):.2f}%">{axis.text(ns)}</span>' for ns in axis.ticks)
    parts.append(f'<div class="name"></div><div class="x">{ticks}</div></div>')
    return "".join(parts)


def _said(name: str, ns: int) -> str:
    return f"{name} {format_units.duration(ns)}"


def _over_time(
    points: Sequence[SeriesPoint],
    lines: Sequence[Line],
    axis: Axis,
    findings: Sequence[Finding],
    *,
    stacked: bool = False,
) -> str:
    """A plot with its axes and legend, the findings marked, and the values of each slice in its title."""
    first_ns = points[0].start_ns
    span_ns = max(points[-1].start_ns + points[-1].width_ns - first_ns, 1)
    places = [(point.start_ns - first_ns) / span_ns for point in points]
    drawn = _stacks(lines, places, axis) if stacked else _curves(lines, places, axis)
    svg = [f'<svg viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" aria-hidden="true">']
    svg += [f'<path class="grid" d="M0 {_down(axis.place(value))}H{_SIDE}"/>' for value in axis.ticks]
    svg += [*_bands(findings, first_ns, span_ns), *drawn]
    for at, point in enumerate(points):
        told = [f"{format_units.clock(point.start_ns, 3)}"]
        told += [f"{line.name} {axis.text(value)}" for line in lines if (value := line.values[at]) is not None]
        width = _SIDE * point.width_ns / span_ns
        svg.append(
            f'<rect class="slice" x="{_SIDE * places[at]:.1f}" width="{width:.1f}" y="0" height="{_SIDE}">'
            f"<title>{quoted(', '.join(told))}</title></rect>"
        )
    svg.append("</svg>")
    legend = "".join(f'<span><i class="{line.color}"></i>{line.name}</span>' for line in lines)
    y = "".join(
        f'<span style="bottom:{100 * axis.place(value):.2f}%">{axis.text(value)}</span>' for value in axis.ticks
    )
    marks, rows = _marks(findings, first_ns, span_ns)
    return (
        f'<div class="legend">{legend}<output></output></div><div class="plot"><div class="y">{y}</div>'
        f'<div class="area" style="padding-top:{rows * 1.3}em">{marks}<div class="drawn">{"".join(svg)}</div></div>'
        f'<div class="x">{_times(first_ns, span_ns)}</div></div>'
    )


def _down(place: float) -> str:
    return f"{_SIDE * (1 - min(max(place, 0.0), 1.0)):.1f}"


def _stacks(lines: Sequence[Line], places: Sequence[float], axis: Axis) -> Iterator[str]:
    """Areas in steps, one upon the other."""
    base = [0.0] * len(places)
    ends = [*places[1:], 1.0]
    for line in lines:
        tops = [below + (value or 0) for below, value in zip(base, line.values, strict=True)]
        there = [
            f"{_SIDE * left:.1f} {_down(axis.place(top))}H{_SIDE * right:.1f}"
            for left, right, top in zip(places, ends, tops, strict=True)
        ]
        back = [
            f"{_SIDE * right:.1f} {_down(axis.place(below))}H{_SIDE * left:.1f}"
            for left, right, below in zip(places, ends, base, strict=True)
        ]
        yield f'<path class="fill {line.color}" d="M{"L".join([*there, *reversed(back)])}z"/>'
        base = tops


def _curves(lines: Sequence[Line], places: Sequence[float], axis: Axis) -> Iterator[str]:
    """Lines with a dot for each value, broken where there is none."""
    middle = (places[1] - places[0]) / 2 if len(places) > 1 else 0.5
    for line in lines:
        path: list[str] = []
        dots: list[str] = []
        pen = "M"
        for place, value in zip(places, line.values, strict=True):
            if value is None:
                pen = "M"
                continue
            at = f"{_SIDE * (place + middle):.1f} {_down(axis.place(value))}"
            path.append(f"{pen}{at}")
            dots.append(f"M{at}h0")
            pen = "L"
        yield f'<path class="line {line.color}" d="{"".join(path)}"/>'
        yield f'<path class="dots {line.color}" d="{"".join(dots)}"/>'


def _marked(findings: Sequence[Finding]) -> Iterator[tuple[int, Finding]]:
    """The findings that have a time, with their numbers on the page."""
    timed = [(number, one) for number, one in enumerate(findings, 1) if one.first_ns]
    yield from timed[:MAX_MARKS]


def _bands(findings: Sequence[Finding], first_ns: int, span_ns: int) -> Iterator[str]:
    """From when to when each finding was seen."""
    for _, finding in _marked(findings):
        left = min(max((finding.first_ns - first_ns) / span_ns, 0.0), 1.0)
        right = min(max((finding.last_ns - first_ns) / span_ns, left), 1.0)
        kind = quoted(finding.severity)
        yield f'<path class="since {kind}" d="M{_SIDE * left:.1f} 0V{_SIDE}"/>'
        if right - left < 1.0 and right > left:
            x, width = _SIDE * left, _SIDE * (right - left)
            yield f'<rect class="band {kind}" x="{x:.1f}" width="{width:.1f}" y="0" height="{_SIDE}"/>'


def _marks(findings: Sequence[Finding], first_ns: int, span_ns: int) -> tuple[str, int]:
    """Numbers of findings above the time at which each was seen first, in rows; and how many rows there are."""
    ends: list[float] = []
    parts = []
    for number, finding in sorted(_marked(findings), key=lambda item: item[1].first_ns):
        left = min(max((finding.first_ns - first_ns) / span_ns, 0.0), 1.0)
        row = next((at for at, end in enumerate(ends) if left >= end), len(ends))
        if row == len(ends):
            if row == _MARK_ROWS:
                continue
            ends.append(0.0)
        ends[row] = left + _MARK_ROOM
        told = quoted(escape(f"{finding.subject}: {finding.title}"[:300]))
        kind = quoted(finding.severity)
        style = f"left:{100 * left:.2f}%;top:{row * 1.3:.1f}em"
        parts.append(f'<a class="mark {kind}" href="#finding-{number}" title="{told}" style="{style}">{number}</a>')
    return "".join(parts), len(ends)


def _times(first_ns: int, span_ns: int) -> str:
    """Times of day at round steps; with their dates where there are several days."""
    step_ns = next((step for step in _STEPS if span_ns / step <= _TIMES), _STEPS[-1] * ceil(span_ns / _STEPS[-1] / 6))
    digits = 3 if step_ns % 1_000_000_000 else 0
    at = ceil(first_ns / step_ns) * step_ns
    labels = []
    while at <= first_ns + span_ns:
        text = format_units.clock(at, digits).rstrip(".")
        if span_ns >= DAY_NS:
            text = f"{format_units.date(at)} {text[:5]}"
        labels.append(f'<span style="left:{100 * (at - first_ns) / span_ns:.2f}%">{text}</span>')
        at += step_ns
    return "".join(labels)


def _linear(step: float, top: float, text: Callable[[float], str]) -> Axis:
    """From 0 in steps to the first one that is not below the greatest value."""
    count = max(ceil(top / step), 1)
    return Axis(lambda value: value / (step * count), text, [step * at for at in range(count + 1)])


def _durations(values: Sequence[float]) -> Axis:
    """Logarithmic, from a power of ten below the least to one above the greatest."""
    known = [max(value, 1_000) for value in values] or [1e6]
    low, high = floor(log10(min(known))), ceil(log10(max(known)))
    high = max(high, low + 1)
    every = max(ceil((high - low) / 5), 1)
    ticks = [10.0**power for power in range(low, high + 1, every)]

    def text(ns: float) -> str:
        return format_units.duration(round(ns))

    return Axis(lambda ns: (log10(max(ns, 1)) - low) / (high - low), text, ticks)
