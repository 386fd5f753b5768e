"""A TCP load balancer before several brokers: whoever connects is passed on to the next of them in turn.

Usage: ``python3 -m captures.recipes.analysis.load_balancer PORT BROKER-PORT...``
"""

from __future__ import annotations

import itertools
import socket
import sys
import threading

from captures.recipes.analysis.forgetful_proxy import serve
from captures.recipes.shared import rig

#: Longer than any recording.
FOR_EVER_S = 3600.0


def main() -> None:
    port, *broker_ports = map(int, sys.argv[1:])
    with socket.create_server((rig.BROKER_IP, port)) as server:
        for broker_port in itertools.cycle(broker_ports):
            client, _ = server.accept()
            threading.Thread(target=serve, args=(client, broker_port, FOR_EVER_S), daemon=True).start()


if __name__ == "__main__":
    main()
