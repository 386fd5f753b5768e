"""What analysis found: the nouns that it hands to whoever shows or writes them.

Ready data without behaviour. Packet references are as in ``kwiresniff.model``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kwiresniff.model import Problem


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """A latency distribution in numbers, all in nanoseconds.

    Percentiles are within 1 % of a measured value; ``count``, ``min_ns``, ``mean_ns`` and ``max_ns`` are exact.
    ``buckets`` is for drawing: ``(upper_bound_ns, count)`` in steps of 1, 2, 5 from the lowest to the highest one
    that is not empty, without holes.
    """

    count: int
    min_ns: int
    mean_ns: int
    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    buckets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class StatRow:
    """One row of a statistics table.

    ``by`` are the names of the table's dimensions (``api``, ``client``, ``topic``, ``broker``, ``connection``) and
    ``key`` this row's value for each of them. ``errors`` counts exchanges with at least one error code,
    ``unanswered`` requests that should have been answered and were not. Bytes are frame sizes without the 4-byte
    length. ``latency`` covers the exchanges that were answered at once, ``waiting`` by its reason (``long poll``,
    ``rebalance``, ``throttled``) those where the broker held the answer back on purpose.
    """

    by: tuple[str, ...]
    key: tuple[str, ...]
    count: int
    errors: int
    unanswered: int
    request_bytes: int
    response_bytes: int
    latency: LatencySummary | None
    waiting: tuple[tuple[str, LatencySummary], ...] = ()


@dataclass(frozen=True, slots=True)
class ApiUse:
    """One version of an API as one client used it.

    ``packet`` is the reference of the first request's first packet (of the response's where only that was seen),
    ``first_ns`` its time.
    """

    api: str
    api_key: int
    version: int
    count: int
    errors: int
    packet: int
    first_ns: int


@dataclass(frozen=True, slots=True)
class Client:
    """Who talks to a broker: one client id from one address to one broker, with one software and identity.

    ``address`` is without the port. ``software`` is what the client called itself (KIP-511), ``(name, version)``, and
    ``(None, None)`` when it did not. ``negotiates`` tells whether it asks for ApiVersions before it picks versions;
    None when the beginning of its connections is not in the capture. ``offered`` holds the versions its broker said
    it can, ``api_key -> (lowest, highest)``, empty when that was not seen. ``kind`` is ``client``, ``broker`` for
    nodes of the cluster that talk to each other, or ``encrypted`` for TLS that was not decrypted.
    """

    kind: str
    client_id: str | None
    address: str
    broker: str
    software: tuple[str | None, str | None]
    sasl: dict[str, Any] | None
    tls: dict[str, Any] | None
    negotiates: bool | None
    offered: dict[int, tuple[int, int]]
    uses: tuple[ApiUse, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    connections: int
    exchanges: int
    errors: int
    unanswered: int
    request_bytes: int
    response_bytes: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One use of an API that a version of Kafka does not take, or may not.

    ``breaks`` says that it will fail; else it is not known. ``offered`` are the versions of the target,
    None when it does not have the API.
    """

    use: ApiUse
    breaks: bool
    offered: tuple[int, int] | None
    reason: str


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A client and what an audit says of it: ``breaks``, ``unknown``, ``ok`` or ``not_judged``, and why."""

    client: Client
    verdict: str
    reason: str
    findings: tuple[AuditFinding, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """One family of what a monitoring system collects, with all its samples of this moment.

    ``samples`` are ``(label_values, value)``; a histogram's value is ``(counts, sum)``, its counts not yet added up,
    one for each of ``bounds`` and one for what is beyond the last.
    """

    name: str
    help: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], Any]]
    bounds: tuple[float, ...] = ()


@dataclass(slots=True)
class GroupEvent:
    """Something that happened in a group, as the wire told it.

    ``protocol`` is ``classic``, ``consumer``, ``share`` or ``streams``. ``event`` is ``join``, ``assigned``, ``epoch``,
    ``leave``, ``commit``, ``rejoin`` or ``error``; ``details`` is JSON-ready and depends on it. ``generation`` is the
    generation or the member epoch, None when it was not told. ``timestamp_ns`` and ``packet`` are those of the request;
    of commits in a row, which are one event, those of the first.
    """

    group: str
    protocol: str
    event: str
    timestamp_ns: int
    packet: int
    client_id: str | None
    client: str
    broker: str
    member_id: str
    instance_id: str | None
    generation: int | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or will be, and what to do about it.

    ``severity`` is ``error``, ``warning`` or ``info``; ``subject`` is whom it concerns (a client, group, topic, broker
    or connection). ``evidence`` are ``(packet reference, timestamp_ns)`` of the first occurrences; ``numbers`` is
    JSON-ready.
    """

    code: str
    severity: str
    subject: str
    title: str
    remedy: str
    count: int
    evidence: tuple[tuple[int, int], ...]
    numbers: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A slice of time, from ``start_ns`` on for ``width_ns``, and what requests began in it.

    Latencies are those of exchanges that the broker did not hold back on purpose, None when there were none. Bytes are
    frame sizes.
    """

    start_ns: int
    width_ns: int
    ok: int
    errors: int
    unanswered: int
    request_bytes: int
    response_bytes: int
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a report shows. What was too much for a page is counted in ``left_out`` by what it is."""

    title: str
    files: tuple[str, ...]
    exchanges: int
    errors: int
    unanswered: int
    connections: int
    first_ns: int | None
    last_ns: int | None
    series: tuple[SeriesPoint, ...]
    findings: tuple[Finding, ...]
    stats: tuple[tuple[str, tuple[StatRow, ...]], ...]
    clients: tuple[Client, ...]
    group_events: tuple[GroupEvent, ...]
    problems: tuple[Problem, ...]
    left_out: dict[str, int]
