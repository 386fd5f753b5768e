"""Hand-built exchanges for tests of everything that comes after decoding."""

from __future__ import annotations

from typing import Any

from kwiresniff.model import Connection, Exchange, FetchedTopics, Message, SessionIdentity, SessionMembers

#: 2023-11-14T22:13:20Z.
START_NS = 1_700_000_000_000_000_000


def connection(id: int = 1, client: str = "10.0.0.5:50000", broker: str = "10.0.0.1:9092") -> Connection:
    """A connection with its endpoints."""
    return Connection(id, client, broker)


def exchange(
    api: str = "Fetch",
    api_key: int = 1,
    api_version: int = 12,
    *,
    client_id: str | None = "billing-1",
    correlation_id: int = 7,
    request: dict[str, Any] | None = None,
    response: dict[str, Any] | None = None,
    latency_ns: int | None = 1_000_000,
    request_bytes: int = 100,
    response_bytes: int = 2_000,
    start_ns: int = START_NS,
    on: Connection | None = None,
    **more: Any,
) -> Exchange:
    """An exchange whose request starts at ``start_ns`` and takes 10 us, its response 20 us after ``latency_ns``.

    ``latency_ns=None`` leaves the response out; with it, all of the wait is the broker's own time, or all of it was
    held back where ``waiting`` is among ``more``, which sets further attributes (``outcome``, ``errors``, ...).
    """
    asked = Message(1, start_ns, 2, start_ns + 10_000, request_bytes, None)
    asked.header_version, asked.body = 2, request
    answered = None
    if latency_ns is not None:
        first_ns = start_ns + 10_000 + latency_ns
        answered = Message(3, first_ns, 5, first_ns + 20_000, response_bytes, None)
        answered.header_version, answered.body = 1, response
    built = Exchange(on or connection(), api_key, api_version, correlation_id, client_id, asked, answered)
    built.api = api
    if answered is not None:
        built.queued = 0
        built.held = (latency_ns or 0) if more.get("waiting") else 0
    for name, value in more.items():
        setattr(built, name, value)
    return built


def produced(
    batches: list[dict[str, Any]], *, topic: str = "orders", index: int = 0, acks: int = -1, offset: int | None = None,
    **more: Any,
) -> Exchange:  # fmt: skip
    """A Produce to one partition; its answer has the offset of the first record, if one is given."""
    asked = [{"name": topic, "partition_data": [{"index": index, "records": batches}]}]
    answer = [{"name": topic, "partition_responses": [{"index": index, "error_code": 0, "base_offset": offset}]}]
    response = {"responses": [] if offset is None else answer}
    return exchange("Produce", 0, 9, **{"request": {"acks": acks, "topic_data": asked}, "response": response, **more})


def fetched(
    batches: list[dict[str, Any]], *, topic: str = "orders", index: int = 0, offset: int | None = None,
    high_watermark: int | None = None, **more: Any,
) -> Exchange:  # fmt: skip
    """A consumer's Fetch from one partition; without an ``offset`` it does not name the partition, as in a session."""
    asked = [] if offset is None else [{"topic": topic, "partitions": [{"partition": index, "fetch_offset": offset}]}]
    part = {"partition_index": index, "error_code": 0, "records": batches}
    if high_watermark is not None:
        part["high_watermark"] = high_watermark
    response = {"responses": [{"topic": topic, "partitions": [part]}]}
    return exchange(**{"request": {"replica_id": -1, "topics": asked}, "response": response, **more})


def committed(offset: int, *, index: int = 0, member: dict[str, Any] | None = None, **more: Any) -> Exchange:
    """An OffsetCommit of one partition of ``orders``; ``member`` has the other fields of its request."""
    topics = [{"name": "orders", "partitions": [{"partition_index": index, "committed_offset": offset}]}]
    body = {**(member or {}), "topics": topics}
    return exchange(**{"api": "OffsetCommit", "api_key": 8, "api_version": 8, "request": body,
                       "response": {"topics": []}, **more})  # fmt: skip


def fetched_topics(
    names: list[str], numbers: list[int] | None = None, *, session: SessionIdentity | None = None
) -> FetchedTopics:
    """What a fetch is about by its session, which began in the capture; a session of its own unless one is given."""
    topics, partitions = (
        SessionMembers(list(given), [True] * len(given), len(given)) for given in (names, numbers or [0])
    )
    return FetchedTopics(session or SessionIdentity(), topics, partitions, is_whole=True)
