"""Names and zones of addresses from outside: what ``--hosts FILE`` reads.

The format of hosts(5): an address and its names a line, ``#`` begins a comment. A word ``zone=NAME`` among the names is
the zone (the rack) of the address; a line of a network, as ``10.0.1.0/24 zone=eu-1a``, gives all its addresses a zone.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Final

from kwiresniff.base.address_names import AddressNames, host_text
from kwiresniff.errors import CaptureError

#: What is read of the file: a hundred thousand hosts.
MAX_FILE_BYTES: Final = 16 << 20
SOURCE: Final = "hosts"
_ZONE: Final = "zone="
_SHOWN_CHARS: Final = 60


def read_hosts_file(path: str, names: AddressNames) -> None:
    """Adds the entries of a hosts file to ``names``. Raises CaptureError for a file that is missing or malformed."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words and (wrong := _take(words, names)):
            raise CaptureError(f"{path}: line {number}: {wrong}")


def _take(words: list[str], names: AddressNames) -> str:
    """Adds what a line says; returns what is wrong with it, empty when nothing is."""
    address, *rest = words
    hosts = [word for word in rest if not word.startswith(_ZONE)]
    zones = [word.removeprefix(_ZONE) for word in rest if word.startswith(_ZONE)]
    if len(zones) > 1:
        return "two zones of one address"
    if "/" in address:
        try:
            network = ip_network(address, strict=False)
        except ValueError:
            return f"{address[:_SHOWN_CHARS]!r} is no network like 10.0.1.0/24"
        if hosts or not zones:
            return "a network has a zone and no names: 10.0.1.0/24 zone=eu-1a"
        names.add_network(network, zones[0])
        return ""
    host = host_text(address)
    if host is None:
        return f"{address[:_SHOWN_CHARS]!r} is no address like 10.0.0.5, and no network like 10.0.1.0/24"
    for name in hosts:
        names.add(host, name, SOURCE)
    for zone in zones:
        names.add_zone(host, zone)
    return ""
