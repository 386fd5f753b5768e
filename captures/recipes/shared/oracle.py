"""What the broker itself says it was asked: its request log, cut down to one capture.

``kafka.request.logger`` at TRACE writes every request with its header, the request and response bodies as Kafka's
own JSON (record sets as their size only) and the connection. That log is independent of any decoder of ours. It does
not hold what the broker's authentication layer answers by itself: SaslHandshake, SaslAuthenticate, and ApiVersions
on a connection that is still to authenticate.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

#: ``broker:port-client:port-index``, and one more number in newer brokers; IPv6 addresses stand without brackets.
CONNECTION = re.compile(r"^(?P<broker>.+):(?P<broker_port>\d+)-(?P<client>.+):(?P<client_port>\d+)(-\d+)+$")

Row = dict[str, Any]

EXPECTED = Path(__file__).parents[2] / "expected"


def read_logs(
    logs: Sequence[Path], starts: Sequence[int], parsers: Sequence[Callable[[str], Row | None]] = ()
) -> list[Row]:
    """The rows that the brokers wrote after the given byte offsets, in the order of completion per broker."""
    rows = []
    for log, start, read_line in zip(logs, starts, parsers or [parse] * len(logs), strict=True):
        with log.open("rb") as stream:
            stream.seek(start)
            rows += [row for line in stream if (row := read_line(line.decode())) is not None]
    return rows


def parse(line: str) -> Row | None:
    """One line of the log as a row, or None for what a broker received inside an envelope from another one."""
    said = json.loads(line[line.index("{") :])
    header = said["requestHeader"]
    connection = CONNECTION.match(said["connection"])
    if said.get("isForwarded") or connection is None:
        return None
    return {
        "api_key": header["requestApiKey"],
        "api": header["requestApiKeyName"],
        "api_version": header["requestApiVersion"],
        "correlation_id": header["correlationId"],
        "client_id": header["clientId"],
        "client": endpoint(connection["client"], connection["client_port"]),
        "broker": endpoint(connection["broker"], connection["broker_port"]),
        "total_ms": said["totalTimeMs"],
        "request": said["request"],
        "response": said["response"] or None,
    }


def endpoint(ip: str, port: str) -> str:
    """An address as people write it: IPv6 shortened and in brackets."""
    address = ip_address(ip)
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def of_capture(rows: list[Row], capture: Path) -> list[Row]:
    """The rows whose connection is in the capture, by tshark's account of its TCP ports."""
    ports = tshark_fields(capture, "tcp", "tcp.srcport", "tcp.dstport")
    seen = {frozenset(pair) for pair in ports}
    return [r for r in rows if frozenset((r["client"].rpartition(":")[2], r["broker"].rpartition(":")[2])) in seen]


def tshark_fields(capture: Path, display_filter: str, *fields: str, options: Sequence[str] = ()) -> list[list[str]]:
    """One list of texts per packet that matches the filter."""
    command = ["tshark", "-r", str(capture), *options, "-Y", display_filter, "-T", "fields"]
    for name in fields:
        command += ["-e", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def path_for(capture: Path) -> Path:
    return EXPECTED / f"{capture.name}.jsonl.gz"


def read(capture: Path) -> list[Row]:
    """The rows that are kept beside a capture."""
    return [json.loads(line) for line in gzip.decompress(path_for(capture).read_bytes()).decode().splitlines()]


def write(rows: list[Row], capture: Path) -> None:
    """Keep the rows beside the capture, one JSON object a line, compressed without a time stamp."""
    write_to(rows, path_for(capture))


def write_to(rows: list[Row], target: Path) -> None:
    """Writes rows of JSON to ``target``, compressed; equal rows make equal bytes."""
    target.parent.mkdir(exist_ok=True)
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
