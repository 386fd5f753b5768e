"""A cable that loses, repeats, delays and reorders packets, with a mirror port that does so too, by ``tc netem``.

It lies between the two namespaces of the rig in place of the plain one, and its own kernel decides what becomes of a
packet: many kernels of rented machines come without netem, a User-Mode Linux (Debian's ``user-mode-linux``) has it.
Each of the three ends is a virtual Ethernet cable whose inner half is bridged to a tap that the kernel reads.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from captures.recipes.shared import rig

WIRE_SPACE, MIRROR_LINK = f"kwwire{os.getpid()}", "kwm0"


@contextmanager
def lossy_network(ends: str, mirror: str) -> Iterator[None]:
    """The rig's two namespaces with such a cable between them; ``ends`` and ``mirror`` are arguments of netem.

    Both ways of the cable have the same. The mirror port is ``MIRROR_LINK`` in the client's namespace and sees what
    both sides sent before the cable did anything to it.
    """
    with rig.network(), ExitStack() as stack:
        rig.run("ip", "-n", rig.CLIENT_SPACE, "link", "del", rig.CLIENT_LINK)  # and its other end with it
        rig.run("ip", "netns", "add", WIRE_SPACE)
        stack.callback(rig.run, "ip", "netns", "del", WIRE_SPACE)
        rig.run("ip", "netns", "exec", WIRE_SPACE, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        outer = (
            (rig.BROKER_SPACE, rig.BROKER_LINK, "02:00:00:00:00:01", rig.BROKER_IP),
            (rig.CLIENT_SPACE, rig.CLIENT_LINK, "02:00:00:00:00:02", rig.CLIENT_IP),
            (rig.CLIENT_SPACE, MIRROR_LINK, "02:00:00:00:00:03", ""),
        )
        for number, (space, link, mac, ip) in enumerate(outer):
            _end(number, space, link, mac)
            if ip:
                rig.run("ip", "-n", space, "addr", "add", f"{ip}/24", "dev", link)
        stack.enter_context(_kernel(ends, mirror))
        yield


def _end(number: int, space: str, link: str, mac: str) -> None:
    inner, tap, bridge = f"end{number}", f"tap{number}", f"br{number}"
    rig.run("ip", "link", "add", link, "netns", space, "type", "veth", "peer", "name", inner, "netns", WIRE_SPACE)
    rig.run("ip", "-n", space, "link", "set", link, "address", mac, "addrgenmode", "none")
    # Packets leave in the size and with the checksums that they have on a real cable.
    offload = ("tx", "off", "tso", "off", "gso", "off", "gro", "off")
    rig.run("ip", "netns", "exec", space, "ethtool", "-K", link, *offload, quiet=True)
    rig.run("ip", "netns", "exec", WIRE_SPACE, "ethtool", "-K", inner, *offload, quiet=True)
    rig.run("ip", "-n", WIRE_SPACE, "tuntap", "add", tap, "mode", "tap")
    # Without a memory for addresses a bridge of two ports is a piece of cable.
    rig.run("ip", "-n", WIRE_SPACE, "link", "add", bridge, "type", "bridge", "ageing_time", "0")
    for one in (inner, tap):
        rig.run("ip", "-n", WIRE_SPACE, "link", "set", one, "master", bridge, "up")
    rig.run("ip", "-n", WIRE_SPACE, "link", "set", bridge, "up")
    rig.run("ip", "-n", space, "link", "set", link, "up")


@contextmanager
def _kernel(ends: str, mirror: str) -> Iterator[None]:
    links = [f"vec{number}:transport=tap,ifname=tap{number}" for number in range(3)]
    process = subprocess.Popen(
        rig.inside(WIRE_SPACE, "linux.uml", "mem=64M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
                   f"init={rig.HERE / 'stream' / 'wire.sh'}", "con=null", "con0=fd:0,fd:1", "quiet", *links,
                   f"lossy_ends={ends.replace(' ', '+')}", f"lossy_mirror={mirror.replace(' ', '+')}"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        _wait_for(process, b"WIRE READY")
        yield
        process.stdin.write(b"\n")
        process.stdin.flush()
        _wait_for(process, b"WIRE DONE")
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
        if line.startswith((b"qdisc netem", b" Sent")):
            print(line.decode().strip())
    raise RuntimeError("the kernel of the lossy cable did not come up; is user-mode-linux installed?")
