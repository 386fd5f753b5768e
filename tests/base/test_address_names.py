"""Names of addresses: how they are remembered, and what they may be called."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from kwiresniff.base import address_names
from kwiresniff.base.address_names import MAX_NAME_CHARS, MAX_NAMES_OF_ONE, AddressNames, spellings


def test_a_port_has_its_own_names_and_those_of_its_host() -> None:
    """A process has a port, a machine has an address."""
    names = AddressNames()
    names.add("10.0.0.5:50000", "process/java", "comment")
    names.add("10.0.0.5", "box", "hosts")
    assert [one.name for one in names.of("10.0.0.5:50000")] == ["process/java", "box"]
    assert [one.name for one in names.of("10.0.0.5:50001")] == ["box"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pod/checkout-7f", ("pod/checkout-7f", "checkout-7f")),
        ("kafka-1.example.com", ("kafka-1.example.com", "kafka-1")),
        ("pod/shop/web.1", ("pod/shop/web.1", "web.1", "web")),
        (".", (".",)),
        ("box", ("box",)),
    ],
)
def test_a_name_may_be_called_without_what_stands_around_it(name: str, found: tuple[str, ...]) -> None:
    """Nobody writes the whole domain."""
    assert spellings(name) == found


def test_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In number, in length, of one address, and networks: hostile captures have any number."""
    names = AddressNames()
    names.add("10.0.0.1", "x" * (MAX_NAME_CHARS + 1), "a")
    names.add("10.0.0.1", "", "a")
    assert names.of_address("10.0.0.1") == []
    for number in range(2 * MAX_NAMES_OF_ONE):
        names.add("10.0.0.1", f"n{number}", "a")
        names.add("10.0.0.1", f"n{number}", "b")
    assert [one.name for one in names.of_address("10.0.0.1")] == [f"n{number}" for number in range(MAX_NAMES_OF_ONE)]
    monkeypatch.setattr(address_names, "MAX_NAMES", MAX_NAMES_OF_ONE + 1)
    monkeypatch.setattr(address_names, "MAX_NETWORKS", 1)
    for host in ("10.0.0.2", "10.0.0.3"):
        names.add(host, "one", "a")
    assert [len(names.of_address(f"10.0.0.{last}")) for last in (2, 3)] == [1, 0]
    for third in (1, 2):
        names.add_network(ip_network(f"10.0.{third}.0/24"), "z")
    assert [names.zone(f"10.0.{third}.1") for third in (1, 2)] == ["z", None]
    for last in range(100):
        names.add_zone(f"10.1.0.{last}", "z")
    assert sum(names.zone(f"10.1.0.{last}") is not None for last in range(100)) == MAX_NAMES_OF_ONE + 1
