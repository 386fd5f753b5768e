"""Grammars as the protocol guide prints them, typed in by hand from the guides of releases 2.6 and 2.7."""

from __future__ import annotations

import pytest

from kwiresniff import schema
from kwiresniff.schema.grammar import grammar

METADATA_RESPONSE_9 = """\
Metadata Response (Version: 9) => throttle_time_ms [brokers] cluster_id controller_id [topics] \
cluster_authorized_operations TAG_BUFFER
  throttle_time_ms => INT32
  brokers => node_id host port rack TAG_BUFFER
    node_id => INT32
    host => COMPACT_STRING
    port => INT32
    rack => COMPACT_NULLABLE_STRING
  cluster_id => COMPACT_NULLABLE_STRING
  controller_id => INT32
  topics => error_code name is_internal [partitions] topic_authorized_operations TAG_BUFFER
    error_code => INT16
    name => COMPACT_STRING
    is_internal => BOOLEAN
    partitions => error_code partition_index leader_id leader_epoch [replica_nodes] [isr_nodes] [offline_replicas] \
TAG_BUFFER
      error_code => INT16
      partition_index => INT32
      leader_id => INT32
      leader_epoch => INT32
      replica_nodes => INT32
      isr_nodes => INT32
      offline_replicas => INT32
    topic_authorized_operations => INT32
  cluster_authorized_operations => INT32"""

JOIN_GROUP_REQUEST_5 = """\
JoinGroup Request (Version: 5) => group_id session_timeout_ms rebalance_timeout_ms member_id group_instance_id \
protocol_type [protocols]
  group_id => STRING
  session_timeout_ms => INT32
  rebalance_timeout_ms => INT32
  member_id => STRING
  group_instance_id => NULLABLE_STRING
  protocol_type => STRING
  protocols => name metadata
    name => STRING
    metadata => BYTES"""

API_VERSIONS_RESPONSE_3 = """\
ApiVersions Response (Version: 3) => error_code [api_keys] throttle_time_ms TAG_BUFFER
  error_code => INT16
  api_keys => api_key min_version max_version TAG_BUFFER
    api_key => INT16
    min_version => INT16
    max_version => INT16
  throttle_time_ms => INT32"""


@pytest.mark.parametrize("expected", [METADATA_RESPONSE_9, JOIN_GROUP_REQUEST_5, API_VERSIONS_RESPONSE_3])
def test_a_message_is_printed_as_the_guide_prints_it(expected: str) -> None:
    name, kind, _, version = expected.partition(")")[0].split()
    direction = "request" if kind == "Request" else "response"
    assert grammar(schema.message(name, int(version), direction)) == expected


def test_a_message_without_fields_is_an_empty_line_of_grammar() -> None:
    assert grammar(schema.message("ApiVersions", 0, "request")) == "ApiVersions Request (Version: 0) =>"


def test_a_header_is_printed_as_the_guide_prints_it() -> None:
    assert grammar(schema.header("request", 2)) == (
        "Request Header v2 => request_api_key request_api_version correlation_id client_id TAG_BUFFER\n"
        "  request_api_key => INT16\n"
        "  request_api_version => INT16\n"
        "  correlation_id => INT32\n"
        "  client_id => NULLABLE_STRING"
    )
