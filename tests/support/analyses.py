"""All that the commands which collect say of traffic, in one text: tables, lines, JSON, the page and the metrics."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import Any

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.needs import Needs
from kwiresniff.export.clients import client_json
from kwiresniff.export.encode import json_line
from kwiresniff.export.findings import finding_json
from kwiresniff.export.groups import group_event_json
from kwiresniff.export.json_objects import stat_json
from kwiresniff.export.producers import producer_json
from kwiresniff.export.topics import topic_json
from kwiresniff.model import Connection, Exchange, Segment
from kwiresniff.render.clients import ClientWriter, client_columns
from kwiresniff.render.findings import FindingWriter
from kwiresniff.render.groups import GroupWriter
from kwiresniff.render.one_line import write_lines
from kwiresniff.render.producer_blocks import ProducerWriter
from kwiresniff.render.summary import SummaryWriter
from kwiresniff.render.topic_blocks import TopicWriter, topic_columns
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with

#: What ``stats --by`` takes.
DIMENSIONS = (
    "api", "client", "topic", "broker", "connection", "host", "version", "principal", "error", "partition", "group",
)  # fmt: skip
WIDTH = 120


def text_of_analyses(segments: Iterable[Segment], *, digests: bool = True) -> str:
    """What a person is told, with ``digests`` of bodies that are not decoded where that is enough, as the commands read
    them, or of bodies that are all decoded."""
    analyzer = Analyzer(Needs("bodies", sessions=True, attempts=True, digests=digests))
    name = analyzer.topics.name
    inventory, topics, timeline = Inventory(name), TopicTraffic(name), GroupTimeline(name)
    ledger, doctor = ProducerLedger(name), Doctors(name)
    tables = [StatsTable((dimension,), name, records=True) for dimension in DIMENSIONS]
    out = StringIO()
    summary = SummaryWriter(out, WIDTH, False)
    takers = (
        inventory.exchange, topics.exchange, timeline.add, ledger.exchange, doctor.exchange, summary.write,
        *(table.add for table in tables),
    )  # fmt: skip
    for event in analyze_with(analyzer, segments):
        if isinstance(event, Exchange):
            for take in takers:
                take(event)
            continue
        doctor.add(event)
        if isinstance(event, Connection):
            inventory.connection(event)
    clients, groups, producers, findings = (
        inventory.clients(), timeline.events(), ledger.producers(), doctor.findings()
    )  # fmt: skip
    traffic = topics.topics()
    ClientWriter(out, WIDTH, False, []).clients(clients)
    write_lines(out, WIDTH, False, clients, client_columns)
    TopicWriter(out, WIDTH, False).topics(traffic)
    write_lines(out, WIDTH, False, traffic, topic_columns)
    GroupWriter(out, WIDTH, False, []).write(groups)
    ProducerWriter(out, WIDTH, False, []).producers(producers)
    FindingWriter(out, WIDTH, False, []).write(findings)
    objects: list[dict[str, Any]] = [
        *(client_json(one, []) for one in clients), *map(topic_json, traffic),
        *(group_event_json(one, []) for one in groups), *(producer_json(one, []) for one in producers),
        *(finding_json(one, []) for one in findings), *(stat_json(row) for table in tables for row in table.rows()),
    ]  # fmt: skip
    encode = json_line
    return out.getvalue() + b"".join(map(encode, objects)).decode()
