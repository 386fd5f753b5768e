"""Which fields of which messages hold something to open, and what an exchange tells about it.

The work is done in ``codec.embedded``; here stands where. A message that is not in the table costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwiresniff import codec
from kwiresniff.base.api_keys import (
    DESCRIBE_GROUPS,
    ENVELOPE,
    FETCH,
    FETCH_SNAPSHOT,
    JOIN_GROUP,
    PRODUCE,
    PUSH_TELEMETRY,
    SYNC_GROUP,
)
from kwiresniff.base.known_ids import METADATA_TOPIC, METADATA_TOPIC_ID
from kwiresniff.codec.embedded import (
    INTERNAL_TOPICS,
    Holder,
    open_assignment,
    open_batches,
    open_enveloped_request,
    open_enveloped_response,
    open_metrics,
    open_subscription,
)
from kwiresniff.codec.embedded.envelope import answer_header, enveloped_header
from kwiresniff.codec.headers import RequestHeader
from kwiresniff.errors import KwiresniffError
from kwiresniff.model import Body, Exchange, Message, TopicNames

#: ``open(holder, exchange, topic_name)``: opens what the message that ``holder`` stands for holds.
Opener = Callable[[Holder, Exchange, TopicNames], None]


def _join_request(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    for protocol in holder.each("protocols"):
        open_subscription(protocol, "metadata", holder.get("protocol_type"), protocol.get("name"))


def _join_response(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    protocol_type = holder.get("protocol_type") or _asked(exchange, "protocol_type")
    for member in holder.each("members"):
        open_subscription(member, "metadata", protocol_type, holder.get("protocol_name"))


def _sync_request(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    for assignment in holder.each("assignments"):
        open_assignment(assignment, "assignment", holder.get("protocol_type"), holder.get("protocol_name"))


def _sync_response(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    protocol_type = holder.get("protocol_type") or _asked(exchange, "protocol_type")
    protocol = holder.get("protocol_name") or _asked(exchange, "protocol_name")
    open_assignment(holder, "assignment", protocol_type, protocol)


def _describe_groups(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    for group in holder.each("groups"):
        protocol_type = group.get("protocol_type")
        for member in group.each("members"):
            open_subscription(member, "member_metadata", protocol_type, group.get("protocol_data"))
            open_assignment(member, "member_assignment", protocol_type, group.get("protocol_data"))


def _fetch(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    for topic in holder.each("responses"):
        name = topic.get("topic") or _named(topic.get("topic_id"), topic_name)
        if name in INTERNAL_TOPICS:
            for partition in topic.each("partitions"):
                open_batches(partition, "records", name)


def _produce(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    for topic in holder.each("topic_data"):
        name = topic.get("name") or _named(topic.get("topic_id"), topic_name)
        if name in INTERNAL_TOPICS:
            for partition in topic.each("partition_data"):
                open_batches(partition, "records", name)


def _fetch_snapshot(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    for topic in holder.each("topics"):
        name = topic.get("name")
        if name in INTERNAL_TOPICS:
            for partition in topic.each("partitions"):
                open_batches(partition, "unaligned_records", name)


def _envelope_request(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    open_enveloped_request(holder)


def _envelope_response(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    open_enveloped_response(holder, forwarded(exchange))


def _push_telemetry(holder: Holder, exchange: Exchange, topic_name: TopicNames) -> None:
    open_metrics(holder)


OPENERS: dict[tuple[int, str], Opener] = {
    (PRODUCE, "request"): _produce,
    (FETCH, "response"): _fetch,
    (JOIN_GROUP, "request"): _join_request,
    (JOIN_GROUP, "response"): _join_response,
    (SYNC_GROUP, "request"): _sync_request,
    (SYNC_GROUP, "response"): _sync_response,
    (DESCRIBE_GROUPS, "response"): _describe_groups,
    (ENVELOPE, "request"): _envelope_request,
    (ENVELOPE, "response"): _envelope_response,
    (FETCH_SNAPSHOT, "response"): _fetch_snapshot,
    (PUSH_TELEMETRY, "request"): _push_telemetry,
}


def _has_internal_topic(array: str, field: str) -> Callable[[Body, TopicNames], bool]:
    def has_internal_topic(body: Body, topic_name: TopicNames) -> bool:
        for topic in body.get(array) or ():
            name = topic.get(field)
            if name is None:
                name = _named(topic.get("topic_id"), topic_name)
            if name in INTERNAL_TOPICS:
                return True
        return False

    return has_internal_topic


#: Nearly all of these messages are about users' topics, which a look at the names tells at less cost than trying each
#: one (8 % of decoding captures of single records). Whether ``body`` has something to open or to conceal.
QUICK_LOOKS: dict[tuple[int, str], Callable[[Body, TopicNames], bool]] = {
    (PRODUCE, "request"): _has_internal_topic("topic_data", "name"),
    (FETCH, "response"): _has_internal_topic("responses", "topic"),
}


def forwarded(exchange: Exchange) -> RequestHeader | None:
    """The header of the request inside an Envelope; read from the frame, since the body may be without it by now."""
    request = exchange.request
    if exchange.api_key != ENVELOPE or request is None or request.frame is None:
        return None
    try:
        body, _ = codec.decoder(ENVELOPE, _version(exchange, request), "request")(
            request.frame, request.body_offset, []
        )
    except KwiresniffError:
        return None
    return enveloped_header(body["request_data"])


def forwarded_answer(exchange: Exchange) -> tuple[RequestHeader, bytes] | None:
    """The header and the frame of the answer inside an Envelope, read from the frame."""
    header, response = forwarded(exchange), exchange.response
    if header is None or response is None or response.frame is None:
        return None
    try:
        body, _ = codec.decoder(ENVELOPE, _version(exchange, response), "response")(
            response.frame, response.body_offset, []
        )
        raw = body["response_data"]
        return (answer_header(raw, header), raw) if raw else None
    except KwiresniffError:
        return None


def _version(exchange: Exchange, message: Message) -> int:
    """What the message is read as, or was asked in while nobody has read it."""
    return message.version if message.version >= 0 else exchange.api_version


def _asked(exchange: Exchange, name: str) -> Any:
    """What the request said."""
    body = exchange.request.body if exchange.request is not None else None
    return body.get(name) if body else None


def _named(topic_id: Any, topic_name: TopicNames) -> str | None:
    if not isinstance(topic_id, str):
        return None
    return METADATA_TOPIC if topic_id == METADATA_TOPIC_ID else topic_name(topic_id)
