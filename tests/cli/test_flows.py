"""``kwiresniff flows``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import Run

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
RECORDING = str(CAPTURES / "java-group-consumer.pcapng")


def test_the_table_has_a_line_for_each_client_of_a_topic(kwiresniff: Run) -> None:
    """Group.java: ``shop`` writes eight records, two members of ``warehouse`` read them."""
    done = kwiresniff("flows", RECORDING)
    assert (done.code, done.err) == (0, "")
    head, *rows = [line.split() for line in done.out.splitlines()]
    assert head[:6] == ["topic", "role", "client", "address", "group", "records"]
    assert [row[:6] for row in rows] == [
        ["shelves", "produces", "shop", "10.9.0.2", "-", "8"],
        ["shelves", "consumes", "member-1", "10.9.0.2", "warehouse", "6"],
        ["shelves", "consumes", "member-2", "10.9.0.2", "warehouse", "2"],
    ]


def test_json_has_what_topics_counts(kwiresniff: Run) -> None:
    """Every producer and consumer of every topic, with the same numbers."""
    for name in ("java-group-consumer.pcapng", "java-transactions.pcap", "java-share-group.pcap", "librdkafka.pcap"):
        flows = [json.loads(line) for line in kwiresniff("flows", "-o", "jsonl", str(CAPTURES / name)).out.splitlines()]
        found = [
            (one["topic"], one["role"], one["client_id"], one["records"], one["bytes"], one["lag"])
            for one in flows
            if one["role"] != "group"
        ]
        topics = [
            json.loads(line) for line in kwiresniff("topics", "-o", "jsonl", str(CAPTURES / name)).out.splitlines()
        ]
        assert found == [
            (
                topic["topic"],
                one.get("role", "producer"),
                one["client_id"],
                one["records"],
                one["bytes"],
                one.get("lag"),
            )
            for topic in topics
            for one in (*topic["producers"], *topic["consumers"])
        ]
        for flow in flows:
            assert flow["kind"] == "flow"
            taken_or_not = flow["bytes"] + flow["refused"]["bytes"] + flow["repeated"]["bytes"]
            assert sum(one["bytes"] for one in flow["brokers"]) == taken_or_not


def test_graphs_have_an_arrow_for_each_line(kwiresniff: Run) -> None:
    """In both languages, from the producer to the topic and on to the members."""
    dot = kwiresniff("flows", "-o", "dot", RECORDING).out.splitlines()
    assert (dot[0], dot[-1]) == ("digraph flows {", "}")
    assert [line.split("[")[0].strip() for line in dot if "->" in line] == ["c0 -> t0", "t0 -> c1", "t0 -> c2"]
    mermaid = kwiresniff("flows", "-o", "mermaid", RECORDING).out.splitlines()
    assert mermaid[:2] == ["flowchart LR", '  c0["shop<br/>10.9.0.2"]']
    assert sum("-->" in line for line in mermaid) == 3


def test_a_filter_chooses_what_flows(kwiresniff: Run) -> None:
    """As in every other command."""
    done = kwiresniff("flows", "-o", "jsonl", "-Y", "client_id == member-2", RECORDING)
    assert {json.loads(line)["client_id"] for line in done.out.splitlines()} == {"member-2"}


def test_a_capture_without_topics_has_no_flows(kwiresniff: Run) -> None:
    """An empty graph."""
    done = kwiresniff("flows", "-o", "mermaid", "-Y", "api == ApiVersions", RECORDING)
    assert (done.code, done.out) == (0, "flowchart LR\n")


def test_replicas_are_in_the_table_and_in_no_picture(kwiresniff: Run) -> None:
    """Brokers of a recorded cluster of three copy from each other."""
    capture = str(CAPTURES / "cluster-inside.pcap.xz")
    assert "  replicates  " in kwiresniff("flows", capture).out
    roles = [json.loads(line)["role"] for line in kwiresniff("flows", "-o", "jsonl", capture).out.splitlines()]
    arrows = [line for line in kwiresniff("flows", "-o", "dot", capture).out.splitlines() if "->" in line]
    assert "replica" in roles and len(arrows) == sum(role != "replica" for role in roles)
