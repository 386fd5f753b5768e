"""Events as JSON-ready dicts, ``schema_version`` 1.

Pure functions: model objects in, plain dicts out, members in the order users see them. The one thing left to the
encoder is ``bytes`` inside bodies, see ``kwiresniff.export.encode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from kwiresniff.base.address_names import Name
from kwiresniff.export.times import rfc3339
from kwiresniff.model import Connection, Direction, Event, Exchange, Message, Problem, file_index, packet_number
from kwiresniff.results.stats import LatencySummary, StatRow

SCHEMA_VERSION = 1

Json = dict[str, Any]


def event_json(event: Event, files: Sequence[str] = ()) -> Json:
    """Any of the things ``analyze`` yields as its JSON object."""
    if isinstance(event, Exchange):
        return exchange_json(event, files)
    if isinstance(event, Connection):
        return connection_json(event)
    assert isinstance(event, Problem)  # attempts come only to sinks that ask for them
    return problem_json(event, files)


def exchange_json(exchange: Exchange, files: Sequence[str] = ()) -> Json:
    """A request and its response.

    ``files`` are the captures in reading order; with more than one, each message names the file its first packet
    is in. ``bytes`` in bodies stay ``bytes``. ``notes`` is there only when a plugin had something to say, ``proxied``
    only behind a proxy's preamble.
    """
    request, response, connection = exchange.request, exchange.response, exchange.connection
    latency_ns = exchange.latency_ns
    timing: Json = {
        "request_ns": None if request is None else request.last_ns - request.first_ns,
        "wait_ns": latency_ns,
        "response_ns": None if response is None else response.last_ns - response.first_ns,
        "queued_ns": exchange.queued_ns,
        "held_ns": exchange.held_ns,
        **({"path_ns": exchange.path} if exchange.path else {}),
        "broker_ns": exchange.broker_ns,
    }
    result: Json = {
        "schema_version": SCHEMA_VERSION,
        "kind": "exchange",
        "connection": connection.id,
        "client": connection.client,
        "broker": connection.broker,
        **proxied_json(connection),
        "api_key": exchange.api_key,
        "api": exchange.api,
        "api_version": exchange.api_version,
        "correlation_id": exchange.correlation_id,
        "client_id": exchange.client_id,
        "outcome": exchange.outcome,
        "latency_ns": latency_ns,
        "timing": timing,
        "request": None if request is None else message_json(request, files),
        "response": None if response is None else message_json(response, files),
        "errors": errors_json(exchange),
        "problems": [frame_problem_json(problem) for problem in exchange.problems],
    }
    if exchange.notes:
        result["notes"] = list(exchange.notes)
    return result


def proxied_json(connection: Connection) -> Json:
    """The member ``proxied``, where a proxy's preamble names client or broker."""
    return {} if connection.proxied is None else {"proxied": connection.proxied}


def errors_json(exchange: Exchange) -> list[Json]:
    """Every error code of a response that is not zero."""
    return [
        {"path": path, "code": code, "name": name, "retriable": retriable}
        for path, code, name, retriable in exchange.errors
    ]


def message_json(message: Message, files: Sequence[str]) -> Json:
    """One frame: when, in which packets, how big, what it says."""
    result: Json = {"time": rfc3339(message.first_ns), "timestamp_ns": message.first_ns}
    if len(files) > 1:
        result["file"] = file_name(message.first_packet, files)
    result["first_packet"] = packet_number(message.first_packet)
    result["last_packet"] = packet_number(message.last_packet)
    result["size_bytes"] = message.size_bytes
    result["header_version"] = message.header_version
    result["body"] = message.body if message.text is None else orjson.loads(b"".join(message.text))
    return result


def single_json(exchange: Exchange, direction: Direction) -> Json:
    """One message by itself, as ``decode`` reads it."""
    message: Message = getattr(exchange, direction)
    header: Json | None = None
    if message.header_version >= 0:
        header = {"header_version": message.header_version, "correlation_id": exchange.correlation_id}
        if direction == "request":
            header["client_id"] = exchange.client_id
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "message",
        "api_key": exchange.api_key,
        "api": exchange.api,
        "api_version": exchange.api_version,
        "direction": direction,
        "size_bytes": message.size_bytes,
        "header": header,
        "body": message.body,
        "errors": errors_json(exchange),
        "problems": [frame_problem_json(problem) for problem in exchange.problems],
    }


