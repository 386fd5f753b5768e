"""Producers as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, of_cluster, packet_json, span_json
from kwiresniff.export.times import rfc3339
from kwiresniff.results.producers import Fencing, Producer, Transaction


def producer_json(producer: Producer, files: Sequence[str] = ()) -> Json:
    """A producer id with everything that is known of it; ``files`` names the captures when there are several."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "producer",
        "producer_id": producer.producer_id,
        "transactional_id": producer.transactional_id,
        **of_cluster(producer.cluster),
        "transaction_timeout_ms": producer.timeout_ms,
        "clients": list(producer.clients),
        "first_epoch": producer.epochs[0],
        "last_epoch": producer.epochs[1],
        "batches": producer.batches,
        "records": producer.records,
        "partitions": producer.partitions,
        "missing_records": sum(flaw.missing_records for flaw in producer.flaws),
        "duplicate_batches": sum(flaw.duplicate_batches for flaw in producer.flaws),
        "reused_sequences": sum(flaw.reused_sequences for flaw in producer.flaws),
        "flaws": [
            {
                "partition": flaw.partition,
                "missing_records": flaw.missing_records,
                "duplicate_batches": flaw.duplicate_batches,
                "reused_sequences": flaw.reused_sequences,
            }
            for flaw in producer.flaws
        ],
        "errors": [{"name": name, "count": count} for name, count in producer.errors],
        "transaction_counts": dict(producer.ended),
        "longest_transaction_ns": producer.longest_ns,
        "transactions": [_transaction(one, files) for one in producer.transactions],
        "fenced": [_fencing(one, files) for one in producer.fencings],
        **span_json(producer.first_ns, producer.last_ns),
    }


def _transaction(one: Transaction, files: Sequence[str]) -> Json:
    known = one.begin_ns is not None and one.end_ns is not None
    return {
        "producer_epoch": one.epoch,
        "state": one.state,
        "ended_by": one.by or None,
        "begin_time": None if one.begin_ns is None else rfc3339(one.begin_ns),
        "begin_timestamp_ns": one.begin_ns,
        "end_time": None if one.end_ns is None else rfc3339(one.end_ns),
        "end_timestamp_ns": one.end_ns,
        "duration_ns": (one.end_ns or 0) - (one.begin_ns or 0) if known else None,
        "partitions": list(one.partitions),
        "groups": list(one.groups),
        "records": one.records,
        **packet_json(one.packet, files),
    }


def _fencing(one: Fencing, files: Sequence[str]) -> Json:
    return {
        "time": rfc3339(one.timestamp_ns),
        "timestamp_ns": one.timestamp_ns,
        "client": one.client,
        "producer_epoch": one.epoch,
        "by_client": one.by_client or None,
        "by_producer_epoch": one.by_epoch if one.by_epoch >= 0 else None,
        "error": one.error,
        **packet_json(one.packet, files),
    }
