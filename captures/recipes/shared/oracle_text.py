"""The request log of brokers before 2.7, which do not write JSON: a line of text for each request, in three manners.

0.8 names the request's class and its members, 0.10 prints the header and the body field by field, 1.0 and newer also
the response. The header is taken apart; a body stays the text that the broker wrote, for a test to compare. A response
that was given but is not in the log is an empty text, one that was not given is None.
"""

from __future__ import annotations

import re
from typing import Any

COMPLETED = re.compile(
    r"^Completed request:(?P<said>.*) from (?:client|connection) (?P<where>\S+?);totalTime:(?P<ms>[\d.]+),"
)
#: Where a file of records lies on the machine that recorded.
LOG_FOLDER = re.compile(r"(?<=\(file= )/\S*/(?=[^/]+/[^/]+\.log,)")
#: 0.8, and ControlledShutdown until 0.11.
NAMED = re.compile(r"^Name: ?(?P<name>\w+?)Request; ?Version: ?(?P<version>\d+);(?P<rest>.*)", re.DOTALL)
NUMBERED = re.compile(
    r"^\{api_key=(?P<key>\d+),api_version=(?P<version>\d+),correlation_id=(?P<id>\d+),client_id=(?P<client>.*?)\} -- "
)
HEADED = re.compile(
    r"^RequestHeader\(apiKey=(?P<name>\w+), apiVersion=(?P<version>\d+), clientId=(?P<client>.*?), "
    r"correlationId=(?P<id>-?\d+)\) -- "
)
CONNECTION = re.compile(r"^(?P<broker>[\d.]+:\d+)-(?P<client>[\d.]+:\d+)(-\d+)*$")

#: A producer that wants no answer, in either manner.
NO_ANSWER = re.compile(r"RequiredAcks: 0;|^\{acks=0,|[{,]acks=0,")

#: The official names by key, as far as the brokers that write such logs go.
NAMES = [
    "PRODUCE",
    "FETCH",
    "LIST_OFFSETS",
    "METADATA",
    "LEADER_AND_ISR",
    "STOP_REPLICA",
    "UPDATE_METADATA",
    "CONTROLLED_SHUTDOWN",
    "OFFSET_COMMIT",
    "OFFSET_FETCH",
    "FIND_COORDINATOR",
    "JOIN_GROUP",
    "HEARTBEAT",
    "LEAVE_GROUP",
    "SYNC_GROUP",
    "DESCRIBE_GROUPS",
    "LIST_GROUPS",
    "SASL_HANDSHAKE",
    "API_VERSIONS",
    "CREATE_TOPICS",
    "DELETE_TOPICS",
    "DELETE_RECORDS",
    "INIT_PRODUCER_ID",
    "OFFSET_FOR_LEADER_EPOCH",
    "ADD_PARTITIONS_TO_TXN",
    "ADD_OFFSETS_TO_TXN",
    "END_TXN",
    "WRITE_TXN_MARKERS",
    "TXN_OFFSET_COMMIT",
    "DESCRIBE_ACLS",
    "CREATE_ACLS",
    "DELETE_ACLS",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "ALTER_REPLICA_LOG_DIRS",
    "DESCRIBE_LOG_DIRS",
    "SASL_AUTHENTICATE",
    "CREATE_PARTITIONS",
    "CREATE_DELEGATION_TOKEN",
    "RENEW_DELEGATION_TOKEN",
    "EXPIRE_DELEGATION_TOKEN",
    "DESCRIBE_DELEGATION_TOKEN",
    "DELETE_GROUPS",
    "ELECT_LEADERS",
    "INCREMENTAL_ALTER_CONFIGS",
]
#: What the log calls otherwise: 0.8's classes, and names that were changed since.
OLDER = {
    "Producer": "PRODUCE",
    "Fetch": "FETCH",
    "Offset": "LIST_OFFSETS",
    "TopicMetadata": "METADATA",
    "LeaderAndIsr": "LEADER_AND_ISR",
    "StopReplica": "STOP_REPLICA",
    "UpdateMetadata": "UPDATE_METADATA",
    "ControlledShutdown": "CONTROLLED_SHUTDOWN",
    "OffsetCommit": "OFFSET_COMMIT",
    "OffsetFetch": "OFFSET_FETCH",
    "ConsumerMetadata": "FIND_COORDINATOR",
    "ELECT_PREFERRED_LEADERS": "ELECT_LEADERS",
}


def parse(line: str, broker: str) -> dict[str, Any] | None:
    """One line of the log as a row, or None when it does not end a request. ``broker`` is whose log it is."""
    completed = COMPLETED.match(LOG_FOLDER.sub("", line))
    if completed is None:
        return None
    said, where = completed["said"], completed["where"]
    ends = CONNECTION.match(where)
    header, request, response = named(said) or printed(said)
    if NO_ANSWER.search(request) and header["api"] == "PRODUCE":
        response = None
    return header | {
        "client": ends["client"] if ends else where.lstrip("/"),
        "broker": ends["broker"] if ends else broker,
        "total_ms": float(completed["ms"]),
        "request": request,
        "response": response,
    }


def named(said: str) -> tuple[dict[str, Any], str, str] | None:
    """A request by its class: its members stand behind their names, those of the header too."""
    match = NAMED.match(said)
    if match is None:
        return None
    rest = match["rest"]
    correlation_id = re.search(r"CorrelationId: ?(-?\d+)", rest)
    client = re.search(r"ClientId: ?(?:Some\((?P<some>.*?)\)|(?P<none>None)|(?P<plain>[^;]*))(?:;|$)", rest)
    assert correlation_id is not None
    client_id = None if client is None or client["none"] else client["some"] or client["plain"]
    name = OLDER[match["name"]]
    return heading(name, match["version"], correlation_id[1], client_id), rest, ""


def printed(said: str) -> tuple[dict[str, Any], str, str]:
    """A request by its fields: header, body, and behind them the response, when the log has it."""
    match = NUMBERED.match(said) or HEADED.match(said)
    if match is None:
        raise ValueError(f"a request in a manner of its own: {said[:200]}")
    body, _, response = said[match.end() :].partition(",response:")
    groups = match.groupdict()
    name = NAMES[int(groups["key"])] if "key" in groups else OLDER.get(groups["name"], groups["name"])
    client_id = None if groups["client"] == "null" else groups["client"]
    return heading(name, groups["version"], groups["id"], client_id), body, response


def heading(name: str, version: str, correlation_id: str, client_id: str | None) -> dict[str, Any]:
    return {
        "api_key": NAMES.index(name),
        "api": name,
        "api_version": int(version),
        "correlation_id": int(correlation_id),
        "client_id": client_id,
    }


def without_repeats(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without those that a broker of 1.0 or newer wrote twice, as the connection closed on its last answer."""
    seen = set()
    kept = []
    for row in rows:
        said = (row["client"], row["broker"], row["api_key"], row["correlation_id"], row["request"], row["response"])
        if not row["response"] or said not in seen:
            kept.append(row)
        seen.add(said)
    return kept
