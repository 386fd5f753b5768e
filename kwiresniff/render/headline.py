"""The first line of a tree: API, connection, latency and outcome of an exchange."""

from __future__ import annotations

from typing import Any

from kwiresniff.model import Exchange
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.paint import Paint
from kwiresniff.render.style import Style
from kwiresniff.render.theme import OUTCOME_STYLE, OUTCOME_WORDS, Glyphs
from kwiresniff.render.values import text_value

#: Where the wire does not tell when the broker's timer struck, its own time is an estimate (docs/latency.md).
_DOUBTS = {"long poll": "about ", "throttled": "about "}


def headline(exchange: Exchange, paint: Paint, style: Style) -> list[Chunk]:
    """API and version, latency, outcome, connection, client id and correlation id."""
    outcome = exchange.outcome
    kind = OUTCOME_STYLE[outcome]
    glyphs = paint.glyphs
    chunks: list[Chunk] = [title_chunk(exchange, glyphs)]
    if exchange.latency_ns is not None:
        latency_kind = "wait" if exchange.waiting else kind if outcome == "error" else "ident"
        chunks.append([(latency_kind, format_units.duration(exchange.latency_ns, micro=glyphs.micro))])
    if exchange.waiting:
        chunks[-1].append(("wait", f" {escape(exchange.waiting)}"))
    if exchange.queued_ns or exchange.held_ns or exchange.path:
        chunks.append(parts_chunk(exchange, glyphs.micro))
    chunks.append([(kind, OUTCOME_WORDS[outcome] or "ok"), *_error_names(exchange, glyphs.times)])
    return [*chunks, *peers_chunks(exchange, glyphs, style), correlation_chunk(exchange.correlation_id)]


def title_chunk(exchange: Exchange, glyphs: Glyphs) -> Chunk:
    """A mark for the outcome, and the API with its version."""
    outcome = exchange.outcome
    version = "" if exchange.api_version < 0 else f" v{exchange.api_version}"
    title = f"{escape(exchange.api) or 'unknown API'}{version}"
    return [(OUTCOME_STYLE[outcome], glyphs.marks[outcome]), ("", " "), ("api", title)]


def peers_chunks(exchange: Exchange, glyphs: Glyphs, style: Style) -> list[Chunk]:
    """The ends of the connection and the client id."""
    connection = exchange.connection
    chunks: list[Chunk] = [
        [("value", path_text(connection.client, connection.broker, connection.proxied, glyphs.arrow))]
    ]
    if connection.proxied is not None:
        chunks[0].append(("name", f" by {connection.proxied['by']}"))
    if exchange.client_id:
        chunks.append([("name", "client_id "), ("client", text_value(exchange.client_id, style))])
    return chunks


def path_text(client: str, broker: str, proxied: dict[str, Any] | None, arrow: str) -> str:
    """``client → broker``; before and behind them the real ones that a proxy's preamble names."""
    ends: list[str | None] = [client, broker]
    if proxied is not None:
        ends = [proxied["client"], *ends, proxied["broker"]]
    return f" {arrow} ".join([escape(end) for end in ends if end is not None])


def correlation_chunk(correlation_id: int) -> Chunk:
    """The number that pairs request and response."""
    return [("name", "correlation_id "), ("value", str(correlation_id))]


def parts_chunk(exchange: Exchange, micro: str) -> Chunk:
    """``queued 27.1 ms broker 336 us``: what the latency is made of; no broker's share where that is unknown."""
    chunk: Chunk = []
    for name, ns in (("path", exchange.path), ("queued", exchange.queued_ns), ("held", exchange.held_ns)):
        if ns:
            chunk += [("name", f"{name} "), ("wait", format_units.duration(ns, micro=micro)), ("name", " ")]
    if exchange.waiting in _DOUBTS and not exchange.broker_ns:
        return chunk[:-1]
    broker = broker_words(exchange.waiting)
    return [*chunk, ("name", broker), ("value", format_units.duration(exchange.broker_ns, micro=micro))]


def broker_words(waiting: str) -> str:
    """The words before the broker's own part of a latency; with some reasons of ``waiting`` it is an estimate."""
    return f"broker {_DOUBTS.get(waiting, '')}"


def _error_names(exchange: Exchange, times: str) -> Chunk:
    """`` NOT_LEADER_OR_FOLLOWER x3``: the names of the errors, each once."""
    counts: dict[str, int] = {}
    for _, _, name, _ in exchange.errors:
        counts[name] = counts.get(name, 0) + 1
    parts = [f"{escape(name)}{f' {times}{count}' if count > 1 else ''}" for name, count in counts.items()]
    return [("bad", " " + ", ".join(parts))] if parts else []
