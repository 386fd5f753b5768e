"""The picture of flows: what is folded into one box, and what is left out."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from kwiresniff.analysis.flow_picture import MAX_BOXES, MAX_EDGES, pattern_of, picture_of
from kwiresniff.results.flows import FlowClient
from kwiresniff.results.topics import NO_FLOW, TopicFlow
from tests.support.flows import made_flow


@pytest.mark.parametrize(
    ("client_id", "pattern"),
    [
        ("consumer-billing-12", "consumer-billing-*"),
        ("checkout-7f9c6d5b4-x2x4z", "checkout-*"),
        ("web-x2x4z", "web-*"),
        ("app-7a1c9b1e-33cf-4a55-9d57-2f3e6f1f0a11-StreamThread-1-producer", "app-*-StreamThread-*-producer"),
        ("rdkafka", "rdkafka"),
        ("kafka-feedback", "kafka-feedback"),
        ("10.0.0.7", "*.*.*.*"),
        ("", ""),
    ],
)
def test_a_pattern_keeps_what_instances_have_in_common(client_id: str, pattern: str) -> None:
    """Numbers, UUIDs and the ends of pods' names differ; words that look a little like them do not."""
    assert pattern_of(client_id) == pattern


def test_few_clients_are_shown_one_by_one() -> None:
    """Also those with one client id at two addresses."""
    picture = picture_of([made_flow("shop"), made_flow("shop", address="10.0.0.6"), made_flow("till")])
    assert [(one.kind, one.name, one.count) for one in picture.clients] == [
        ("client id", "shop", 1), ("client id", "shop", 1), ("client id", "till", 1),
    ]  # fmt: skip
    assert [(edge.client, edge.topic, edge.records) for edge in picture.edges] == [(0, 0, 10), (1, 0, 10), (2, 0, 10)]


def test_thousands_of_clients_are_folded_and_a_few_others_stay() -> None:
    """The largest set that is alike is enough: the two that are not stay as they are."""
    many = [made_flow(f"sensor-{number}", address=f"10.1.{number // 250}.{number % 250}") for number in range(3_000)]
    picture = picture_of([made_flow("shop", size_bytes=5), *many, made_flow("till", size_bytes=7)])
    assert picture.clients == (
        FlowClient("pattern", "sensor-*", 3_000, tuple(flow.address for flow in many), ()),
        FlowClient("client id", "till", 1, ("10.0.0.5",), ()),
        FlowClient("client id", "shop", 1, ("10.0.0.5",), ()),
    )
    assert [(edge.records, edge.size_bytes) for edge in picture.edges] == [(30_000, 3_000_000), (10, 7), (10, 5)]


def test_clients_without_a_pattern_are_folded_by_their_group_then_by_their_software() -> None:
    """Random client ids have nothing in common, their group or library has."""
    words = ["".join("abcdefgh"[int(digit)] for digit in f"{number:o}") for number in range(2_000)]
    readers = [made_flow(f"r{word}", role="consumer", groups=("billing",)) for word in words[:1_000]]
    writers = [made_flow(f"w{word}", software=("sarama", None)) for word in words[1_000:]]
    picture = picture_of([*readers, *writers])
    assert [(one.kind, one.name, one.count) for one in picture.clients] == [
        ("group", "billing", 1_000), ("software", "sarama", 1_000),
    ]  # fmt: skip


def test_what_has_nothing_in_common_is_others() -> None:
    """The busiest stay, and nobody is lost."""
    words = ["".join("abcdefgh"[int(digit)] for digit in f"{number:o}") for number in range(100)]
    flows = [made_flow(word, f"topic-{word}", software=(None, None), size_bytes=at) for at, word in enumerate(words)]
    picture = picture_of(flows)
    assert len(picture.clients) == len(picture.topics) == MAX_BOXES
    assert picture.clients[0].name == words[-1]
    assert (picture.clients[-1].kind, picture.clients[-1].count) == ("others", 100 - MAX_BOXES + 1)
    assert (picture.topics[-1].name, picture.topics[-1].count) == (None, 100 - MAX_BOXES + 1)
    assert sum(edge.size_bytes for edge in picture.edges) == sum(range(100))
    assert picture.left_out == 0


