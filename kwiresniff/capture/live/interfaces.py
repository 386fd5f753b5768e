"""The network interfaces of this machine."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from kwiresniff.capture.live.scapy_cache import forgo_cache
from kwiresniff.errors import CaptureError

#: The name for all interfaces together, as tcpdump has it.
ANY = "any"


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """An interface: its number and name, whether it is up, its IP addresses as texts."""

    index: int
    name: str
    up: bool
    addresses: tuple[str, ...]


def network_interfaces() -> list[NetworkInterface]:
    """All interfaces, in the order of their numbers."""
    forgo_cache()
    import scapy.arch  # noqa: F401  it is what fills the list
    from scapy.config import conf

    found = []
    for one in conf.ifaces.values():
        addresses = [address for family in (4, 6) for address in one.ips.get(family, ())]
        found.append(NetworkInterface(one.index, one.name, bool(one.flags & 1), tuple(addresses)))
    return sorted(found, key=lambda one: one.index)


def check_names(names: Sequence[str]) -> None:
    """Raises CaptureError for a name that no interface has; the message lists those there are."""
    known = [name for _, name in socket.if_nameindex()]
    for name in names:
        if name != ANY and name not in known:
            raise CaptureError(f"no interface is called {name!r}; there are {', '.join([ANY, *known])}")
