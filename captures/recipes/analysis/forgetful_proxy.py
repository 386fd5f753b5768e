"""A proxy that forgets connections while they are idle, as NAT, firewalls and load balancers do.

Usage: ``python3 -m captures.recipes.analysis.forgetful_proxy PORT BROKER-PORT SECONDS``. What a client sends after so
many seconds of silence is answered with a reset, and the broker does not see it.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import threading
import time

from captures.recipes.shared import rig


def serve(client: socket.socket, broker_port: int, patience_s: float) -> None:
    """Pass bytes on in both directions until one side ends or the connection has been forgotten."""
    with client, socket.create_connection((rig.BROKER_IP, broker_port)) as broker:
        last = time.monotonic()
        while True:
            ready = select.select([client, broker], [], [])[0]
            now = time.monotonic()
            if client in ready and now - last > patience_s:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close by RST
                return
            last = now
            for side in ready:
                data = side.recv(65536)
                if not data:
                    return
                (broker if side is client else client).sendall(data)


def main() -> None:
    port, broker_port, patience_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    with socket.create_server((rig.BROKER_IP, port)) as server:
        while True:
            client, _ = server.accept()
            threading.Thread(target=serve, args=(client, broker_port, patience_s), daemon=True).start()


if __name__ == "__main__":
    main()
