"""``sniff --metrics``: what is seen, for Prometheus to collect."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from kwiresniff import __version__
from kwiresniff.analysis.metrics import Metrics
from kwiresniff.analysis.topic_metrics import TopicMetrics
from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.click_commands import ParamType
from kwiresniff.cli.event_source import EventSource
from kwiresniff.export.prometheus import MetricsServer
from kwiresniff.model import Event
from kwiresniff.results.metrics import Metric


class AddressType(ParamType):
    """``127.0.0.1:9308``, ``[::1]:9308``, ``name:9308``; ``:9308`` is all addresses. Host and port."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        host, colon, port = value.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            self.fail(f"{value!r}: an IPv6 address goes in brackets, like [::1]:9308", param, ctx)
        if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
            self.fail(f"{value!r} is not an address and a port like 127.0.0.1:9308", param, ctx)
        return host, int(port)


@contextmanager
def served_metrics(
    live: LiveCapture,
    source: EventSource,
    address: tuple[str, int],
    series: int,
    *,
    topics: bool = False,
    names: Sequence[str] = (),
) -> Iterator[None]:
    """Serves metrics of ``source`` at ``address``, also asked for by ``names``, and says where. Raises ExportError."""
    metrics = Metrics(series, source.topic_name)
    by_topic = TopicMetrics(series, source.topic_name, source.clusters) if topics else None

    def on_event(event: Event) -> None:
        metrics.add(event)
        if by_topic is not None:
            by_topic.add(event)

    def collect() -> Iterator[Metric]:
        yield from metrics.collect()
        if by_topic is not None:
            yield from by_topic.collect()
        yield _plain("packets", "counter", "Packets captured.", live.packets)
        yield _plain("captured_bytes", "counter", "Bytes captured.", live.position())
        dropped = [(("kernel",), live.dropped - live.passed_over), (("sniffer",), live.passed_over)]
        yield Metric("packets_dropped", "Packets lost before they could be read.", "counter", ("by",), dropped)
        yield _plain("connections_started", "counter", "Connections recognised.", source.analyzer.connections)
        yield Metric("build_info", "The version that runs.", "gauge", ("version",), [((__version__,), 1)])

    server = MetricsServer(*address, collect, names)
    source.on_event = on_event if topics else metrics.add
    if not source.options.quiet:
        print(f"kwiresniff: metrics at http://{server.address}/metrics", file=sys.stderr)
    try:
        yield
    finally:
        server.close()


def _plain(name: str, kind: Any, help: str, value: int) -> Metric:
    return Metric(name, help, kind, (), [((), value)])
