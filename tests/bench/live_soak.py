"""A live capture with ``--metrics`` for as long as wanted, while clients, groups and topics never seen before go by.

``python -m tests.bench.live_soak --minutes N [--rate EXCHANGES_A_SECOND]`` sends the traffic through the loopback
interface, scrapes the metrics each minute and prints what is resident in the capturing process. Needs the right to
capture. Exit code 1 when the memory at the end is more than a tenth and 4 MB above that after a third of the time, or
when the capture did not see every exchange.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from struct import pack

from tests.support.conversation import heartbeat_response, request, response, string

#: Exchanges of one connection.
LIFE = 200


def serve(server: socket.socket) -> None:
    """Answers each request, of one connection after the other."""
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer, peer.makefile("rb") as stream:
            while size := stream.read(4):
                said = stream.read(int.from_bytes(size, "big"))
                number = int.from_bytes(said[4:8], "big")
                peer.sendall(heartbeat_response(number) if said[1] == 12 else response(number, pack(">ii", 0, 0)))


def exchange(peer: socket.socket, number: int) -> None:
    """A heartbeat in a group, or a question for the partitions of a topic, that were never heard of before."""
    client = f"client-{number}"
    if number % 2:
        said = request(12, 0, number, string(f"group-{number}") + pack(">i", 1) + string("member"), client)
    else:
        said = request(3, 0, number, pack(">i", 1) + string(f"topic-{number}"), client)
    peer.sendall(said)
    size = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
    peer.recv(size, socket.MSG_WAITALL)


def resident_megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--rate", type=int, default=100)
    options = parser.parse_args()
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(server,), daemon=True).start()
    address = server.getsockname()
    command = [sys.executable, "-m", "kwiresniff", "sniff", "-i", "lo", "--port", str(address[1]), "-o", "summary",
               "--metrics", "127.0.0.1:0"]  # fmt: skip
    sniffer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert sniffer.stderr is not None
    url = ""
    while not url:
        url = "".join(re.findall(r"http://\S+", sniffer.stderr.readline()))
    threading.Thread(target=sniffer.stderr.read, daemon=True).start()
    time.sleep(3)  # until the packets are captured, too
    sizes: list[float] = []
    number = 0
    for minute in range(options.minutes):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.create_connection(address) as peer:
                for _ in range(LIFE):
                    exchange(peer, number)
                    number += 1
                    time.sleep(1 / options.rate)
        with urllib.request.urlopen(url) as answer:
            told = len(answer.read())
        sizes.append(resident_megabytes(sniffer.pid))
        print(f"minute {minute + 1}: {number} exchanges, {sizes[-1]:.1f} MB, {told} bytes of metrics", flush=True)
    time.sleep(3)
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    seen = sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("kwiresniff_exchanges_total"))
    sniffer.terminate()
    sniffer.wait()
    print(f"{number} exchanges sent, {seen:.0f} seen")
    return int(seen != number or sizes[-1] > sizes[len(sizes) // 3] * 1.1 + 4)


if __name__ == "__main__":
    sys.exit(main())
