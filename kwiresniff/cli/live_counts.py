"""What the live view has counted, and at what rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.panels import REFRESH_SECONDS, SAMPLES, Panel
from kwiresniff.cli.recent import LastExchanges
from kwiresniff.model import Exchange

#: Refreshes whose rates are drawn beside each other.
TREND = 240


class Rates(NamedTuple):
    """Each over the last refreshes, a second."""

    packets: float
    bytes: float
    exchanges: float


class LiveCounts:
    """Exchanges since the view was reset: in tables, by outcome, and the last of them."""

    def __init__(self, live: LiveCapture, source: EventSource, by: Sequence[Sequence[str]]) -> None:
        self.panels = [Panel(names, source) for names in by]
        self.exchanges = 0
        self.errors = 0
        self.unanswered = 0
        self.last = LastExchanges()
        self.trend: deque[float] = deque(maxlen=TREND)
        self._live = live
        self._samples: deque[tuple[float, int, int, int]] = deque(maxlen=SAMPLES + 1)

    def add(self, exchange: Exchange) -> None:
        """Counts one."""
        self.exchanges += 1
        if not exchange.is_negotiation:
            self.errors += exchange.outcome == "error"
            self.unanswered += exchange.outcome == "unanswered"
        self.last.add(exchange)
        for panel in self.panels:
            panel.table.add(exchange)

    def rates(self, now: float) -> Rates:
        """The rates at ``now`` (seconds of a monotonic clock); a sample is added to the trend when one is due."""
        live, samples = self._live, self._samples
        if not samples or now - samples[-1][0] >= REFRESH_SECONDS:
            if samples:
                then, _, _, counted = samples[-1]
                self.trend.append((self.exchanges - counted) / (now - then))
            samples.append((now, live.packets, live.position(), self.exchanges))
        since, packets, size, exchanges = samples[0]
        seconds = max(now - since, REFRESH_SECONDS)
        return Rates(
            (live.packets - packets) / seconds,
            (live.position() - size) / seconds,
            (self.exchanges - exchanges) / seconds,
        )
