"""A cable between client and brokers that is long, narrow, or loses packets.

Usage: ``python3 -m captures.recipes.analysis.long_cable ONE OTHER SETTING=VALUE...`` passes frames from one interface
to the other and back. ``delay`` is how many seconds each takes, ``loss`` the part of them that is lost, ``rate`` how
many bytes a second pass towards the clients, with ``queue`` bytes waiting at most. ``port`` and ``host`` limit all of
this to the frames from and to one port of a broker, or one address of a client. ``long_network`` puts it between the
two namespaces of the rig.
"""

from __future__ import annotations

import random
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
#: A second address in the clients' namespace, as of another machine.
OTHER_CLIENT_IP = "10.9.0.3"
#: Places in a frame with an IPv4 header without options.
ADDRESSES, PORTS = slice(26, 34), slice(34, 38)
#: Bytes that wait at the narrow place.
QUEUE_BYTES = 100_000


@contextmanager
def long_network(cable: str) -> Iterator[None]:
    """The rig's two namespaces with such a cable between them; ``cable`` has its settings as words."""
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
        rig.run("ip", "-n", rig.CLIENT_SPACE, "addr", "add", f"{OTHER_CLIENT_IP}/24", "dev", rig.CLIENT_LINK)
        command = [sys.executable, "-m", "captures.recipes.analysis.long_cable", "far0", "far1", *cable.split()]
        process = subprocess.Popen(rig.inside(WIRE_SPACE, *command), cwd=rig.ROOT)
        stack.callback(rig.stop, process)
        yield


def is_meant(frame: bytes, port: int, host: bytes) -> bool:
    """Whether a frame comes from or goes to that port and address; 0 and no bytes stand for any."""
    ports = frame[PORTS]
    ends = frame[ADDRESSES]
    return (not port or port in (int.from_bytes(ports[:2]), int.from_bytes(ports[2:]))) and (
        not host or host in (ends[:4], ends[4:])
    )


def main() -> None:
    given = dict(word.split("=") for word in sys.argv[3:])
    delay_s, loss, rate = (float(given.get(name, 0)) for name in ("delay", "loss", "rate"))
    port, host = int(given.get("port", 0)), socket.inet_aton(given["host"]) if "host" in given else b""
    queue_s = float(given.get("queue", QUEUE_BYTES)) / rate if rate else 0.0
    chance = random.Random(1)
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) for _ in range(2)]
    for end, name in zip(ends, sys.argv[1:3], strict=True):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        end.bind((name, ETH_P_ALL))
    under_way: deque[tuple[float, socket.socket, bytes]] = deque()
    narrow: deque[tuple[float, socket.socket, bytes]] = deque()  # through the narrow place, when it has passed there
    while True:
        waits = [one[0][0] for one in (under_way, narrow) if one]
        wait_s = max(min(waits) - time.monotonic(), 0.0) if waits else None
        for end in select.select(ends, [], [], wait_s)[0]:
            frame, (_, _, kind, *_) = end.recvfrom(65_536)
            if kind == socket.PACKET_OUTGOING:
                continue
            other, now = ends[end is ends[0]], time.monotonic()
            if not is_meant(frame, port, host):
                other.send(frame)
            elif chance.random() < loss:
                continue
            elif rate and end is ends[0]:
                begin = max(narrow[-1][0], now) if narrow else now
                if begin - now < queue_s:
                    narrow.append((begin + len(frame) / rate, other, frame))
            else:
                under_way.append((now + delay_s, other, frame))
        for passing in (under_way, narrow):
            while passing and passing[0][0] <= time.monotonic():
                _, other, frame = passing.popleft()
                other.send(frame)


if __name__ == "__main__":
    main()
