"""Names of addresses that pcapng files have: name resolution blocks, and comments of packets that say whose they are.

Sources: draft-ietf-opsawg-pcapng, sections 4.5 (name resolution block) and 4.3 (``epb_flags``, ``opt_comment``);
ptcpdump, whose comments are lines such as ``Cmd: /usr/bin/java``, ``ContainerName: shop``, ``PodName: shop-7f``. A
comment is about the process at this machine's end: the sender of a packet that goes out, the receiver of one that comes
in. Where the direction is not said, nobody knows whose end it is.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from struct import Struct
from typing import Final

from kwiresniff.base.address_names import AddressNames, host_text
from kwiresniff.base.flows import endpoints
from kwiresniff.capture.pcapng_blocks import options_of

NAME_RESOLUTION: Final = 4
#: The option codes of a packet block.
COMMENT: Final = 1
FLAGS: Final = 2
#: Bits 0 and 1 of ``epb_flags``.
INBOUND, OUTBOUND = 1, 2
#: The record types of a name resolution block, with the bytes of their addresses.
_RECORDS: Final = {1: 4, 2: 16}
_RECORD_END: Final = 0

#: Connections, each way, whose comments are read, and the packets of each that are looked at: later ones say the same.
MAX_COMMENTED: Final = 10_000
MAX_PACKETS: Final = 16
#: Bytes of a comment that are read: ptcpdump's have some hundred, labels of pods included.
MAX_COMMENT_BYTES: Final = 4_096

#: What a line of a comment is about, by its key in lower case without ``_`` and ``-``.
_KINDS: Final = {
    "cmd": "process", "command": "process", "comm": "process", "process": "process", "processname": "process",
    "container": "container", "containername": "container", "pod": "pod", "podname": "pod",
}  # fmt: skip
_LINE: Final = re.compile(r"[ \t]*([A-Za-z_-]{1,32})[ \t]*[:=][ \t]*(\S.*?)[ \t\r]*", re.ASCII)


class RecordedNames:
    """Reads the names in the blocks of a pcapng file into ``names``."""

    def __init__(self, names: AddressNames) -> None:
        self._names = names
        self._looked_at: dict[bytes, int] = {}  # packets with options, by their connections and directions

    def block(self, order: str, buffer: bytes, start: int, end: int) -> None:
        """A whole name resolution block, ``buffer[start:end]``; of what is wrong in it, the rest is not read."""
        head = Struct(order + "HH").unpack_from
        at, stop = start + 8, end - 4
        while stop - at >= 4:
            kind, length = head(buffer, at)
            at += 4
            if kind == _RECORD_END or length > stop - at:
                return
            size = _RECORDS.get(kind)
            if size is not None and length > size:
                host = host_text(str(ip_address(buffer[at : at + size])))
                for name in buffer[at + size : at + length].split(b"\0"):
                    if host is not None and name:
                        self._names.add(host, name.decode("utf-8", "replace"), "name block")
            at += length + (-length & 3)

    def options(self, order: str, buffer: bytes, start: int, end: int, flow: bytes) -> None:
        """The options of a packet of a TCP connection, ``buffer[start:end]``."""
        looked_at = self._looked_at.get(flow, 0)
        if looked_at >= MAX_PACKETS or (not looked_at and len(self._looked_at) >= MAX_COMMENTED):
            return
        self._looked_at[flow] = looked_at + 1
        comments: list[bytes] = []
        flags = 0
        for code, value in options_of(order, buffer, start, end):
            if code == COMMENT:
                comments.append(value[:MAX_COMMENT_BYTES])
            elif code == FLAGS and len(value) == 4:
                flags = Struct(order + "I").unpack(value)[0] & 3
        if not comments or flags not in (INBOUND, OUTBOUND):
            return
        self._looked_at[flow] = MAX_PACKETS
        source, destination = endpoints(flow)
        found = [name for comment in comments for name in names_in_comment(comment)]
        for name in reversed(found):  # a pod says more than its container, and that more than its process
            self._names.add(source if flags == OUTBOUND else destination, name, "comment")


def names_in_comment(comment: bytes) -> list[str]:
    """The names of process, container and pod in a packet's comment, such as ``pod/shop-7f``."""
    found: list[str] = []
    for line in comment.decode("utf-8", "replace").split("\n"):
        match = _LINE.fullmatch(line)
        kind = _KINDS.get(match[1].lower().replace("_", "").replace("-", "")) if match is not None else None
        if kind is not None and match is not None:
            name = match[2].removesuffix("...")
            if kind == "process":  # a command is a path, and may have arguments
                name = name.split(" ")[0]
            name = name.rstrip("/").rpartition("/")[2]
            if name:
                found.append(f"{kind}/{name}")
    return found
