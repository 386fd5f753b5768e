"""The timeline of each group: one line an event, under the group's name."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Final

from kwiresniff.render import format_units
from kwiresniff.render.blocks import BlockWriter, cluster_name
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk, pad
from kwiresniff.results.groups import GroupEvent

#: Partitions of one commit that are shown; JSON has more.
OFFSETS_SHOWN: Final = 6
#: Characters of a member id: its first name and a piece of the UUID that Kafka's clients append.
_MEMBER: Final = 18
_KINDS: Final = {
    "join": "good",
    "assigned": "key",
    "epoch": "value",
    "leave": "wait",
    "commit": "dim",
    "rejoin": "dim",
    "error": "bad",
}
_EVENT: Final = 8


class GroupWriter(BlockWriter):
    """Writes group events."""

    def write(self, events: Iterable[GroupEvent]) -> None:
        """Events in the order of their groups."""
        group: tuple[str | None, str] | None = None
        for event in events:
            if (event.cluster, event.group) != group:
                if group is not None:
                    self._out.write("\n")
                group = event.cluster, event.group
                self.heading(event)
            self.event(event)

    def heading(self, event: GroupEvent) -> None:
        """The line above the events of a group, of which this is the first."""
        start = format_units.instant(event.timestamp_ns, 3)
        where: list[Chunk] = [[("dim", cluster_name(event.cluster))]] if event.cluster else []
        self._line([[("heading", escape(event.group) or '""')], *where, [("dim", f"from {start}")]])

    def event(self, event: GroupEvent) -> None:
        """One event."""
        clock = format_units.clock(event.timestamp_ns, 3)
        lead = [("dim", f"  {clock}  "), (_KINDS[event.event], pad(event.event, _EVENT)), ("", "  ")]
        self._line([self._who(event), *self.details(event)], lead)

    def _who(self, event: GroupEvent) -> Chunk:
        member = event.instance_id or event.member_id
        short = member if len(member) <= _MEMBER else member[: _MEMBER - 1] + self._paint.glyphs.ellipsis
        name = event.client_id or event.client
        who: Chunk = [("client", escape(name))]
        if short and short != name:
            who.append(("dim", f" {escape(short)}"))
        return who

    def details(self, event: GroupEvent) -> list[Chunk]:
        """The details of an event beside time, kind and member."""
        details, chunks = event.details, []
        if event.generation is not None and event.event != "leave":
            word = "generation" if event.protocol == "classic" else "member epoch"
            chunks.append([("name", f"{word} "), ("ident", str(event.generation))])
        if event.event == "rejoin":
            chunks.append([("name", f"{escape(details['api'])} "), ("value", escape(details["error"]))])
        elif event.event == "error":
            chunks.append([("name", f"{escape(details['api'])} "), ("bad", escape(details["error"] or "unanswered"))])
            if details["error"] and details.get("message"):
                chunks.append([("bad", escape(str(details["message"])))])
        elif event.event == "commit":
            chunks += self._offsets(event, details)
        elif event.event == "epoch":
            chunks.append([("dim", f"from {details['from']}")])
        else:
            chunks += self._membership(event, details)
        chunks.append([("dim", self._packet_of(event.packet))])
        return chunks

    def _membership(self, event: GroupEvent, details: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        if event.event == "join":
            if details.get("leader"):
                chunks.append([("ident", f"leads {format_units.count(details['members'], 'member')}")])
            for name in ("protocol", "assignor"):
                if details.get(name):
                    chunks.append([("name", f"{name} "), ("value", escape(str(details[name])))])
            if details["topics"]:
                chunks.append([("name", "topics "), ("value", escape(", ".join(details["topics"])))])
        if event.event == "assigned" and "assignment" in details:
            given = details["assignment"] or {}
            chunks.append([("good", escape(connect_text(given.get("assignment")))) if given else ("dim", "unknown")])
            if given.get("revoked"):
                chunks.append([("wait", f"- {escape(connect_text(given['revoked']))}")])
        elif event.event == "assigned":
            if not details.get("partitions"):
                chunks.append([("dim", "nothing")])
            for mark, kind, name in (("+", "good", "added"), ("-", "wait", "removed")):
                if details.get(name):
                    chunks.append([(kind, f"{mark} {escape(partitions_text(details[name]))}")])
            if details.get("partitions") and details.get("partitions") != details.get("added"):
                chunks.append([("name", "has "), ("value", escape(partitions_text(details["partitions"])))])
        if event.event == "leave":
            if details.get("static"):
                chunks.append([("dim", "for a while (static member)")])
            if details.get("partitions"):
                chunks.append([("name", "had "), ("value", escape(partitions_text(details["partitions"])))])
        if details.get("reason"):
            chunks.append([("meaning", escape(f'"{details["reason"]}"'))])
        if details.get("wait_ns") is not None:
            took = format_units.duration(details["wait_ns"], micro=self._paint.glyphs.micro)
            chunks.append([("name", "after "), ("value", took)])
        return chunks

    def _offsets(self, event: GroupEvent, details: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        if details["count"] > 1:
            span_ns = details["last_timestamp_ns"] - event.timestamp_ns
            took = format_units.duration(span_ns, micro=self._paint.glyphs.micro)
            chunks.append([("value", f"{details['count']:,} times in {took}")])
        if details["transactional_id"]:
            chunks.append([("name", "transaction "), ("value", escape(details["transactional_id"]))])
        for name, (first, last) in list(details["offsets"].items())[:OFFSETS_SHOWN]:
            text = str(last) if first == last else f"{first}{self._paint.glyphs.arrow}{last}"
            chunks.append([("value", f"{escape(name)} "), ("ident", text)])
        if (more := len(details["offsets"]) - OFFSETS_SHOWN) > 0:
            chunks.append([("dim", f"and {format_units.count(more, 'partition')} more")])
        for name, count in details["errors"].items():
            chunks.append([("bad", f"{escape(name)} {self._paint.glyphs.times}{count}")])
        return chunks


def event_text(event: GroupEvent) -> str:
    """The details of an event in one line of text."""
    writer = GroupWriter(io.StringIO(), None, False)
    return "  ".join("".join(text for _, text in chunk) for chunk in writer.details(event))


def connect_text(assigned: Any) -> str:
    """``source sink-0 sink-1``: connectors and tasks of a Connect worker, as Kafka names them; ``nothing`` without."""
    given = [one for one in assigned if isinstance(one, dict)] if isinstance(assigned, list) else []
    named = [(str(one.get("connector")), task) for one in given for task in one.get("tasks") or ()]
    return " ".join(name if task == -1 else f"{name}-{task}" for name, task in named) or "nothing"


def partitions_text(partitions: dict[str, list[int]]) -> str:
    """``orders 0-3,7 payments 1``: numbers in a row as ranges."""
    return " ".join(
        f"{topic} {format_units.number_ranges(sorted(numbers), ',')}" for topic, numbers in partitions.items()
    )
