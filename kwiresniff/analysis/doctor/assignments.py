"""The partitions that members of consumer groups are assigned, from SyncGroup and ConsumerGroupHeartbeat."""

from __future__ import annotations

from kwiresniff.base.api_keys import CONSUMER_GROUP_HEARTBEAT, SYNC_GROUP
from kwiresniff.base.body_members import DECODED
from kwiresniff.model import Body


def assignment_in(api_key: int, answer: Body) -> list[Body] | None:
    """The topics with partitions that an answer assigns; None where it has no assignment of a consumer."""
    if api_key == SYNC_GROUP:
        return opened_assignment(answer)
    assignment = answer.get("assignment") if api_key == CONSUMER_GROUP_HEARTBEAT else None
    topics: list[Body] | None = assignment.get("topic_partitions") if isinstance(assignment, dict) else None
    return topics


def opened_assignment(body: Body) -> list[Body] | None:
    """The topics with partitions in the assignment of a classic member, in its own answer or in its leader's request;
    None where there is none of a consumer."""
    opened = body.get(f"assignment{DECODED}")
    data = opened.get("data") if isinstance(opened, dict) else None
    # With user data the member may have other work, as standby tasks of Kafka Streams.
    if not isinstance(data, dict) or (data.get("user_data") and body.get("protocol_name") in (None, "stream")):
        return None
    topics: list[Body] | None = data.get("assigned_partitions")
    return topics


def partitions_of(topics: list[Body]) -> int:
    """How many partitions are assigned."""
    return sum(len(topic.get("partitions") or ()) for topic in topics)