def connection_json(connection: Connection) -> Json:
    """A connection that has ended, or was still open when the capture did."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "connection",
        "connection": connection.id,
        "client": connection.client,
        "broker": connection.broker,
        **proxied_json(connection),
        **_other_view(connection),
        "protocol": connection.protocol,
        **span_json(connection.first_ns, connection.last_ns),
        "bytes": _each_way(connection.bytes),
        "packets": _each_way(connection.packets),
        "retransmits": _each_way(connection.retransmits),
        **_second_point(connection),
        "skipped_bytes": _each_way(connection.skipped_bytes),
        "handshake_seen": connection.handshake_seen,
        "handshake_rtt_ns": connection.handshake_rtt_ns,
        "client_software": connection.client_software,
        "sasl": connection.sasl and _sasl(connection.sasl),
        "tls": connection.tls,
        "exchanges": dict(connection.exchanges),
    }


def _other_view(connection: Connection) -> Json:
    """The members of a connection that is another view of one."""
    if connection.copy_of is None:
        return {}
    return {"copy_of": connection.copy_of, "via": connection.via, "apart_ns": connection.apart_ns}


def _second_point(connection: Connection) -> Json:
    """The member ``captured_twice``, where the capture has the connection from two capture points."""
    if not connection.is_twice:
        return {}
    return {"captured_twice": {"packets": connection.captured_twice, "later_ns": connection.later_ns}}


def _sasl(facts: Json) -> Json:
    """The facts of an authentication, with each time in RFC 3339 beside its nanoseconds."""
    made = dict(facts)
    for name, time in (("timestamp_ns", "time"), ("token_expiry_ns", "token_expiry")):
        if facts.get(name) is not None:
            made[time] = rfc3339(facts[name])
        elif name in facts:
            made[time] = None
    if "authentications" in facts:
        made["authentications"] = [_sasl(one) for one in facts["authentications"]]
    return made


def problem_json(problem: Problem, files: Sequence[str] = ()) -> Json:
    """A problem outside of exchanges; its details become members."""
    result: Json = {
        "schema_version": SCHEMA_VERSION,
        "kind": "problem",
        "code": problem.code,
        "message": problem.message,
        "offset": problem.offset,
        "path": problem.path,
    }
    if problem.packet is not None:
        if len(files) > 1 and "file" not in (problem.details or {}):
            result["file"] = file_name(problem.packet, files)
        result["packet"] = packet_number(problem.packet)
    if problem.timestamp_ns is not None:
        result["time"] = rfc3339(problem.timestamp_ns)
        result["timestamp_ns"] = problem.timestamp_ns
    return _with_details(result, problem)


def frame_problem_json(problem: Problem) -> Json:
    """A problem of an exchange."""
    code, message, offset, path, _, _, details = problem
    result: Json = {"code": code, "message": message, "offset": offset, "path": path}
    return _with_details(result, problem) if details else result


def _with_details(result: Json, problem: Problem) -> Json:
    """Adds the details; a member that is there already is never replaced."""
    for name, value in (problem.details or {}).items():
        result.setdefault(name, value)
    return result


def _each_way(pair: Sequence[int]) -> Json:
    return {"to_broker": pair[0], "to_client": pair[1]}


def file_name(reference: int, files: Sequence[str]) -> str | None:
    """The capture a packet reference points into."""
    index = file_index(reference)
    return files[index] if index < len(files) else None


def stat_json(row: StatRow) -> Json:
    """A row of statistics; its dimensions are members by their own names."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "stats",
        "by": list(row.by),
        **dict(zip(row.by, row.key, strict=True)),
        **({"names": {by: names_json(names) for by, names in row.names}} if row.names else {}),
        "count": row.count,
        "errors": row.errors,
        "unanswered": row.unanswered,
        "negotiation": row.negotiation,
        "request_bytes": row.request_bytes,
        "response_bytes": row.response_bytes,
        "latency": optional_latency(row.latency),
        "waiting": {reason: latency_json(latency) for reason, latency in row.waiting},
        "queued": optional_latency(row.queued),
        "held": optional_latency(row.held),
        **({} if row.path is None else {"path": latency_json(row.path)}),
        "broker_time": optional_latency(row.broker),
        **({} if row.request_records is None else {"request_records": row.request_records}),
        **({} if row.response_records is None else {"response_records": row.response_records}),
    }


def names_json(names: Sequence[Name]) -> list[Json]:
    """The names of an address, each with its source."""
    return [{"name": one.name, "source": one.source} for one in names]


def of_cluster(cluster: str | None) -> Json:
    """The member that names a cluster, where there are several."""
    return {} if cluster is None else {"cluster": cluster}


def software_json(software: tuple[str | None, str | None]) -> Json:
    """The member with the software of a client."""
    name, version = software
    return {"client_software": None if name is None else {"name": name, "version": version or ""}}


def span_json(first_ns: int | None, last_ns: int | None) -> Json:
    """The members that say from when to when something was seen."""
    return {
        "first_time": None if first_ns is None else rfc3339(first_ns),
        "first_timestamp_ns": first_ns,
        "last_time": None if last_ns is None else rfc3339(last_ns),
        "last_timestamp_ns": last_ns,
    }


def packet_json(packet: int, files: Sequence[str], name: str = "packet") -> Json:
    """The members with the number of a packet, and its file where there are several."""
    return {**({"file": file_name(packet, files)} if len(files) > 1 else {}), name: packet_number(packet)}


def optional_latency(latency: LatencySummary | None) -> Json | None:
    """A latency that may not have been seen."""
    return None if latency is None else latency_json(latency)


def latency_json(latency: LatencySummary) -> Json:
    return {
        "count": latency.count,
        "min_ns": latency.min_ns,
        "mean_ns": latency.mean_ns,
        "p50_ns": latency.p50_ns,
        "p90_ns": latency.p90_ns,
        "p95_ns": latency.p95_ns,
        "p99_ns": latency.p99_ns,
        "max_ns": latency.max_ns,
        "histogram": [{"below_ns": bound_ns, "count": count} for bound_ns, count in latency.buckets],
    }
