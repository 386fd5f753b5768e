"""The page around the plots: a template with automatic escaping, filled with what was found."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from importlib import resources
from importlib.util import find_spec
from typing import Any, Final

from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.errors import ExportError
from kwiresniff.model import file_index, packet_number
from kwiresniff.render import format_units
from kwiresniff.render.blocks import cluster_words
from kwiresniff.render.escape import escape
from kwiresniff.render.groups import event_text
from kwiresniff.render.page import plots
from kwiresniff.render.page.flow_plot import flow_plot
from kwiresniff.render.tables import parts_of_waits
from kwiresniff.results.clients import ApiUse
from kwiresniff.results.findings import Finding
from kwiresniff.results.report import Report
from kwiresniff.results.topics import TopicClient, TopicGroup

#: Characters of a name on the page, and of a list or an event; JSON has all.
MAX_NAME_CHARS: Final = 1_000
MAX_LIST_CHARS: Final = 20_000
_MARK_CHARS: Final = 50
#: Producers and consumers of a topic that are named.
_PEOPLE: Final = 12

_INSTALL: Final = 'a page needs jinja2: pip install "kwiresniff[report]"'


def check() -> None:
    """Raises ExportError when the library that a page is made with is not installed."""
    if find_spec("jinja2") is None:
        raise ExportError(_INSTALL)


def page(report: Report) -> str:
    """The report as HTML."""
    filters: dict[str, Callable[..., Any]] = {
        "cluster": lambda cluster: _plain(cluster_words(cluster)),
        "size": format_units.size,
        "clock": lambda ns: format_units.clock(ns, 3),
        "apis": _apis,
        "event": lambda event: shortened(event_text(event), MAX_LIST_CHARS),
        "said": _scope_texts,
        "parts": parts_of_waits,
        "people": _people,
        "committed": _committed,
        "picture": flow_plot,
        "errors": lambda errors: _plain(", ".join(f"{name} {count:,}" for name, count in errors), MAX_LIST_CHARS),
    }
    place = partial(_place, files=report.files)
    return filled("report.html", filters, report=report, plots=_drawn(report), place=place)


def filled(template: str, filters: dict[str, Callable[..., Any]], **values: object) -> str:
    """A page made of a template, with the script and the policy that lets nothing else run."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(_resource)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=loader
    )
    environment.filters |= {
        "plain": _plain,
        "listed": lambda texts: _plain(", ".join(texts), MAX_LIST_CHARS),
        "duration": format_units.duration,
        "instant": lambda ns: format_units.instant(ns, 3),
        "number": lambda value: f"{value:,}",
        **filters,
    }
    script = _resource("page.js")
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(values, script=script, allowed=allowed)


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _drawn(report: Report) -> list[tuple[str, str]]:
    """Every plot with its caption, as far as there is something to draw."""
    drawn: list[tuple[str, str]] = []
    if report.series:
        drawn += [
            ("Exchanges", plots.rate_plot(report.series, report.findings)),
            (
                "Broker's own time, without queue and deliberate waits",
                plots.latency_plot(report.series, report.findings),
            ),
            ("Traffic", plots.bytes_plot(report.series, report.findings)),
        ]
    by_api = dict(report.stats).get("api", ())
    if any(row.broker is not None for row in by_api):
        caption = "Broker's own time by API: median to 99th percentile, the dot is the maximum"
        drawn.append((caption, plots.api_plot(by_api)))
    return drawn


def _apis(uses: Sequence[ApiUse]) -> str:
    found: dict[str, list[str]] = {}
    for use in uses:
        found.setdefault(use.api, []).append(f"v{use.version}")
    text = ", ".join(f"{escape(api)} {' '.join(versions)}" for api, versions in found.items())
    return shortened(text, MAX_LIST_CHARS)


def _people(clients: Sequence[TopicClient]) -> str:
    """The busiest producers or consumers, each once, with its lag; replicas are not named."""
    people = [client for client in clients if client.role != "replica"]
    texts = [
        f"{client.client_id or NO_CLIENT_ID} {client.address}" + (f" (lag {client.lag:,})" if client.lag else "")
        for client in people[:_PEOPLE]
    ]
    more = [f"and {len(people) - _PEOPLE:,} more"] if len(people) > _PEOPLE else []
    return _plain(", ".join([*texts, *more]), MAX_LIST_CHARS)


def _committed(groups: Sequence[TopicGroup]) -> str:
    texts = [f"{one.group or '(no group id)'}" + (f" (lag {one.lag:,})" if one.lag else "") for one in groups]
    return _plain(", ".join(texts), MAX_LIST_CHARS)


def _place(packet: int, files: Sequence[str]) -> str:
    number = f"packet {packet_number(packet)}"
    return f"{number} of {escape(files[file_index(packet)])}" if len(files) > 1 else number


def _scope_texts(finding: Finding) -> str:
    """The texts among a finding's ``numbers``: names of what it concerns."""
    lists = [value for value in finding.numbers.values() if isinstance(value, list)]
    texts = [_plain(one) for found in lists for one in found if isinstance(one, str)]
    return shortened(", ".join(texts), MAX_LIST_CHARS)


def _plain(value: object, most: int = MAX_NAME_CHARS) -> str:
    """A text from the wire on the page."""
    return shortened(escape(shortened(str(value), most)), most + _MARK_CHARS)


def shortened(text: str, most: int) -> str:
    """A text of ``most`` characters, and how many more there are."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most:,} more characters)"
