"""Responses that the request log is silent about, which is so before 1.0: read by Kafka's own classes of the time.

Their bytes come from the capture by way of tshark's account of TCP, cut by length and paired by correlation id.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path
from struct import unpack_from

from captures.recipes.shared import oracle, rig, zookeeper

#: Client and broker, as a row of the oracle has them.
Ends = tuple[str, str]


def fill(rows: list[oracle.Row], capture: Path, reader: str, work: Path) -> None:
    """Put the text of each response that the log does not have, and the capture has, into its row.

    ``reader`` is the release of Kafka that reads them.
    """
    answers = responses(capture)
    wanted: list[tuple[oracle.Row, bytes]] = []
    for row in rows:
        if row["response"] == "":
            waiting = answers[row["client"], row["broker"]].get(row["correlation_id"])
            if waiting:
                wanted.append((row, waiting.pop(0)))
    lines = "".join(f"{row['api_key']} {row['api_version']} {body.hex()}\n" for row, body in wanted)
    source = rig.HERE / "kafka" / "Responses.java"
    command = ["java", "-cp", f"{zookeeper.jars(reader, work)}/*", str(source)]
    done = subprocess.run(command, input=lines, text=True, check=True, stdout=subprocess.PIPE)
    for (row, _), text in zip(wanted, done.stdout.splitlines(), strict=True):
        row["response"] = text


def responses(capture: Path) -> defaultdict[Ends, dict[int, list[bytes]]]:
    """The bodies that brokers sent, by connection and correlation id, in the order of the stream."""
    found: defaultdict[Ends, dict[int, list[bytes]]] = defaultdict(dict)
    for (source, target), stream in streams(capture).items():
        at = 0
        while len(stream) - at >= 4:
            (size,) = unpack_from(">i", stream, at)
            end = at + 4 + size
            if not at + 4 <= end <= len(stream):
                break  # a connection that ended early
            if size >= 4:  # a bare SASL token may be shorter
                (correlation_id,) = unpack_from(">i", stream, at + 4)
                found[target, source].setdefault(correlation_id, []).append(stream[at + 8 : end])
            at = end
    return found


def streams(capture: Path) -> dict[Ends, bytes]:
    """What each side sent, by source and destination, without what was sent twice; ports are not used again."""
    names = ("ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq", "tcp.payload")
    pieces: defaultdict[Ends, dict[int, bytes]] = defaultdict(dict)
    for source_ip, source, target_ip, target, sequence, payload in oracle.tshark_fields(capture, "tcp.len > 0", *names):
        ends = (f"{source_ip}:{source}", f"{target_ip}:{target}")
        pieces[ends].setdefault(int(sequence), bytes.fromhex(payload))
    made = {}
    for ends, parts in pieces.items():
        stream = bytearray()
        first = min(parts)
        for sequence in sorted(parts):
            start = sequence - first
            if start > len(stream):
                break
            stream[start:] = parts[sequence]
        made[ends] = bytes(stream)
    return made
