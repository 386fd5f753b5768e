"""Metrics over HTTP, as Prometheus collects them.

prometheus_client is imported here and nowhere else; it comes with the ``metrics`` extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import accumulate
from typing import Any

from kwiresniff.errors import ExportError
from kwiresniff.export.escaping import escape_text
from kwiresniff.results.metrics import Metric

#: Before every name.
NAMESPACE = "kwiresniff_"


class MetricsServer:
    """Answers at ``address`` until closed, in threads of its own, with what ``collect`` gives at that moment."""

    def __init__(
        self, host: str, port: int, collect: Callable[[], Iterable[Metric]], names: Iterable[str] = ()
    ) -> None:
        """``host`` is a name or an IP address, empty for all of them; port 0 is any that is free. ``names`` are further
        names that it is asked by.

        Raises ExportError when prometheus_client is missing or the address cannot be had.
        """
        try:
            client = import_module("prometheus_client")
        except ImportError as error:
            raise ExportError(
                '--metrics needs prometheus_client, which is not installed; pip install "kwiresniff[metrics]"'
            ) from error
        registry = client.CollectorRegistry()
        client.ProcessCollector(registry=registry)
        registry.register(_Collector(collect))
        from kwiresniff.export.metrics_http import HttpServer

        try:
            self._server = HttpServer(host, port, client.make_wsgi_app(registry), names)
        except (OSError, UnicodeError) as error:
            detail = (getattr(error, "strerror", None) or str(error)).lower()
            raise ExportError(f"--metrics {_endpoint(host, port)}: {detail}; name another address or port") from None
        bound = self._server.server_address
        self.address = _endpoint(str(bound[0]), int(bound[1]))

    def close(self) -> None:
        """Ends the server."""
        self._server.close()


def _endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Collector:
    """A collector that prometheus_client calls at each scrape."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect
        self._core = import_module("prometheus_client.core")

    def describe(self) -> Iterator[Any]:
        """Nothing: it would be asked for samples before there are any."""
        return iter(())

    def collect(self) -> Iterator[Any]:
        for metric in self._collect():
            yield self._family(metric)

    def _family(self, metric: Metric) -> Any:
        core = self._core
        kinds = {
            "counter": core.CounterMetricFamily,
            "gauge": core.GaugeMetricFamily,
            "histogram": core.HistogramMetricFamily,
        }
        family = kinds[metric.kind](NAMESPACE + metric.name, metric.help, labels=metric.labels)
        seen = set()
        for values, value in metric.samples:
            labels = tuple(map(label_value, values))
            if labels in seen:  # different controls, escaped alike: a client is playing games
                continue
            seen.add(labels)
            if metric.kind == "histogram":
                counts, total = value
                bounds = [*map(str, metric.bounds), "+Inf"]
                family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
            else:
                family.add_metric(labels, value)
        return family


def label_value(text: str) -> str:
    """A label's value that acts on no terminal and can be written in UTF-8."""
    return escape_text(text).encode("utf-8", "backslashreplace").decode()
