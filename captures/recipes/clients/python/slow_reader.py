"""A consumer that reads its responses slowly, as one does that works between two reads.

Usage: slow_reader.py BOOTSTRAP TOPIC TIMES. Fetch v4 is written by hand, because client libraries read in threads of
their own.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

FETCH = 1
BUFFER_BYTES = 16_384
PAUSE_S = 0.05


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def main() -> None:
    bootstrap, topic, times = sys.argv[1:]
    host, _, port = bootstrap.rpartition(":")
    body = struct.pack(">iiiibi", -1, 500, 1, 10_000_000, 0, 1) + text(topic) + struct.pack(">iiqi", 1, 0, 0, 1_500_000)
    with socket.socket() as connection:
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES
        )  # before the handshake tells the window
        connection.connect((host, int(port)))
        for number in range(int(times)):
            frame = struct.pack(">hhi", FETCH, 4, number + 1) + text("slow-report") + body
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            left = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
            while left:
                left -= len(connection.recv(min(left, BUFFER_BYTES)))
                time.sleep(PAUSE_S)
    print(f"fact: slow-report reads {BUFFER_BYTES} bytes at a time and pauses for {PAUSE_S} s after each")


if __name__ == "__main__":
    main()
