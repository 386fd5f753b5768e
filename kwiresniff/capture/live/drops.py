"""Packets that a live capture lost, and when that is reported."""

from __future__ import annotations

import time

from kwiresniff.capture.live.source import PacketSource
from kwiresniff.model import Problem

#: How often the drops are counted.
COUNT_INTERVAL_SECONDS = 1.0
#: The shortest time between two reports of dropped packets.
REPORT_INTERVAL_SECONDS = 10.0


class Drops:
    """Counts lost packets: ``total``, and ``passed_over`` (written, but not decoded in time). New ones become a problem
    ``packets_dropped``.
    """

    def __init__(self, source: PacketSource, problems: list[Problem]) -> None:
        self.total = 0
        self.passed_over = 0
        self._source = source
        self._problems = problems
        self._reported = self._passed_over_reported = 0
        self._counted_at = self._reported_at = 0.0

    def poll(self, now: float) -> None:
        """Counts, and reports when it is time; ``now`` is in seconds of a monotonic clock."""
        if now - self._counted_at >= COUNT_INTERVAL_SECONDS:
            self._counted_at = now
            self.total = self._source.dropped() + self.passed_over
            if self.total > self._reported and now - self._reported_at >= REPORT_INTERVAL_SECONDS:
                self._reported_at = now
                self.report()

    def report(self) -> None:
        """Counts and reports now."""
        self.total = self._source.dropped() + self.passed_over
        own = self.passed_over - self._passed_over_reported
        lost = self.total - self._reported - own
        self._reported, self._passed_over_reported = self.total, self.passed_over
        said = []
        if lost > 0:
            said.append(
                f"{_packets(lost)} dropped before they could be read; a larger buffer (-B) or a narrower filter helps"
            )
        if own > 0:
            said.append(f"{_packets(own)} written but not decoded, for lack of time")
        if said:
            details = {"packets": lost + own, "only_written": own, "total": self.total}
            self._problems.append(
                Problem("packets_dropped", "; ".join(said), timestamp_ns=time.time_ns(), details=details)
            )


def _packets(count: int) -> str:
    return f"{count:,} packets were" if count != 1 else "a packet was"