def test_the_edges_with_fewest_bytes_are_left_out_and_counted() -> None:
    """Those that say that something is wrong stay."""
    flows = [
        made_flow(f"c{client}", f"t{topic}", size_bytes=1 + client * 40 + topic, errors=int(client == topic == 0))
        for topic in range(MAX_BOXES)
        for client in range(MAX_BOXES)
    ]
    picture = picture_of(flows)
    assert len(picture.edges) == MAX_EDGES
    assert picture.left_out == MAX_BOXES * MAX_BOXES - MAX_EDGES
    assert min(edge.size_bytes for edge in picture.edges if not edge.errors) > MAX_BOXES * MAX_BOXES - MAX_EDGES
    assert [edge.size_bytes for edge in picture.edges if edge.errors] == [1]


def test_lag_errors_and_zones_are_summed_where_they_are_known() -> None:
    """A flow of which the lag or the zone is not known takes nothing from the others."""
    flows = [
        made_flow(f"member-{number}", role="consumer", groups=("g",), lag=number or None, zone="a" if number else None,
                  brokers=[("a", 10), ("b", 5), (None, 7)], address=f"10.2.0.{number}", errors=number)
        for number in range(MAX_BOXES + 1)
    ]  # fmt: skip
    (edge,) = picture_of(flows).edges
    total = MAX_BOXES * (MAX_BOXES + 1) // 2
    assert (edge.lag, edge.errors, edge.across_zones, edge.state) == (total, total, 5 * MAX_BOXES, "bad")


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "ok"), ({"lag": 0}, "ok"), ({"lag": 1}, "warn"), ({"unanswered": 1, "lag": 1}, "bad"),
        ({"errors": 1}, "bad"),
        ({"refused": TopicFlow(0, 1, 1, 1)}, "bad"), ({"repeated": TopicFlow(0, 1, 1, 1), "records": NO_FLOW}, "ok"),
    ],
)  # fmt: skip
def test_the_state_of_an_edge_is_the_worst_there_is(more: dict[str, Any], state: str) -> None:
    """What was refused is wrong, what was sent twice is not."""
    (edge,) = picture_of([made_flow("shop", **more)]).edges
    assert edge.state == state


def test_folding_takes_time_by_the_number_of_clients() -> None:
    """As many clients as are remembered, all alike by twos: each set costs no look through all of them."""

    def seconds(count: int) -> float:
        flows = [made_flow(f"{'a-' * 100}{number // 2}", address=f"10.0.0.{number % 2}") for number in range(count)]
        begun = process_time()
        picture_of(flows)
        return process_time() - begun

    seconds(1_000)
    assert min(seconds(8_000) for _ in range(3)) < 20 * min(seconds(1_000) for _ in range(3))


def test_the_pattern_of_a_long_client_id_takes_no_time() -> None:
    """A client id may have 32,767 bytes, of which the pattern has the first few."""
    begun = process_time()
    for text in ("a-" * 16_000, "0" * 32_000, "f" * 32_000 + "g", "abcd1-" * 5_000):
        pattern_of(text)
    assert process_time() - begun < 0.1


def test_topics_and_groups_of_one_name_in_two_clusters_are_two() -> None:
    """They have nothing but the name in common; a client may speak to both."""
    committed: dict[str, Any] = {"role": "group", "address": "", "groups": ("g",), "records": NO_FLOW}
    picture = picture_of([
        made_flow("mirror", cluster="a"),
        made_flow("mirror", cluster="b"),
        made_flow(None, cluster="a", **committed),
        made_flow(None, cluster="b", **committed),
    ])  # fmt: skip
    assert [(topic.name, topic.cluster) for topic in picture.topics] == [("orders", "a"), ("orders", "b")]
    assert [(one.kind, one.name) for one in picture.clients] == [
        ("client id", "mirror"),
        ("group", "g"),
        ("group", "g"),
    ]
    assert [(edge.client, edge.topic) for edge in picture.edges] == [(0, 0), (1, 0), (0, 1), (2, 1)]
