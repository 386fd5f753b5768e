"""``--hosts FILE``: names and zones of addresses from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture.hosts_file import read_hosts_file
from kwiresniff.errors import CaptureError

#: What installers of Debian, macOS and Docker write into /etc/hosts, and what a user adds.
HOSTS = """\
127.0.0.1\tlocalhost
127.0.1.1\tbox.example.com\tbox
::1     ip6-localhost ip6-loopback
fe80::1%lo0\tlocalhost
ff02::1 ip6-allnodes

# brokers
10.0.1.5 kafka-1.example.com kafka-1 zone=eu-1a # the first
2001:DB8::7 zone=eu-1b kafka-2
10.0.2.0/24 zone=eu-1b
10.0.2.128/25 zone=eu-1c
10.0.2.9 zone=eu-1a
"""


def read(tmp_path: Path, text: str) -> AddressNames:
    path, names = tmp_path / "hosts", AddressNames()
    path.write_text(text)
    read_hosts_file(str(path), names)
    return names


def test_the_format_is_that_of_etc_hosts(tmp_path: Path) -> None:
    """Addresses stand as they do in output, whatever they are in the file."""
    names = read(tmp_path, HOSTS)
    assert [one.name for one in names.of("10.0.1.5:9092")] == ["kafka-1.example.com", "kafka-1"]
    assert {one.source for one in names.of_address("10.0.1.5")} == {"hosts"}
    assert [one.name for one in names.of("[2001:db8::7]:9092")] == ["kafka-2"]
    assert [one.name for one in names.of_address("[fe80::1]")] == ["localhost"]
    assert names.of("10.0.2.9:1") == []


def test_a_zone_is_that_of_the_address_else_of_its_smallest_network(tmp_path: Path) -> None:
    """A subnet is in one zone, in most clouds."""
    names = read(tmp_path, HOSTS)
    found = {host: names.zone(host) for host in ("10.0.1.5", "[2001:db8::7]", "10.0.2.9", "10.0.2.10", "10.0.2.200")}
    assert list(found.values()) == ["eu-1a", "eu-1b", "eu-1a", "eu-1b", "eu-1c"]
    assert names.zone("10.0.3.1") is None
    assert names.zone("not an address") is None


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("kafka-1 10.0.0.5", "line 2: 'kafka-1' is no address like 10.0.0.5"),
        ("10.0.0.300 a", "line 2: '10.0.0.300' is no address"),
        ("10.0.0.0/99 zone=a", "line 2: '10.0.0.0/99' is no network like 10.0.1.0/24"),
        ("10.0.0.0/24 a zone=a", "line 2: a network has a zone and no names"),
        ("10.0.0.0/24", "line 2: a network has a zone and no names"),
        ("10.0.0.1 zone=a zone=b", "line 2: two zones of one address"),
        ("\x1b[31m" + "x" * 5_000, r"line 2: '\\x1b\[31mx{55}' is no address"),
    ],
)
def test_a_line_that_is_none_is_told(tmp_path: Path, line: str, wrong: str) -> None:
    """In one line that says which, and what would be right."""
    with pytest.raises(CaptureError, match=wrong):
        read(tmp_path, f"10.0.0.1 a\n{line}\n")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """As of any other file."""
    with pytest.raises(CaptureError, match="No such file"):
        read_hosts_file(str(tmp_path / "none"), AddressNames())
