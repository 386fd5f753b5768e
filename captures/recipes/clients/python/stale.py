"""A client that never refreshes its metadata: it goes on fetching from a broker that does not lead the partition.

Usage: stale.py BOOTSTRAP TOPIC SECONDS. Fetch v4 is written by hand, because no client library of today behaves so.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

FETCH, METADATA = 1, 3


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def ask(connection: socket.socket, api_key: int, version: int, number: int, body: bytes) -> bytes:
    """One request and its answer's body."""
    frame = struct.pack(">hhi", api_key, version, number) + text("old-dashboard") + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    size = struct.unpack(">i", exactly(connection, 4))[0]
    return exactly(connection, size)[4:]


def exactly(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += connection.recv(size - len(got))
    return got


def main() -> None:
    bootstrap, topic, seconds = sys.argv[1:]
    addresses = [(one.rpartition(":")[0], int(one.rpartition(":")[2])) for one in bootstrap.split(",")]
    fetch = struct.pack(">iiiibi", -1, 200, 1, 1 << 20, 0, 1) + text(topic) + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
    for address in addresses:
        with socket.create_connection(address) as connection:
            ask(connection, METADATA, 1, 1, struct.pack(">i", 1) + text(topic))
            answer = ask(connection, FETCH, 4, 2, fetch)
            if struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)[0] != 6:  # NOT_LEADER_OR_FOLLOWER
                continue
            end = time.monotonic() + float(seconds)
            number = 3
            while time.monotonic() < end:
                ask(connection, FETCH, 4, number, fetch)
                number += 1
                time.sleep(0.25)
            print(
                f"fact: old-dashboard went on fetching {topic}-0 from {address[0]}:{address[1]}, which does not lead it"
            )
            return
    raise SystemExit("all of them lead it")


main()
