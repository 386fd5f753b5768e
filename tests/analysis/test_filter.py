"""What filter expressions mean, and what is said about mistakes in them."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.filter.fields import unknown_step
from kwiresniff.errors import FilterError
from kwiresniff.model import Exchange
from kwiresniff.schema.apis import apis
from kwiresniff.schema.definition import Field
from kwiresniff.schema.registry import definitions
from tests.support.exchanges import START_NS, connection, exchange

FETCH = {"max_wait_ms": 500, "topics": [{"topic": "orders", "partitions": [{"partition": 3}]}]}
PRODUCE = {
    "acks": 0,
    "transactional_id": "tx-1",
    "topic_data": [
        {"name": "payments", "partition_data": [{"index": 0, "records": [{"records": [{"key": b"k", "value": None}]}]}]}
    ],
}
NOT_LEADER = [("responses[0].partitions[0].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)]


def matches(text: str, given: Exchange) -> bool:
    return compile_filter(text).matches(given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api == Fetch", True),
        ("api == fetch or api_key == 1", True),
        ("api != Produce", True),
        ("api in (Produce, Metadata)", False),
        ("api not in (Produce, Metadata)", True),
        ("api ~ '^Fe'", True),
        ("api_key == 1", True),
        ("api_version < 4", False),
        ("api_version >= 12 and api_version <= 12", True),
        ('client_id ~ "billing-.*"', True),
        ("client_id ~ ^illing", False),
        ("client_id matches ^bill", True),
        ("client_id matches ^illing", False),
        ("client_id contains illing", True),
        ("client_id contains Illing", False),
        ("client_id contains .", False),
        ("api contains etc", True),
        ("not api contains rod", True),
        ("broker contains '.1:'", True),
        ("client_id == billing-1", True),
        ("client_id == null", False),
        ("correlation_id == 7", True),
        ("connection in (1, 2)", True),
        ("client == 10.0.0.5:50000", True),
        ("client == 10.0.0.5", True),
        ("client == 10.0.0.50", False),
        ("broker == 10.0.0.1:9092", True),
        ("broker == :9092", True),
        ("broker == :909", False),
        ("latency > 900us", True),
        ("queued == 0ns and held < 1ns and broker_latency == 1ms", True),
        ("broker_latency > 1ms", False),
        ("latency > 1ms", False),
        ("latency == 1ms", True),
        ("latency <= 0.001s", True),
        ("size > 2kB", True),
        ("size > 2100", False),
        ("size == 2100B", True),
        ("request.size < 1KiB", True),
        ("response.size == 2kb", True),
        ("time >= 2023-11-14T22:13:20Z", True),
        ("time > 2023-11-14T22:13:20Z", False),
        ("time < 2023-11-14T23:13:20.000000001+01:00", True),
        ("time < 2023-11-15", True),
        ("outcome == ok", True),
        ("error == NONE", True),
        ("error", False),
        ("latency", True),
    ],
)
def test_fields_of_the_header(text: str, expected: bool) -> None:
    assert matches(text, exchange()) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("proxied.client == 203.0.113.7:51515", True),
        ("proxied.client == 203.0.113.7", True),
        ("proxied.client == 203.0.113.70", False),
        ("client == 203.0.113.7", False),
        ("proxied.broker == kafka-1.int", True),
        ("proxied.broker == kafka-1.int:9092", True),
        ("proxied.broker == kafka-1.int:9093", False),
        ("proxied.broker == kafka-1", False),
        ("proxied.broker == :9092", True),
        ("proxied.broker ~ ^kafka", True),
        ("proxied.broker == 10.0.0.1", False),
        ("proxied.broker == [::1]:9092", False),
        ('proxied.by == "PROXY v1, SOCKS5"', True),
        ("proxied.by ~ SOCKS", True),
        ("proxied.by == null", False),
    ],
)
def test_fields_of_a_proxy(text: str, expected: bool) -> None:
    """The same is nothing on a connection without one."""
    on = connection()
    on.proxied = {"client": "203.0.113.7:51515", "broker": "kafka-1.int:9092", "by": "PROXY v1, SOCKS5"}
    assert matches(text, exchange(on=on)) is expected
    assert matches(text, exchange()) is (text == "proxied.by == null")


@pytest.mark.parametrize(
    "text", ["client == kafka-1.int", "proxied.client == kafka-1.int", "proxied.broker == [a:b]:1"]
)
def test_a_name_stands_only_where_there_are_names(text: str) -> None:
    with pytest.raises(FilterError, match="expected an address like"):
        compile_filter(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topic == orders", True),
        ("topic in (orders, payments)", True),
        ("topic != orders", False),
        ("topic != payments", True),
        ("topic ~ ord", True),
        ("partition == 3", True),
        ("partition > 3", False),
        ("group", False),
        ("request.body.max_wait_ms == 500", True),
        ("request.body.max_wait_ms == 0.5s", True),
        ("request.body.max_wait_ms >= 1s", False),
        ("request.body.topics.topic == orders", True),
        ("request.body.topics[].topic == orders", True),
        ("request.body.topics[0].topic == orders", True),
        ("request.body.topics[1].topic == orders", False),
        ("request.body.topics.partitions.partition == 3", True),
        ("request.body.topics.partitions.partition != 3", False),
        ("request.body.isolation_level == null", True),
        ("request.body.isolation_level", False),
        ("response.body.throttle_time_ms == 0", True),
        ("response.body.throttle_time_ms", False),
    ],
)
def test_fields_of_the_bodies(text: str, expected: bool) -> None:
    assert matches(text, exchange(request=FETCH, response={"throttle_time_ms": 0})) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acks == 0", True),
        ("acks == -1", False),
        ("request.body.acks == 0", True),
        ("transactional_id == tx-1", True),
        ("topic == payments", True),
        ("request.body.topic_data.partition_data.records.records.key == k", True),
        ("request.body.topic_data.partition_data.records.records.key ~ ^k$", True),
        ("request.body.topic_data.partition_data.records.records.key contains k", True),
        ("request.body.topic_data.partition_data.records.records.key contains kk", False),
        ("request.body.topic_data.partition_data.records.records.value == null", True),
        ("request.body.topic_data.partition_data.records.records.key == null", False),
        ("outcome == no_response_expected", True),
        ("latency == null", True),
        ("queued == null and held == null and broker_latency == null", True),
        ("latency > 0ns", False),
        ("not latency > 0ns", True),
        ("error == NONE", False),
    ],
)
def test_a_produce_without_acks(text: str, expected: bool) -> None:
    given = exchange("Produce", 0, 8, request=PRODUCE, latency_ns=None, outcome="no_response_expected")
    assert matches(text, given) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("error == NOT_LEADER_OR_FOLLOWER", True),
        ("error == 6", True),
        ("error != NOT_LEADER_OR_FOLLOWER", False),
        ("error in (NONE, UNKNOWN_TOPIC_OR_PARTITION)", False),
        ("error ~ LEADER", True),
        ("error != NONE", True),
        ("error", True),
        ("outcome == error", True),
        ("response.body.error_code == NOT_LEADER_OR_FOLLOWER", True),
        ("response.body.error_code == 6", True),
    ],
)
def test_errors_go_by_name_older_name_or_code(text: str, expected: bool) -> None:
    given = exchange(outcome="error", errors=NOT_LEADER, response={"error_code": 6})
    assert matches(text, given) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api == Produce or api == Fetch and latency > 1h", False),
        ("(api == Fetch or api == Produce) and latency < 1h", True),
        ("not api == Produce and not (latency > 1h)", True),
        ("! api == Produce && api == Fetch || api == Metadata", True),
        ("NOT api == Produce AND api == Fetch", True),
    ],
)
def test_and_binds_tighter_than_or_and_not_tighter_than_both(text: str, expected: bool) -> None:
    assert matches(text, exchange()) is expected


def test_a_missing_client_id_equals_null_and_differs_from_every_name() -> None:
    given = exchange(client_id=None)
    assert matches("client_id == null", given)
    assert matches("client_id in (null, x)", given)
    assert matches("client_id != billing-1", given)
    assert not matches("client_id ~ .*", given)
    assert not matches('client_id == "null"', given)


def test_ipv6_addresses_are_compared_as_addresses() -> None:
    given = exchange(on=connection(1, "[2001:db8::1]:5000", "[2001:db8::2]:9092"))
    assert matches("client == [2001:db8:0:0::1]:5000", given)
    assert matches("client == 2001:db8::1", given)
    assert matches("broker == [2001:db8::2]", given)
    assert not matches("broker == [2001:db8::1]:9092", given)


def test_groups_are_found_where_each_api_has_them() -> None:
    join = exchange("JoinGroup", 11, 5, request={"group_id": "g1"})
    find = exchange("FindCoordinator", 10, 3, request={"key": "g1", "key_type": 0})
    transactional = exchange("FindCoordinator", 10, 3, request={"key": "g1", "key_type": 1})
    fetch_offsets = exchange("OffsetFetch", 9, 8, request={"groups": [{"group_id": "g1"}]})
    assert [matches("group == g1", given) for given in (join, find, transactional, fetch_offsets)] == [
        True, True, False, True,
    ]  # fmt: skip
    assert matches("transactional_id == g1", transactional)


def test_the_principal_comes_from_the_connection() -> None:
    authenticated = connection()
    authenticated.sasl = {"mechanism": "SCRAM-SHA-256", "principal": "alice"}
    assert matches("principal == alice", exchange(on=authenticated))
    assert matches("principal == null", exchange())


def test_topic_ids_go_by_name_when_the_name_is_known() -> None:
    given = exchange(request={"topics": [{"topic_id": "abc", "partitions": []}]})
    assert compile_filter("topic == orders", {"abc": "orders"}.get).matches(given)
    assert matches("topic == abc", given)


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("api == Fetch and latency > 100ms", "headers"),
        ("outcome == unanswered", "headers"),
        ("size > 1MB or broker == 10.0.0.1", "headers"),
        ("outcome == error", "errors"),
        ("error == 3", "errors"),
        ("api == Fetch and topic == orders", "bodies"),
        ("request.body.acks == 0", "bodies"),
        ("request.body.topic_data.partition_data.records.compression == zstd", "bodies"),
        ("request.body.topic_data.partition_data.records.records.key == k", "records"),
    ],
)
def test_the_depth_is_no_deeper_than_the_fields_need(text: str, depth: str) -> None:
    compiled = compile_filter(text)
    assert compiled.depth == depth
    assert compiled.needs.depth == depth


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api == Fetch", True),
        ("api == Produce", False),
        ("topic == orders", None),
        ("not topic == orders", None),
        ("api == Produce and topic == orders", False),
        ("topic == orders and api == Produce", False),
        ("api == Fetch and topic == orders", None),
        ("api == Fetch or topic == orders", True),
        ("not (api == Produce and topic == orders)", True),
        ("latency > 500us", True),
        ("outcome == unanswered", False),
        ("outcome == ok", None),
        ("outcome in (ok, error, undecoded)", True),
        ("error == 3", None),
    ],
)
def test_the_header_decides_what_it_can_and_leaves_the_rest_open(text: str, expected: bool | None) -> None:
    assert compile_filter(text).matches_header(exchange()) is expected


@pytest.mark.parametrize(
    ("text", "expected"), [("latency > 1s", None), ("size > 1", None), ("request.size > 1", True), ("time", True)]
)
def test_what_the_response_decides_is_open_until_it_has_come(text: str, expected: bool | None) -> None:
    under_way = exchange(latency_ns=None)
    assert compile_filter(text).matches_header(under_way) is expected


def test_no_response_settles_what_it_would_have_decided() -> None:
    given = exchange(latency_ns=None, outcome="unanswered")
    assert compile_filter("error == 3").matches_header(given) is False
    assert compile_filter("latency > 1s").matches_header(given) is False
    assert compile_filter("outcome == unanswered").matches_header(given) is True


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "expected a field (api, api_key,"),
        ("apy == Fetch", 0, "expected a field (near it: api, api_key; all: api, api_key,"),
        ("api = Fetch", 4, "expected one of == != < <= > >= ~ contains matches, 'in', 'and' or 'or', not '='"),
        ("api ==", 6, "expected a value, not the end"),
        ("api == Fetsh", 7, "expected an API name like Fetch"),
        ("api < Fetch", 4, "expected ==, !=, ~ or 'in', because API names have no order"),
        ("api == Fetch latency > 1s", 13, "expected 'and', 'or' or the end, not 'latency'"),
        ("(api == Fetch", 13, "expected 'and', 'or' or ')', not the end"),
        ("api == Fetch)", 12, "expected 'and', 'or' or the end, not ')'"),
        ("api in Fetch", 7, "expected '(' and a list of values, not 'Fetch'"),
        ("api in ()", 8, "expected a value, not ')'"),
        ("api in (Fetch Produce)", 14, "expected ',' or ')', not 'Produce'"),
        ("api not Fetch", 8, "expected 'in', not 'Fetch'"),
        ("latency > 100", 10, "expected a duration with its unit, like 100ms, not '100'"),
        ("latency ~ 1", 8, "expected == != < <= > or >= beside a duration, not '~'"),
        ("latency contains 1", 8, "beside a duration, not 'contains'"),
        ("size > 1parsec", 7, "expected a size, like 512, 64kB or 1MiB, not '1parsec'"),
        ("api_key == x", 11, "expected an integer, not 'x'"),
        ("api_key == 99999999999999999999999", 11, "expected an integer"),
        ("error == OOPS", 9, "expected an error name like NOT_LEADER_OR_FOLLOWER, or its code, not 'OOPS'"),
        ("outcome == bad", 11, "expected one of ok, error, no_response_expected, unanswered"),
        ("broker == kafka.local", 10, "expected an address like 10.0.0.1:9092"),
        ("time > yesterday", 7, "expected a time, like 2026-01-02T03:04:05Z, not 'yesterday'"),
        ("client_id == 'a", 13, "expected a closing ' for the quote opened here"),
        ('client_id ~ "a(b"', 14, "expected a regular expression (missing )"),
        ("request.body == 1", 0, "expected a field"),
        ("request.body.a..b == 1", 0, "expected a field"),
        ("acks == 1 and request.body.topic.name == a", 27, "expected a field that the body of some request has, not"),
        ("response.body.acks == 1", 14, "kwiresniff schema show --response"),
        ("request.body.ackz == 1", 13, "acks"),
        ("not request.body.topics[0].naem == a", 27, "below 'request.body.topics[0]', not 'naem' (near it: name)"),
        ("response.body.topics.partitions.eror_code", 32, "error_code"),
        ("request.body.acks.low == 1", 18, "expected a field below 'request.body.acks', not 'low'"),
        ("request.body.protocols.metadatx_decoded.topics", 23, "below 'request.body.protocols'"),
        ("request.body.acks < x", 20, "expected a number, not 'x'"),
        ("request.body.acks < 1s", 20, "expected a number without a unit of time"),
        ("and", 0, "expected a field"),
        ("not", 3, "expected a field"),
        ("api == Fetch &", 13, "expected 'and', 'or' or the end, not '&'"),
    ],
)
def test_a_mistake_is_answered_with_its_position_and_what_was_expected(text: str, position: int, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert caught.value.position == position
    assert message in str(caught.value)


def test_nesting_is_bounded() -> None:
    deep = "(" * 49 + "api == Fetch" + ")" * 49
    assert matches(deep, exchange())
    with pytest.raises(FilterError, match="at most 50 levels"):
        compile_filter("(" * 5_000 + "api == Fetch")
    with pytest.raises(FilterError, match="at most 50 levels"):
        compile_filter("not " * 4_000 + "api")


def test_a_long_chain_is_no_nesting() -> None:
    assert matches(" or ".join(["api_key == 5"] * 600 + ["api == Fetch"]), exchange())


def test_an_endless_expression_is_refused() -> None:
    with pytest.raises(FilterError, match="at most 16384 characters"):
        compile_filter("x" * 1_000_000)


def test_only_the_front_of_a_long_text_is_searched() -> None:
    assert not matches("client_id ~ b", exchange(client_id="a" * 100_000 + "b"))
    assert matches("client_id ~ ^a+$", exchange(client_id="a" * 100_000 + "b"))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("topics.name", {"topics": 5}),
        ("topics.name", {"topics": [1, None, {"name": None}]}),
        ("topics[5].name", {"topics": {"name": 1}}),
        ("topics.name", {"topics": [[1]]}),
    ],
)
def test_a_path_that_leads_nowhere_has_no_value(path: str, body: dict[str, Any]) -> None:
    assert matches(f"request.body.{path} == null", exchange(request=body))


def test_text_in_quotes_may_hold_anything() -> None:
    assert matches(r"""client_id == "a \"b\" (c), 'd' == e" """, exchange(client_id="a \"b\" (c), 'd' == e"))
    assert matches(r'client_id ~ "^a\.b$"', exchange(client_id="a.b"))
    assert not matches(r'client_id ~ "^a\.b$"', exchange(client_id="axb"))


def test_times_are_nanoseconds() -> None:
    given = exchange(start_ns=START_NS + 1)
    assert matches("time == 2023-11-14T22:13:20.000000001Z", given)
    assert not matches("time == 2023-11-14T22:13:20Z", given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("request.body.max_wait_time == 500", True),
        ("request.body.max_wait_time == 501", False),
        ("request.body.topics[0].partitions[0].partition == 3", True),
    ],
)
def test_a_path_may_be_in_older_names(text: str, expected: bool) -> None:
    assert matches(text, exchange(request=FETCH)) is expected


def test_a_path_to_records_may_be_in_older_names() -> None:
    given = exchange("Produce", 0, request=PRODUCE)
    path = "request.body.topic_data.data.record_set.records.key"
    assert matches(f"{path} == k", given)
    assert matches("request.body.topic_data[0].data[0].partition == 0", given)
    assert not matches("request.body.topic_data[1].data[0].partition == 0", given)
    assert compile_filter(f"{path} == k").depth == "records"


def test_a_name_that_a_body_has_is_that_field_whatever_else_it_was() -> None:
    """``group_id`` was FindCoordinator's name for its key."""
    given = exchange("FindCoordinator", 10, request={"key": "old", "group_id": "own"})
    assert matches("request.body.group_id == own", given)
    assert not matches("request.body.group_id == old", given)


@pytest.mark.parametrize(
    "path",
    [
        "request.body.topics[0].partitions[].fetch_offset",
        "request.body.protocols.metadata_decoded.topics",
        "request.body.topic_data.partition_data.records.records.value",
        "request.body.topics.partitions._tagged_fields.7",
        "response.body.responses.partitions.records.compression",
    ],
)
def test_paths_that_some_message_may_have_are_no_mistake(path: str) -> None:
    """No definition says what stands behind record sets, decoded bytes and tagged fields that none has."""
    assert compile_filter(f"{path} == 1") is not None


def test_every_path_of_every_definition_is_accepted() -> None:
    """In every version, by its present name and by older ones; nothing else is at its place."""

    def check(side: str, fields: tuple[Field, ...], path: str) -> None:
        for field in fields:
            for name in (field.name, *field.aliases):
                assert unknown_step(f"{path}.{name}") is None, f"{path}.{name}"
            check(side, field.fields, f"{path}.{field.name}")

    for side in ("request", "response"):
        for api in apis():
            for message in definitions(api.name):
                if message.kind == side:
                    check(side, message.fields, f"{side}.body")
