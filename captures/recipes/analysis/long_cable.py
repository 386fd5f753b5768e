"""A long cable between client and brokers: every packet takes its time, none is lost.

Usage: ``python3 -m captures.recipes.analysis.long_cable ONE OTHER SECONDS`` passes frames from one interface to the
other and back, each so many seconds after it came. ``long_network`` puts it between the two namespaces of the rig.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from captures.recipes.shared import rig
from captures.recipes.stream.wire import WIRE_SPACE

ETH_P_ALL = 3


@contextmanager
def long_network(one_way_s: float) -> Iterator[None]:
    """The rig's two namespaces with such a cable between them."""
    with rig.network(), ExitStack() as stack:
        rig.run("ip", "-n", rig.CLIENT_SPACE, "link", "del", rig.CLIENT_LINK)  # and its other end with it
        rig.run("ip", "netns", "add", WIRE_SPACE)
        stack.callback(rig.run, "ip", "netns", "del", WIRE_SPACE)
        ends = (
            (rig.BROKER_SPACE, rig.BROKER_LINK, rig.BROKER_IP, "02:00:00:00:00:01", "far0"),
            (rig.CLIENT_SPACE, rig.CLIENT_LINK, rig.CLIENT_IP, "02:00:00:00:00:02", "far1"),
        )
        for space, link, ip, mac, inner in ends:
            rig.run(
                "ip", "link", "add", link, "netns", space, "type", "veth", "peer", "name", inner, "netns", WIRE_SPACE
            )
            # Segments as they are on a cable: none is larger than the interface's MTU, all have their checksums.
            offload = ("tx", "off", "tso", "off", "gso", "off", "gro", "off")
            rig.run(*rig.inside(space, "ethtool", "-K", link, *offload), quiet=True)
            rig.run("ip", "-n", space, "link", "set", link, "address", mac, "addrgenmode", "none")
            rig.run("ip", "-n", WIRE_SPACE, "link", "set", inner, "addrgenmode", "none")
            for at, name in ((space, link), (WIRE_SPACE, inner)):
                rig.run("ip", "-n", at, "link", "set", name, "up")
            rig.run("ip", "-n", space, "addr", "add", f"{ip}/24", "dev", link)
        command = [sys.executable, "-m", "captures.recipes.analysis.long_cable", "far0", "far1", str(one_way_s)]
        process = subprocess.Popen(rig.inside(WIRE_SPACE, *command), cwd=rig.ROOT)
        stack.callback(rig.stop, process)
        yield


def main() -> None:
    one_way_s = float(sys.argv[3])
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) for _ in range(2)]
    for end, name in zip(ends, sys.argv[1:3], strict=True):
        end.bind((name, ETH_P_ALL))
    under_way: deque[tuple[float, socket.socket, bytes]] = deque()
    while True:
        wait_s = max(under_way[0][0] - time.monotonic(), 0.0) if under_way else None
        for end in select.select(ends, [], [], wait_s)[0]:
            frame, (_, _, kind, *_) = end.recvfrom(65_536)
            if kind != socket.PACKET_OUTGOING:
                under_way.append((time.monotonic() + one_way_s, ends[end is ends[0]], frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, other, frame = under_way.popleft()
            other.send(frame)


if __name__ == "__main__":
    main()
