"""Comments on captured packets that say which process, container and pod of this machine each is of.

Source: ptcpdump, whose comments have lines such as ``Cmd: java``, ``ContainerName: shop``, ``PodName: shop-7f``, beside
``epb_flags``, which tell whether the packet came in or went out (draft-ietf-opsawg-pcapng, section 4.3.1).
"""

from __future__ import annotations

from typing import Final

from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.flows import endpoints
from kwiresniff.capture.packet_decoder import LayerDecoder
from kwiresniff.capture.recorded_names import INBOUND, OUTBOUND

#: Directions of connections whose comment is written already; where there are more, all get theirs again.
MAX_COMMENTED: Final = 100_000

_KEYS: Final = {"process": "Cmd", "container": "ContainerName", "pod": "PodName"}
#: No comments, and no flags.
NONE: Final[tuple[list[bytes], int]] = ([], 0)


class PacketComments:
    """Gives the first packet of each direction of a connection its comments, once a name of its end is known."""

    def __init__(self, names: AddressNames, link_type: int) -> None:
        self._names = names
        self._link_type = link_type
        self._decode = LayerDecoder({}).segment
        self._commented: set[bytes] = set()

    def begin(self) -> None:
        """Begins a new file, in which every connection has its comments again."""
        self._commented.clear()

    def of(self, buffer: bytes, start: int, end: int) -> tuple[list[bytes], int]:
        """The comments on the packet ``buffer[start:end]``, and its flags."""
        segment = self._decode(0, 0, self._link_type, buffer, start, end, 0)
        if segment is None or segment[2] in self._commented:
            return NONE
        source, destination = endpoints(segment[2])
        for endpoint, flags in ((source, OUTBOUND), (destination, INBOUND)):
            comments = self._of_endpoint(endpoint)
            if comments:
                if len(self._commented) >= MAX_COMMENTED:
                    self._commented.clear()
                self._commented.add(segment[2])
                return comments, flags
        return NONE

    def _of_endpoint(self, endpoint: str) -> list[bytes]:
        """Names of a port are those of the process that has it."""
        found: dict[str, bytes] = {}
        for one in self._names.of_address(endpoint):
            kind, _, name = one.name.partition("/")
            if kind in _KEYS and name.isprintable():
                found[kind] = f"{_KEYS[kind]}: {name}".encode()
        return [found[kind] for kind in _KEYS if kind in found]
