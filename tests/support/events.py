"""The events of an analyzer without a sink, in the order in which they are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from kwiresniff.base.depths import Depth
from kwiresniff.base.needs import Needs
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.model import Event, Exchange, Segment, feed_of
from kwiresniff.session import Analyzer


def analyze(
    segments: Iterable[Segment],
    *,
    depth: Depth = "records",
    topics: bool = False,
    exchange_filter: Callable[[Exchange], bool | None] | None = None,
    show_secrets: bool = False,
    tls_secrets: TlsSecrets | None = None,
) -> Iterator[Event]:
    """Yields the events of segments; at their end everything is closed."""
    needs = Needs(depth, topics=topics)
    analyzer = Analyzer(needs, exchange_filter=exchange_filter, show_secrets=show_secrets, tls_secrets=tls_secrets)
    return analyze_with(analyzer, segments)


def analyze_with(analyzer: Analyzer, segments: Iterable[Segment]) -> Iterator[Event]:
    """Yields the events of segments; at their end everything is closed."""
    return _taken(analyzer, chain(analyzer.read(feed_of(segments)), analyzer.end()))


def process(analyzer: Analyzer, segments: Iterable[Segment]) -> Iterator[Event]:
    """Yields the events of segments; what is open at their end stays so."""
    return _taken(analyzer, analyzer.read(feed_of(segments)))


def finish(analyzer: Analyzer) -> Iterator[Event]:
    """Ends everything that is open, and yields what that gives."""
    return _taken(analyzer, analyzer.end())


def expire(analyzer: Analyzer, idle_ns: int) -> Iterator[Event]:
    """Ends the connections that were silent for ``idle_ns`` at the last segment, and yields what that gives."""
    return _taken(analyzer, analyzer.end_idle(idle_ns))


def _taken(analyzer: Analyzer, steps: Iterator[None]) -> Iterator[Event]:
    for _ in steps:
        yield from analyzer.events()
