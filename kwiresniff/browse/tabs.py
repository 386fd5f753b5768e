"""What the tabs beside the exchanges show of a report, and which exchanges each line leads to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, TextIO

from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.browse.blocks import Block, Target
from kwiresniff.browse.messages import Reported
from kwiresniff.model import Problem
from kwiresniff.render.escape import escape
from kwiresniff.render.findings import FindingWriter
from kwiresniff.render.groups import GroupWriter
from kwiresniff.render.problems import problem_line
from kwiresniff.render.tables import stats_table
from kwiresniff.render.topic_blocks import TopicWriter
from kwiresniff.results.findings import Finding
from kwiresniff.results.groups import GroupEvent
from kwiresniff.results.stats import StatRow
from kwiresniff.results.topics import Topic

#: The dimensions of statistics, unless others are asked for.
DIMENSIONS: Final = ("api", "client", "topic", "group", "broker", "error", "connection")
#: Dimensions of statistics whose rows are those of a filter: the field, and how its value is taken from the key.
FIELDS: Final = {
    "api": "api", "client": "client_id", "topic": "topic", "group": "group", "broker": "broker", "error": "error",
    "connection": "connection",
}  # fmt: skip


def quoted(value: str) -> str:
    """A value as it stands in a filter."""
    return '"' + value.replace('"', '\\"') + '"'


def equals(field: str, value: str) -> str:
    """The filter for one value of a field."""
    return f"{field} == {value if field in ('api', 'broker', 'error', 'connection') else quoted(value)}"


def doctor_blocks(report: Reported) -> list[Block]:
    """One block for each finding, then one for each problem of the captures."""
    return [*(_finding(one, report.files) for one in report.findings), *map(_problem, report.problems)]


def _problem(problem: Problem) -> Block:
    def write(out: TextIO, width: int) -> None:
        out.write(f"problem {problem_line(problem)}\n")

    if problem.packet is None:
        return Block(write)
    return Block(write, Target(packets=(problem.packet,), label=escape(problem.message)))


def _finding(finding: Finding, files: Sequence[str]) -> Block:
    def write(out: TextIO, width: int) -> None:
        FindingWriter(out, width, True, files).write([finding])
        out.write("\n")

    packets = [packet for packet, _ in finding.evidence]
    for symptom in () if packets else finding.symptoms:
        packets += [packet for packet, _ in symptom.evidence]
    return Block(write, Target(packets=tuple(packets), label=f"{escape(finding.subject)}: {escape(finding.title)}"))


def topic_blocks(report: Reported) -> list[Block]:
    """One block for each topic."""

    def block(topic: Topic) -> Block:
        def write(out: TextIO, width: int) -> None:
            TopicWriter(out, width, True).topics([topic])
            out.write("\n")

        return Block(write, Target(equals("topic", topic.name)))

    return [block(topic) for topic in report.topics]


def group_blocks(report: Reported) -> list[Block]:
    """For each group its name, and a block for each event."""
    blocks: list[Block] = []
    for _, found in groupby(report.group_events, lambda event: (event.cluster, event.group)):
        events = list(found)
        blocks.append(_group_heading(events[0], report.files, first=not blocks))
        blocks += [_group_event(event, report.files) for event in events]
    return blocks


def _group_heading(event: GroupEvent, files: Sequence[str], *, first: bool) -> Block:
    def write(out: TextIO, width: int) -> None:
        if not first:
            out.write("\n")
        GroupWriter(out, width, True, files).heading(event)

    return Block(write, Target(equals("group", event.group)))


def _group_event(event: GroupEvent, files: Sequence[str]) -> Block:
    label = f"{event.event} of {escape(event.client_id or event.client)} in {escape(event.group)}"
    return Block(
        lambda out, width: GroupWriter(out, width, True, files).event(event),
        Target(packets=(event.packet,), label=label),
    )


def stats_blocks(report: Reported, by: str) -> list[Block]:
    """The table by one dimension, a block for each line."""
    rows = report.stats.get(by, ())
    names = tuple(by.split("+"))

    def lines(width: int) -> Iterator[tuple[str, StatRow | None]]:
        left = list(rows)
        drawn = stats_table(rows, by=names, width=width - 1)
        plain = stats_table(rows, by=names, width=width - 1, color=False)
        row: StatRow | None = None
        for at, (line, text) in enumerate(zip(drawn, plain, strict=True)):
            if at >= 2 and left and text.startswith(_front(left[0])):
                row = left.pop(0)
            elif not text.startswith(" "):
                row = None
            yield line, row

    # Lines follow from the width, so that one block has them all and leads to the row that was drawn last.
    return [Block(lambda out, width: _write(out, lines(width)), targets=lambda width: _targets(lines(width), by))]


def _write(out: TextIO, lines: Iterator[tuple[str, StatRow | None]]) -> None:
    out.writelines(line + "\n" for line, _ in lines)


def _targets(lines: Iterator[tuple[str, StatRow | None]], by: str) -> list[Target | None]:
    return [None if row is None else _row_target(row, by) for _, row in lines]


def _front(row: StatRow) -> str:
    return (escape(row.key[0]) or '""')[:6]


def _row_target(row: StatRow, by: str) -> Target | None:
    key = row.key[0]
    if by == "client":
        key = key.rpartition(" ")[0]
        return Target("client_id == null" if key == NO_CLIENT_ID else equals("client_id", key))
    if by == "connection":
        return Target(equals("connection", key.partition(" ")[0]))
    field = FIELDS.get(by)
    return None if field is None or key.startswith("(") else Target(equals(field, key))
