"""Packets that were not read: the names that they are counted under, and those names in words with what to do."""

from __future__ import annotations

import re
from typing import Final

#: Names shown of packets that were not read; a hostile capture can have many more.
MAX_SHOWN: Final = 8

#: Link types that are not read, by the names of the list of tcpdump.org; those from 147 to 162 are anybody's.
_LINK_TYPES: Final = {
    6: "IEEE802_5", 7: "ARCNET_BSD", 99: "SYMANTEC_FIREWALL", 114: "LTALK", 129: "ARCNET_LINUX", 143: "DOCSIS",
    144: "LINUX_IRDA", 165: "BACNET_MS_TP", 177: "LINUX_LAPD", 187: "BLUETOOTH_HCI_H4", 189: "USB_LINUX",
    195: "IEEE802_15_4_WITHFCS", 201: "BLUETOOTH_HCI_H4_WITH_PHDR", 220: "USB_LINUX_MMAPPED", 224: "FC_2",
    227: "CAN_SOCKETCAN", 231: "DBUS", 245: "NFC_LLCP", 247: "INFINIBAND", 248: "SCTP", 249: "USBPCAP",
    251: "BLUETOOTH_LE_LL", 252: "WIRESHARK_UPPER_PDU", 253: "NETLINK", 254: "BLUETOOTH_LINUX_MONITOR", 271: "VSOCK",
    279: "EBHSCR", 280: "VPP_DISPATCH", 283: "IEEE802_15_4_TAP",
}  # fmt: skip
_FIRST_USER, _LAST_USER = 147, 162

#: Ethertypes of protocols that are not IP and carry none: those below are not worth a name each.
NOT_IP: Final = frozenset(
    (
        0x0842, 0x2000, 0x4305, 0x6002, 0x6003, 0x6004, 0x8035, 0x809B, 0x80F3, 0x8137, 0x8808, 0x8809, 0x8863, 0x886F,
        0x888E, 0x8892, 0x8899, 0x88A2, 0x88A4, 0x88A7, 0x88B8, 0x88B9, 0x88BA, 0x88C7, 0x88CA, 0x88CC, 0x88D9, 0x88E1,
        0x88E3, 0x88F5, 0x88F6, 0x88F7, 0x8902, 0x8906, 0x890D, 0x8912, 0x8914, 0x8915, 0x893A, 0x9000, 0x9003,
    )
)  # fmt: skip

_WORDS: Final = {
    "esp": "of ESP (IPsec), which is encrypted",
    "wireguard": "of WireGuard, which is encrypted",
    "macsec": "of MACsec, which is encrypted",
    "wifi_encrypted": "of encrypted 802.11; decrypt them with airdecap-ng, or capture at a wired host",
    "udp": "of UDP; if a tunnel is in it, --decode-as udp.port==PORT,vxlan (or another)",
    "arp": "of ARP",
    "icmp": "of ICMP",
    "icmpv6": "of ICMPv6",
    "igmp": "of IGMP",
    "ospf": "of OSPF",
    "vrrp": "of VRRP",
    "sctp": "of SCTP",
    "other_ip_protocol": "of another protocol of IP",
    "not_ip": "without IP",
    "ip_fragment": "of fragments of IP",
    "ip_fragment_lost": "of IP, fragments of which others are missing",
    "ip_fragment_cut": "of IP, fragments that are cut (snap length)",
    "ip_header_cut": "cut before the end of the IP header",
    "ip_header_bad": "with an invalid IP header",
    "tcp_header_cut": "cut before the end of the TCP header",
    "tcp_header_bad": "with an invalid TCP header",
    "nested_too_deep": "with more headers or tags inside each other than are read (docs/limits.md)",
    "not_read": "not read for further reasons",
}
_NUMBERED = re.compile(r"(link_type|inner_link_type|ethertype|udp)_(\w+?)(?:_may_be_([a-z]+))?", re.ASCII)
_TUNNELS = {"vxlan": "VXLAN", "geneve": "Geneve", "gtp": "GTP-U"}


def link_type_name(number: int) -> str:
    """The name of a link type that is not read."""
    return f"link_type_{number}"


def inner_link_type_name(number: int) -> str:
    """The name of a link type that is not read, behind a header that names it."""
    return f"inner_link_type_{number}"


def ethertype_name(number: int) -> str:
    """The name of what an ethertype is for, or of the ethertype where it might be a tag that is not known."""
    return "not_ip" if number < 0 or number in NOT_IP else f"ethertype_0x{number:04x}"


def may_be_name(port: int, tunnel: str) -> str:
    """The name of datagrams to a UDP port whose header is that of a tunnel, and whose content is not."""
    return f"udp_{port}_may_be_{tunnel}"


def in_words(name: str) -> str:
    """The packets counted under ``name`` in words, with a remedy where there is one; else the name."""
    if name in _WORDS:
        return _WORDS[name]
    match = _NUMBERED.fullmatch(name)
    return name if match is None else _what(match[1], match[2], match[3])


def _what(kind: str, number: str, tunnel: str | None) -> str:
    if kind == "ethertype":
        rule = f"--decode-as ethertype=={number},ethernet (or ip)"
        return f"of ethertype {number}, which is not known: if that is a tag, {rule}"
    if kind == "udp":
        return f"of UDP port {number} that may be {_TUNNELS[tunnel or '']}: try --decode-as udp.port=={number},{tunnel}"
    code = int(number)
    known = f"USER{code - _FIRST_USER}" if _FIRST_USER <= code <= _LAST_USER else _LINK_TYPES.get(code, "")
    words = f"of link type {number} ({known}), which is not read" if known else f"of link type {number}, not read"
    if kind == "inner_link_type":
        return f"with a header of PKTAP or PPI around a packet {words}"
    return f"{words}: if they hold Ethernet or IP, --decode-as link_type=={number},ethernet (or ip)"


def is_worth_a_line(name: str) -> bool:
    """Whether packets of this name might have been Kafka's, so that they are mentioned where others were."""
    return _NUMBERED.fullmatch(name) is not None and not name.startswith("ethertype")
