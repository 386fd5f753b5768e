"""Flow keys: source address, destination address, source port, destination port, as raw bytes in network order.

And their ends as text, ``ip:port``.
"""

from __future__ import annotations

from typing import Final

#: The numbers of an IPv4 address, as text.
_OCTETS: Final = [str(number) for number in range(256)]


def reverse(flow: bytes) -> bytes:
    """The flow key of the other direction."""
    address = (len(flow) - 4) // 2
    ports = 2 * address
    return flow[address:ports] + flow[:address] + flow[ports + 2 :] + flow[ports : ports + 2]


def canonical_flow(flow: bytes) -> bytes:
    """A key that both directions of a connection have in common."""
    return min(flow, reverse(flow))


def endpoints(flow: bytes) -> tuple[str, str]:
    """``ip:port`` of source and destination of a flow, IPv6 in brackets."""
    address = (len(flow) - 4) // 2
    ports = flow[2 * address :]
    return _text(flow[:address], ports[:2]), _text(flow[address : 2 * address], ports[2:])


def flow_between(source: str, destination: str) -> bytes:
    """The flow key from one ``ip:port`` to another, the opposite of ``endpoints``."""
    from ipaddress import ip_address

    ends = [one.rpartition(":") for one in (source, destination)]
    addresses = b"".join([ip_address(host.strip("[]")).packed for host, _, _ in ends])
    return addresses + b"".join([int(port).to_bytes(2, "big") for _, _, port in ends])


def host_of(endpoint: str) -> str:
    """The address in ``ip:port``: ``10.0.0.5`` of ``10.0.0.5:50000``, ``[::1]`` of ``[::1]:50000``."""
    return endpoint.rpartition(":")[0]


def _text(raw: bytes, port: bytes) -> str:
    if len(raw) == 4:
        first, second, third, last = _OCTETS[raw[0]], _OCTETS[raw[1]], _OCTETS[raw[2]], _OCTETS[raw[3]]
        return f"{first}.{second}.{third}.{last}:{port[0] << 8 | port[1]}"
    from ipaddress import ip_address

    return f"[{ip_address(raw)}]:{int.from_bytes(port, 'big')}"
