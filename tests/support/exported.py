"""What ``kwiresniff export`` says about captures, in the form in which the pipeline's rows can be held against it."""

from __future__ import annotations

import json
import lzma
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest

from kwiresniff.cli.main import main
from kwiresniff.export.times import rfc3339
from tests.support.paths import CAPTURES

Json = dict[str, Any]


def recorded() -> list[Path]:
    """Every capture in the repository."""
    found = sorted(path for path in CAPTURES.iterdir() if ".pcap" in path.name)
    assert len(found) > 30
    return found


def export(target: Path, *captures: Path, options: Sequence[str] = ()) -> list[Json]:
    """The objects that ``kwiresniff export`` writes."""
    with pytest.raises(SystemExit) as ended:
        main(["export", *map(str, captures), "-O", str(target), "-q", *options])
    assert ended.value.code == 0
    return [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]


def exchanges(objects: Iterable[Json]) -> list[Json]:
    return [value for value in objects if value["kind"] == "exchange"]


def details_of(row: Mapping[str, Any]) -> Json:
    """The exported object of a connection or problem, made from its row's details."""
    details = json.loads(row["details"])
    return {"connection" if name == "connection_id" else name: value for name, value in details.items()}


def exchange_of(row: Mapping[str, Any], *, files: bool = False) -> Json:
    """The exported object of an exchange, made from its row alone."""
    has_request, has_response = row["request_timestamp_ns"] is not None, row["response_timestamp_ns"] is not None
    timing = {"request_ns": row["request_ns"], "wait_ns": row["latency_ns"], "response_ns": row["response_ns"]}
    timing |= {name: row[name] for name in ("queued_ns", "held_ns", "broker_ns")}
    return {
        "schema_version": 1,
        "kind": "exchange",
        "connection": row["connection_id"],
        **{name: row[name] for name in ("client", "broker", "api_key")},
        "api": row["api"] or "",
        **{name: row[name] for name in ("api_version", "correlation_id", "client_id", "outcome", "latency_ns")},
        "timing": timing,
        "request": _message(row, "request", files) if has_request else None,
        "response": _message(row, "response", files) if has_response else None,
        "errors": [dict(error) for error in row["errors"]],
        "problems": json.loads(row["problems"] or "[]"),
    }


def _message(row: Mapping[str, Any], direction: str, files: bool) -> Json:
    result: Json = {"time": rfc3339(row[f"{direction}_timestamp_ns"])}
    names = ["timestamp_ns", *(["file"] if files else []), "first_packet", "last_packet", "size_bytes"]
    result |= {name: row[f"{direction}_{name}"] for name in [*names, "header_version"]}
    body = row[f"{direction}_body"]
    return {**result, "body": None if body is None else json.loads(body)}


def packets(capture: bytes) -> list[bytes]:
    """Header and packets of a little-endian classic pcap file."""
    assert capture[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    parts, at = [capture[:24]], 24
    while at < len(capture):
        end = at + 16 + unpack_from("<I", capture, at + 8)[0]
        parts.append(capture[at:end])
        at = end
    return parts


def rotate(capture: Path, folder: Path, first_packets: int) -> list[Path]:
    """The capture in two files as ``tcpdump -C`` would leave it, the first with ``first_packets`` packets."""
    header, *rest = packets(capture.read_bytes())
    targets = [folder / "trace.pcap", folder / "trace.pcap1"]
    targets[0].write_bytes(b"".join([header, *rest[:first_packets]]))
    targets[1].write_bytes(b"".join([header, *rest[first_packets:]]))
    return targets


def shifted(path: Path, target: Path, shift_us: int, *, skip: int = 0, only: Iterable[int] | None = None) -> Path:
    """The capture by a clock that is ``shift_us`` ahead: from the packet ``skip`` on, or only some packets."""
    content = path.read_bytes()
    header, *rest = packets(lzma.decompress(content) if path.suffix == ".xz" else content)
    rest = rest if only is None else [rest[at] for at in only]
    unit = 1000 if header[:4] == b"\x4d\x3c\xb2\xa1" else 1
    per_second = 1_000_000 * unit
    parts = [header]
    for packet in rest[skip:]:
        seconds, fraction = struct.unpack_from("<II", packet)
        moment = seconds * per_second + fraction + shift_us * unit
        parts.append(struct.pack("<II", *divmod(moment, per_second)) + packet[8:])
    target.write_bytes(b"".join(parts))
    return target
