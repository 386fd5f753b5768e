"""The events of ``follow``, one line each: time, time since the line before, connection, direction, what it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

from kwiresniff.render import format_units
from kwiresniff.render.blocks import BlockWriter
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk, pad, pad_left
from kwiresniff.render.theme import OUTCOME_STYLE, OUTCOME_WORDS, Span
from kwiresniff.results.follow import FollowEvent

#: The style and the words of TCP's events.
_TCP: Final = {
    "syn": ("dim", "SYN"),
    "syn_ack": ("dim", "SYN, ACK"),
    "syn_retransmission": ("warn", "SYN again"),
    "retransmission": ("warn", "retransmission"),
    "out_of_order": ("warn", "out of order"),
    "gap": ("bad", "previous bytes not captured"),
    "zero_window": ("warn", "zero window: no room for more"),
    "window_update": ("dim", "window open again"),
    "fin": ("wait", "FIN: sends no more"),
    "rst": ("bad", "RST: connection reset"),
}
_DELTA: Final = 9
_CONNECTION: Final = 4


class FollowWriter(BlockWriter):
    """Writes events."""

    def __init__(self, out: TextIO, width: int | None, color: bool, files: Sequence[str] = ()) -> None:
        super().__init__(out, width, color, files)
        self._arrows = ("→", "←") if self._paint.glyphs.arrow == "→" else ("->", "<-")

    def write(self, events: Iterable[FollowEvent]) -> None:
        """Events in the order of their times; a connection is introduced where it comes first."""
        before_ns: int | None = None
        known: set[int] = set()
        day = ""
        for event in events:
            if format_units.date(event.timestamp_ns) != day:
                day = format_units.date(event.timestamp_ns)
                self._line([[("heading", f"{day}Z")]])
            if event.connection not in known:
                known.add(event.connection)
                ends = f"{event.client} {self._arrows[0]} {event.broker}"
                self._line([[("dim", f"#{event.connection} is {ends}")]])
            delta = "" if before_ns is None else f"+{self._duration(event.timestamp_ns - before_ns)}"
            before_ns = event.timestamp_ns
            front: list[Span] = [
                ("dim", f"{format_units.clock(event.timestamp_ns)} {pad_left(delta, _DELTA + 1)}  "),
                ("dim", pad(f"#{event.connection}", _CONNECTION)),
                ("ident", f" {self._arrows[0 if event.from_client else 1]} "),
            ]
            self._line([*self._what(event), [("dim", self._packet_of(event.packet))]], front)

    def _what(self, event: FollowEvent) -> list[Chunk]:
        details = event.details
        if event.event not in ("request", "response"):
            kind, text = _TCP[event.event]
            chunks: list[Chunk] = [[(kind, text)]]
            if "size_bytes" in details:
                chunks.append([("value", format_units.size(details["size_bytes"]))])
            if "missing_bytes" in details:
                chunks.append([("value", format_units.size(details["missing_bytes"]))])
            if "after_ns" in details:
                chunks.append([("dim", f"after {self._duration(details['after_ns'])}")])
            return chunks
        return self._message(event, details)

    def _message(self, event: FollowEvent, details: dict[str, Any]) -> list[Chunk]:
        version = f" v{details['api_version']}" if details["api_version"] >= 0 else ""
        chunks: list[Chunk] = [
            [("api", f"{escape(details['api']) or '?'}{version}")],
            [("dim", f"id {details['correlation_id']}")],
            [("value", format_units.size(details["size_bytes"]))],
        ]
        if event.event == "request":
            if details["client_id"]:
                chunks.append([("client", escape(details["client_id"]))])
            if details["outcome"] in ("unanswered", "no_response_expected"):
                chunks.append([(OUTCOME_STYLE[details["outcome"]], OUTCOME_WORDS[details["outcome"]])])
        else:
            if details["latency_ns"] is not None:
                kind = "wait" if details["waiting"] else "value"
                chunks.append([(kind, f"after {self._duration(details['latency_ns'])}")])
            if details["waiting"]:
                chunks.append([("wait", escape(details["waiting"]))])
            chunks += [[("bad", escape(name))] for name in details["errors"]]
            if not details["errors"] and details["outcome"] != "ok":
                chunks.append([(OUTCOME_STYLE[details["outcome"]], OUTCOME_WORDS[details["outcome"]])])
        chunks += [[("warn", escape(code))] for code in details["problems"]]
        chunks += [[("value", escape(fact))] for fact in details["facts"]]
        return chunks

    def _duration(self, ns: int) -> str:
        return format_units.duration(ns, micro=self._paint.glyphs.micro)
