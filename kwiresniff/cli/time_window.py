"""The part of a capture that --since and --until leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from kwiresniff.cli.options import ReadOptions
from kwiresniff.model import Exchange, Segment


class TimeWindow:
    """``--since`` and ``--until``, which may count from the capture's first packet."""

    def __init__(self, options: ReadOptions) -> None:
        self.bounded = options.since is not None or options.until is not None
        self._since, self._until = options.since, options.until
        self._since_ns: int | None = None
        self._until_ns: int | None = None

    def begun(self, segments: Iterator[Segment]) -> Iterable[Segment]:
        """All of ``segments``, the first of which says when the capture began."""
        first = next(segments, None)
        if first is None:
            return ()
        self._since_ns = self._since.since_epoch(first[1]) if self._since else None
        self._until_ns = self._until.since_epoch(first[1]) if self._until else None
        return chain((first,), segments)

    def holds(self, exchange: Exchange) -> bool:
        """Whether it began within the window."""
        since_ns, until_ns = self._since_ns, self._until_ns
        if since_ns is None and until_ns is None:
            return True
        message = exchange.request or exchange.response
        time_ns = message.first_ns if message is not None else 0
        return (since_ns is None or time_ns >= since_ns) and (until_ns is None or time_ns < until_ns)
