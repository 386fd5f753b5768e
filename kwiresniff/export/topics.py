"""Topics as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from kwiresniff.export.json_objects import (
    SCHEMA_VERSION,
    Json,
    names_json,
    of_cluster,
    optional_latency,
    software_json,
    span_json,
)
from kwiresniff.export.times import rfc3339
from kwiresniff.results.topics import Topic, TopicClient, TopicFlow


def topic_json(topic: Topic) -> Json:
    """A topic with everything that is known of it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "topic",
        "topic": topic.name,
        "topic_id": topic.topic_id,
        **of_cluster(topic.cluster),
        "produced": flow_json(topic.produced, topic.seconds),
        "consumed": flow_json(topic.consumed, topic.seconds),
        "refused": not_taken_json(topic.refused),
        "repeated": not_taken_json(topic.repeated),
        "lag": topic.lag,
        "produce_to_consume": optional_latency(topic.produce_to_consume),
        "record_age": optional_latency(topic.record_age),
        "errors": [{"name": name, "count": count} for name, count in topic.errors],
        "partitions": [
            {
                "partition": one.partition,
                "high_watermark": one.high_watermark,
                "produced": flow_json(one.produced),
                "consumed": flow_json(one.consumed),
            }
            for one in topic.partitions
        ],
        "producers": [_producer(one) for one in topic.producers],
        "consumers": [_consumer(one) for one in topic.consumers],
        "groups": [
            {
                "group": one.group,
                "lag": one.lag,
                "partitions": [
                    {"partition": partition, "committed_offset": offset, "lag": lag}
                    for partition, offset, lag in one.partitions
                ],
            }
            for one in topic.groups
        ],
        **span_json(topic.first_ns, topic.last_ns),
    }


def flow_json(flow: TopicFlow, seconds: float | None = None) -> Json:
    """Counts, and rates where the time they took is given; in no time there are none."""
    result: Json = {
        "requests": flow.requests,
        "batches": flow.batches,
        "records": flow.records,
        "bytes": flow.size_bytes,
    }
    if seconds is not None:
        result["records_per_second"] = round(flow.records / seconds, 3) if seconds else None
        result["bytes_per_second"] = round(flow.size_bytes / seconds, 3) if seconds else None
    return result


def not_taken_json(flow: TopicFlow) -> Json:
    """Counts of batches that a producer sent and no broker appended."""
    return {"batches": flow.batches, "records": flow.records, "bytes": flow.size_bytes}


def _client(client: TopicClient) -> Json:
    return {
        "client_id": client.client_id,
        **software_json(client.software),
        "principal": client.principal,
        "address": client.address,
        **({"names": names_json(client.names)} if client.names else {}),
        **flow_json(client.flow),
        "partitions": list(client.partitions),
        "errors": client.errors,
        "compression": dict(client.compression),
        "first_time": rfc3339(client.first_ns),
        "last_time": rfc3339(client.last_ns),
    }


def _producer(client: TopicClient) -> Json:
    return {
        **_client(client),
        "unanswered": client.unanswered,
        "refused": not_taken_json(client.refused),
        "repeated": not_taken_json(client.repeated),
        "acks": list(client.acks),
        "idempotent": client.idempotent,
        "transactional_ids": list(client.transactional_ids),
    }


def _consumer(client: TopicClient) -> Json:
    return {
        **_client(client),
        "role": client.role,
        "groups": list(client.groups),
        "lag": client.lag,
        "produce_to_consume": optional_latency(client.produce_to_consume),
        "record_age": optional_latency(client.record_age),
    }
