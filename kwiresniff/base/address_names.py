"""Names and zones that addresses have been given: by files, by captures, by the machine that captures.

An address is a host as text (``10.0.0.5``, IPv6 in brackets) or one of its ports (``10.0.0.5:50000``). A name is that
of a host, or says what it is of: ``pod/checkout-7f``, ``container/kafka``, ``process/java``.

Bounded: so many names, of so many characters; what comes later is not remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kwiresniff.base.flows import host_of

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

    Network: TypeAlias = IPv4Network | IPv6Network

#: Names and zones of all addresses: a large cluster has some thousand hosts. They take 40 MB at most.
MAX_NAMES: Final = 100_000
#: Names of one address: a host has a few, and a proxy those of all that it stands for.
MAX_NAMES_OF_ONE: Final = 16
#: Characters of a name: as many as a host name may have (RFC 1035). A longer one is none.
MAX_NAME_CHARS: Final = 255
#: Networks with a zone, which are looked through for each host.
MAX_NETWORKS: Final = 1_000


class Name(NamedTuple):
    """A name of an address, and where it comes from."""

    name: str
    source: str


class AddressNames:
    """The names and zones that are known so far."""

    def __init__(self) -> None:
        self._names: dict[str, list[Name]] = {}
        self._zones: dict[str, str] = {}
        self._networks: list[tuple[Network, str]] = []
        self._count = 0

    def add(self, address: str, name: str, source: str) -> None:
        """Gives an address a name, which it may have already."""
        known = self._names.get(address)
        if known is None:
            known = []
        if not 0 < len(name) <= MAX_NAME_CHARS or self._count >= MAX_NAMES or len(known) >= MAX_NAMES_OF_ONE:
            return
        if all(one.name != name for one in known):
            known.append(Name(name, source))
            self._names[address] = known
            self._count += 1

    def add_zone(self, host: str, zone: str) -> None:
        """Gives a host a zone."""
        if 0 < len(zone) <= MAX_NAME_CHARS and (host in self._zones or len(self._zones) < MAX_NAMES):
            self._zones[host] = zone

    def add_network(self, network: Network, zone: str) -> None:
        """Gives all hosts of a network a zone, but those that have one of their own or are in a smaller network."""
        if 0 < len(zone) <= MAX_NAME_CHARS and len(self._networks) < MAX_NETWORKS:
            self._networks.append((network, zone))
            self._networks.sort(key=lambda item: -item[0].prefixlen)

    def of(self, endpoint: str) -> list[Name]:
        """The names of ``ip:port``: its own, then those of its host."""
        if not self._names:
            return []
        return [*self._names.get(endpoint, ()), *self._names.get(host_of(endpoint), ())]

    def called(self, endpoint: str, server_name: str | None = None) -> tuple[str, ...]:
        """What ``ip:port`` may be called by: itself, then every spelling of its names with the port, that of the
        ``server_name`` (SNI) on its connection among them."""
        found = self.of(endpoint)
        if not found and not server_name:
            return (endpoint,)
        port = endpoint.rpartition(":")[2]
        names = [one.name for one in found] + [server_name] * bool(server_name)
        return (endpoint, *(f"{one}:{port}" for name in names if name for one in spellings(name)))

    def knows(self, text: str) -> bool:
        """Whether some address may be called so."""
        return any(text in spellings(one.name) for known in list(self._names.values()) for one in known)

    def of_address(self, address: str) -> list[Name]:
        """The names of a host, or of one of its ports alone."""
        return self._names.get(address, [])

    def zone(self, host: str) -> str | None:
        """The zone of a host."""
        found = self._zones.get(host)
        if found is not None or not self._networks:
            return found
        from ipaddress import ip_address

        try:
            address = ip_address(host.strip("[]"))
        except ValueError:
            return None
        return next((zone for network, zone in self._networks if address in network), None)


def host_text(address: str) -> str | None:
    """An IP address as a host stands in output, None for what is no address; an interface (``%eth0``) is left out."""
    from ipaddress import ip_address

    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return f"[{found}]" if found.version == 6 else str(found)


def spellings(name: str) -> tuple[str, ...]:
    """What a name may be called by: itself, without what it is of (``checkout-7f`` of ``pod/checkout-7f``), and a host
    without its domain."""
    bare = name.rpartition("/")[2]
    return tuple(dict.fromkeys((name, bare, bare.partition(".")[0] or bare)))
