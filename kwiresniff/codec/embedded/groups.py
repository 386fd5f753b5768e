"""Messages that group members send each other, which brokers pass on as bytes.

``protocol_type`` says whose language it is. Consumers: ConsumerProtocolSubscription and ConsumerProtocolAssignment,
in which an assignor may put ``user_data`` of its own, as the sticky ones and that of Kafka Streams do. Connect workers:
ConnectWorkerState and ConnectAssignment.
Sources: KIP-62, KIP-54, KIP-341, KIP-429 (consumers), KIP-415, KIP-507 (Connect); KIP-268, KIP-441, KIP-535, KIP-708
(Streams, whose classes SubscriptionInfo and AssignmentInfo write the bytes).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff import schema
from kwiresniff.base.api_keys import DESCRIBE_GROUPS, JOIN_GROUP, SYNC_GROUP
from kwiresniff.codec.embedded.embedded_format import Content, contents, least_bytes, versioned
from kwiresniff.codec.embedded.openers import Openers, request_field
from kwiresniff.codec.embedded.struct_view import StructView
from kwiresniff.model import Exchange, TopicNames

CONSUMER = "consumer"
CONNECT = "connect"

_SUBSCRIPTIONS = {CONSUMER: "ConsumerProtocolSubscription", CONNECT: "ConnectWorkerState"}
_ASSIGNMENTS = {CONSUMER: "ConsumerProtocolAssignment", CONNECT: "ConnectAssignment"}
_STICKY = "StickyAssignorUserData"

#: The assignor of Kafka Streams; what it writes begins with its version as an INT32.
STREAMS = "stream"
_STREAMS_SUBSCRIPTION, _STREAMS_ASSIGNMENT = "SubscriptionInfoData", "AssignmentInfo"
_STREAMS_VERSION_BYTES = 4


def open_subscription(struct: StructView, field: str, protocol_type: Any, protocol: Any) -> None:
    """Opens a member's subscription: ``metadata`` in JoinGroup. ``protocol`` is the assignor's name."""
    inner = _open(struct, field, protocol_type, _SUBSCRIPTIONS)
    if inner is None:
        return
    if inner.get("allocation"):
        inner.open("allocation", versioned(_ASSIGNMENTS[CONNECT], inner.get("allocation"), sure=False))
    raw = inner.get("user_data")
    if not isinstance(raw, bytes) or not raw:
        return
    if protocol == "sticky":
        for version in (1, 0):  # as the assignor itself tries them
            if inner.open("user_data", Content(_STICKY, version, 0, sure=False)):
                break
    elif protocol == "cooperative-sticky":
        inner.open("user_data", Content("CooperativeStickyAssignorUserData", 0, 0, sure=False))
    elif protocol == STREAMS:
        _open_streams(inner, _STREAMS_SUBSCRIPTION, raw, sure=True)


def open_assignment(struct: StructView, field: str, protocol_type: Any, protocol: Any = None) -> None:
    """Opens a member's assignment: ``assignment`` in SyncGroup. ``protocol`` is the assignor's name, if known."""
    inner = _open(struct, field, protocol_type, _ASSIGNMENTS)
    raw = inner.get("user_data") if inner is not None else None
    if inner is not None and isinstance(raw, bytes) and raw and protocol in (STREAMS, None):
        _open_streams(inner, _STREAMS_ASSIGNMENT, raw, sure=protocol == STREAMS)


def _open_streams(inner: StructView, message: str, raw: bytes, *, sure: bool) -> None:
    """One of the two messages; of a version newer than known it is the newest if that fits to the last byte."""
    version = int.from_bytes(raw[:_STREAMS_VERSION_BYTES], "big", signed=True)
    low, high = schema.data_versions(message)
    if len(raw) < _STREAMS_VERSION_BYTES or version < low:
        return
    # 0.11 to 1.1 put the fields of version 2 under version 1 when configured to upgrade from 0.10.0.
    if version > 1 or inner.open("user_data", Content(message, 1, 0, sure=False)) is None:
        inner.open("user_data", Content(message, max(2, min(version, high)), 0, sure=sure and version <= high))


def open_group_record(struct: StructView) -> None:
    """Opens the members of a group as the coordinator has stored them (GroupMetadataValue)."""
    protocol_type, protocol = struct.get("protocol_type"), struct.get("protocol")
    for member in struct.each("members"):
        open_subscription(member, "subscription", protocol_type, protocol)
        open_assignment(member, "assignment", protocol_type, protocol)


def _open(struct: StructView, field: str, protocol_type: Any, messages: dict[str, str]) -> StructView | None:
    raw = struct.get(field)
    if not isinstance(raw, bytes) or not raw:
        return None
    if protocol_type in messages:
        return struct.open(field, versioned(messages[protocol_type], raw))
    if protocol_type:
        return None
    # Not every version says the type: what fits one of them to the last byte is taken for it.
    likely = (message for message in messages.values() if len(raw) >= least_bytes(message))
    found = (struct.open(field, versioned(message, raw, sure=False)) for message in likely)
    return next((inner for inner in found if inner is not None), None)


def _each(
    struct: StructView, name: str, field: str, protocol_type: Any, messages: dict[str, str]
) -> Iterator[StructView]:
    """The structures of an array whose field may hold what members of such a group say."""
    if protocol_type in messages:
        return struct.each(name, field, contents((messages[protocol_type],), True))
    return iter(()) if protocol_type else struct.each(name, field, contents(tuple(messages.values()), False))


def _join_request(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    protocol_type = struct.get("protocol_type")
    for protocol in _each(struct, "protocols", "metadata", protocol_type, _SUBSCRIPTIONS):
        open_subscription(protocol, "metadata", protocol_type, protocol.get("name"))


def _join_response(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    protocol_type = struct.get("protocol_type") or request_field(exchange, "protocol_type")
    protocol = struct.get("protocol_name")
    for member in _each(struct, "members", "metadata", protocol_type, _SUBSCRIPTIONS):
        open_subscription(member, "metadata", protocol_type, protocol)


def _sync_request(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    protocol_type, protocol = struct.get("protocol_type"), struct.get("protocol_name")
    for assignment in _each(struct, "assignments", "assignment", protocol_type, _ASSIGNMENTS):
        open_assignment(assignment, "assignment", protocol_type, protocol)


def _sync_response(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    protocol_type = struct.get("protocol_type") or request_field(exchange, "protocol_type")
    protocol = struct.get("protocol_name") or request_field(exchange, "protocol_name")
    open_assignment(struct, "assignment", protocol_type, protocol)


def _describe_groups(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    for group in struct.each("groups"):
        protocol_type = group.get("protocol_type")
        for member in group.each("members"):
            open_subscription(member, "member_metadata", protocol_type, group.get("protocol_data"))
            open_assignment(member, "member_assignment", protocol_type, group.get("protocol_data"))


OPENERS: Openers = {
    (JOIN_GROUP, "request"): _join_request,
    (JOIN_GROUP, "response"): _join_response,
    (SYNC_GROUP, "request"): _sync_request,
    (SYNC_GROUP, "response"): _sync_response,
    (DESCRIBE_GROUPS, "response"): _describe_groups,
}
