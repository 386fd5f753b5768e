"""Exchanges, errors and latency over time, as bars of which each is a slice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.worker import get_current_worker

from kwiresniff.browse.line_view import LineView
from kwiresniff.index import ExchangeIndex
from kwiresniff.index.timeline import EMPTY, Span, TimeSlice, slices, span_of
from kwiresniff.render import format_units
from kwiresniff.render.theme import UNICODE
from kwiresniff.render.theme import Span as TextSpan

#: Columns before the bars: what their heights mean.
_LEFT: Final = 10
#: How much closer or wider one step of the zoom is.
_ZOOM: Final = 4
#: The shortest time that is shown.
_LEAST_NS: Final = 10_000


class TimelineView(LineView):
    """Shows rows of ``index`` over ``span``, with a cursor on one slice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "slice(-1)", "Earlier", show=False),
        Binding("right,l", "slice(1)", "Later", show=False),
        Binding("plus,equals_sign,z", "zoom(1)", "Zoom in", show=False),
        Binding("minus,Z", "zoom(-1)", "Zoom out", show=False),
        Binding("0", "whole", "Everything", show=False),
    ]

    class Picked(Message):
        """The exchanges of a slice are wanted."""

        def __init__(self, span: Span) -> None:
            super().__init__()
            self.span = span

    def __init__(self, index: ExchangeIndex, id: str) -> None:
        super().__init__(id)
        self._index = index
        self._rows: Sequence[int] = ()
        self.span = Span(0, 1)
        self.at = 0
        self._is_zoomed = False
        self._slices: list[TimeSlice] = []

    def show_rows(self, rows: Sequence[int], *, whole: bool = False) -> None:
        """Draws these rows, over the whole time where that is asked for and nobody has zoomed in."""
        self._rows = rows
        if (whole and not self._is_zoomed) or self.span.length_ns <= 1:
            self.span = span_of(self._index)
        self._count()

    def _count(self) -> None:
        """Counts what is in each slice, in a thread."""
        rows, span, count = self._rows, self.span, max(self.size.width - _LEFT - 1, 1)
        call = self.app.call_from_thread

        def work() -> None:
            found = slices(self._index, rows, span, count)
            if not get_current_worker().is_cancelled:
                call(take, found)

        def take(found: list[TimeSlice]) -> None:
            self._slices = found
            self.at = min(self.at, count - 1)
            self.show()

        self.run_worker(work, group="timeline", exclusive=True, thread=True)

    def on_resize(self) -> None:
        self._count()

    @property
    def line_count(self) -> int:
        return max(self.size.height, 1)

    def action_slice(self, by: int) -> None:
        self.at = max(min(self.at + by, len(self._slices) - 1), 0)
        self.refresh()

    def action_move(self, by: int) -> None:
        self.action_zoom(-by)

    def action_zoom(self, by: int) -> None:
        whole = span_of(self._index)
        part = self.span.part(self.at, max(len(self._slices), 1))
        middle = (part.start_ns + part.end_ns) // 2
        length = self.span.length_ns // _ZOOM if by > 0 else self.span.length_ns * _ZOOM
        length = max(min(length, whole.length_ns), _LEAST_NS)
        self._is_zoomed = length < whole.length_ns
        start = max(min(middle - length // 2, whole.end_ns - length), whole.start_ns)
        self.span = Span(start, start + length)
        self.at = min((middle - start) * max(len(self._slices), 1) // length, max(len(self._slices) - 1, 0))
        self._count()

    def action_whole(self) -> None:
        self._is_zoomed = False
        self.span = span_of(self._index)
        self._count()

    def action_choose(self) -> None:
        if self._slices:
            self.post_message(self.Picked(self.span.part(self.at, len(self._slices))))

    def on_click(self, event: events.Click) -> None:
        at = event.x - _LEFT
        if 0 <= at < len(self._slices):
            again = at == self.at and event.chain > 1
            self.at = at
            self.refresh()
            if again:
                self.action_choose()

    # -- drawing ------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        return self._strip(self._spans(y), self.size.width, self.rich_style)

    def _spans(self, y: int) -> list[TextSpan]:
        height = self.size.height
        here = self._slices[self.at] if self._slices else EMPTY
        if y == 0:
            part = self.span.part(self.at, max(len(self._slices), 1))
            text = f"{format_units.clock(part.start_ns, 6)} for {format_units.duration(part.length_ns)}"
            spans: list[TextSpan] = [("title", f" {text}  "), ("value", format_units.count(here.count, "exchange"))]
            if here.errors:
                spans.append(("bad", f"  {format_units.count(here.errors, 'error')}"))
            if here.unanswered:
                spans.append(("warn", f"  {here.unanswered} unanswered"))
            for name, ns in (("p50", here.p50_ns), ("p99", here.p99_ns), ("max", here.max_ns)):
                if ns is not None:
                    spans += [("name", f"  {name} "), ("value", format_units.duration(ns))]
            return spans
        if y == height - 1:
            return [("", " " * _LEFT), *self._axis()]
        if y == height - 2:
            return [
                ("", " " * _LEFT),
                *[("lit", "▲") if at == self.at else ("", " ") for at in range(len(self._slices))],
            ]
        room = height - 3
        rate, errors = max(room * 2 // 5, 1), max(room // 5, 1)
        if y <= rate:
            return self._bars("exchanges", [one.count for one in self._slices], rate - y, rate, "key", str)
        if y <= rate + errors:
            wrong = [one.errors + one.unanswered for one in self._slices]
            return self._bars("errors", wrong, rate + errors - y, errors, "bad", str)
        latency = room - rate - errors
        return self._latency(height - 3 - y, latency)

    def _bars(self, name: str, values: list[int], level: int, height: int, kind: str, say: type) -> list[TextSpan]:
        """One line of bars, ``level`` lines above their feet."""
        most = max(values, default=0)
        label = say(most) if level == height - 1 else name if level == 0 else ""
        if level == height - 1 and level == 0:
            label = f"{name} {most}"
        spans: list[TextSpan] = [("name", f"{label[: _LEFT - 1]:>{_LEFT - 1}} ")]
        glyphs = UNICODE.bars
        text = ""
        for value in values:
            eighths = -(-value * height * 8 // most) - level * 8 if most else 0
            text += glyphs[max(min(eighths, 8), 0)]
        return [*spans, *self._marked(text, kind)]

    def _latency(self, level: int, height: int) -> list[TextSpan]:
        """One line of the latencies: a bar up to the median, a dot at the 99th percentile; heights are logarithms."""
        known = [ns for one in self._slices for ns in (one.p50_ns, one.p99_ns) if ns]
        if not known:
            return [("name", f"{'latency' if level == 0 else '':>{_LEFT - 1}} ")]
        low, high = math.log(max(min(known), 1)), math.log(max(known) + 1)
        scale = (height - 1) / (high - low) if high > low else 0.0
        ns = math.exp(low + level / scale) if scale else math.exp(low)
        label = format_units.duration(round(ns)) if level in (0, height - 1) or level % 3 == 0 else ""
        text = ""
        for one in self._slices:
            median = round((math.log(max(one.p50_ns, 1)) - low) * scale) if one.p50_ns else -1
            tail = round((math.log(max(one.p99_ns, 1)) - low) * scale) if one.p99_ns else -1
            text += "●" if level == tail else "█" if level <= median else "│" if median < level < tail else " "
        return [("name", f"{label:>{_LEFT - 1}} "), *self._marked(text, "good")]

    def _marked(self, text: str, kind: str) -> list[TextSpan]:
        return [(kind, text[: self.at]), ("ident", text[self.at : self.at + 1]), (kind, text[self.at + 1 :])]

    def _axis(self) -> list[TextSpan]:
        width = max(len(self._slices), 1)
        digits = 3 if self.span.length_ns >= 1_000_000_000 else 6
        first, last = format_units.clock(self.span.start_ns, digits), format_units.clock(self.span.end_ns, digits)
        middle = format_units.duration(self.span.length_ns)
        gap = width - len(first) - len(last)
        return [("dim", first), ("dim", f"{middle:^{gap}}" if gap > len(middle) else " " * gap), ("dim", last)]
