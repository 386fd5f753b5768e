"""Topics and partitions of a decoded body, as a digest of the message would have them.

For bodies that have no digest: those of other APIs than Produce and Fetch, and those with anything unusual. Of a
partition with an error code no ``offset`` counts.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from kwiresniff.analysis.record_counts import base_of, batches_in, end_of, oldest_ms_of, records_in
from kwiresniff.base.entities import PARTITION_INDEXES, TOPIC_ARRAYS, TOPIC_NAMES
from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.digest import PartitionDigest, TopicDigest
from kwiresniff.model import Body, Exchange, Message

#: By this error a broker says that it has a batch already.
DUPLICATE = "DUPLICATE_SEQUENCE_NUMBER"
_PARTITIONS = ("partition_data", "partition_responses", "partitions")
_OFFSETS = ("fetch_offset", "base_offset", "committed_offset")


def message_parts(message: Message | None) -> list[TopicDigest]:
    """The topics of a message, from its digest where it has one."""
    if message is None:
        return []
    digest = message.digest
    if digest is not None:
        return digest.parts or []
    return parts_of(message.body) if message.body else []


def parts_of(body: Body) -> list[TopicDigest]:
    """The topics of a body, without those that it does not name."""
    found: list[TopicDigest] = []
    for member in structs(body, TOPIC_ARRAYS):
        name = key_of(member)
        if name is None:
            continue
        topic = TopicDigest()
        topic.name = name
        topic.is_id = not any(isinstance(member.get(field), str) for field in TOPIC_NAMES)
        for part in structs(member, _PARTITIONS):
            index = next((part[field] for field in PARTITION_INDEXES if isinstance(part.get(field), int)), None)
            if index is not None:
                topic.partitions.append(_partition(index, part))
        found.append(topic)
    return found


def _partition(index: int, part: Body) -> PartitionDigest:
    found = PartitionDigest()
    found.index = index
    if not part.get("error_code"):
        offset = next((part[field] for field in _OFFSETS if field in part), -1)
        found.offset = offset if isinstance(offset, int) else -1
    high_watermark = part.get("high_watermark", -1)
    found.high_watermark = high_watermark if isinstance(high_watermark, int) else -1
    batches = batches_in(part)
    if batches:
        of_records = [batch for batch in batches if not batch.get("is_control")]
        found.batches = len(of_records)
        found.records = sum(map(records_in, of_records))
        found.size_bytes = sum(batch.get("size_bytes") or 0 for batch in of_records)
        found.all_bytes = sum(batch.get("size_bytes") or 0 for batch in batches)
        found.oldest_ms = min((ms for batch in of_records if (ms := oldest_ms_of(batch)) >= 0), default=-1)
        found.first_offset, found.end_offset = base_of(batches[0]), end_of(batches[-1])
        found.crc = crc if batches[0].get("magic") == 2 and isinstance(crc := batches[0].get("crc"), int) else -1
        found.codecs = [str(batch.get("compression", "none")) for batch in of_records]
        first = next((batch for batch in batches if _has_producer(batch)), None)
        if first is not None:
            found.is_idempotent = True
            sequence = first.get("base_sequence", -1)
            if sequence >= 0:
                found.producer = _producer(first["producer_id"], first.get("producer_epoch", -1), sequence)
    return found


_producer = Struct(">qhi").pack


def _has_producer(batch: Body) -> bool:
    producer_id = batch.get("producer_id", -1)
    return isinstance(producer_id, int) and producer_id >= 0


def refused_parts(exchange: Exchange, answered: list[TopicDigest]) -> dict[tuple[str, int], bool]:
    """The partitions whose batches the answer to a Produce refuses, by topic and number, each with whether that is
    because the broker has them already.
    """
    again = all(name == DUPLICATE for _, _, name, _ in exchange.errors)
    return {(topic.name, part.index): again for topic in answered for part in topic.partitions if part.offset < 0}


def structs(body: Body, names: tuple[str, ...]) -> list[Body]:
    """The structures of the first array among ``names`` that a body has."""
    for name in names:
        if isinstance(found := body.get(name), list):
            return [one for one in found if isinstance(one, dict)]
    return []


def key_of(member: Body) -> str | None:
    """The name of the topic that a structure is about, else its id."""
    for name in TOPIC_NAMES:
        if isinstance(found := member.get(name), str) and found:
            return found
    topic_id = member.get("topic_id")
    return topic_id if isinstance(topic_id, str) and topic_id != ZERO_UUID else None


def topic_of_path(body: Body, path: str) -> str | None:
    """The topic, by name or id, that the structure at or above ``responses[0].partition_responses[2].error_code`` is
    about."""
    value: Any = body
    found = None
    for step in path.split("."):
        name, _, index = step.partition("[")
        value = value.get(name) if isinstance(value, dict) else None
        if index and isinstance(value, list) and index.rstrip("]").isdecimal() and int(index[:-1]) < len(value):
            value = value[int(index[:-1])]
        if isinstance(value, dict):
            found = key_of(value) or found
    return found
