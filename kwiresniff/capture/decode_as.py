"""``--decode-as``: what the user says that packets of a port, an ethertype, a protocol or a link type hold.

A rule is ``SELECTOR==NUMBER,NAME`` as in Wireshark's "Decode As", with the selectors and names of the tables below:
``udp.port==8473,vxlan``. Any name goes with any selector. Rules win over what is known by number or by content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from kwiresniff.capture.capture_headers import erf, frame_relay, hdlc, nflog, pf_log, pktap, ppi
from kwiresniff.capture.link_layer import (
    IPV4,
    IPV6,
    LinkLayer,
    ethernet,
    linux_cooked,
    linux_cooked_v2,
    null,
    only_ipv4,
    only_ipv6,
    ppp,
    raw_ip,
)
from kwiresniff.capture.packet_decoder import Choices
from kwiresniff.capture.tags import TAGS, frame_behind, llc, mpls, nsh, pppoe, vlan
from kwiresniff.capture.tunnels import capwap, geneve, gre, gtp_u, gue, l2tp, l2tp_v3, lisp, tzsp, vxlan
from kwiresniff.capture.wireless import ieee80211, prism, radiotap

#: What a rule can call a layer, in the order in which a mistake is answered. The first of several names is shown.
LAYERS: Final[dict[tuple[str, ...], LinkLayer]] = {
    ("ethernet", "eth"): ethernet,
    ("ip", "raw"): raw_ip,
    ("ipv4",): only_ipv4,
    ("ipv6",): only_ipv6,
    ("vxlan", "vxlan-gpe", "vxlan_gpe"): vxlan,
    ("geneve",): geneve,
    ("gtp", "gtp-u", "gtpu"): gtp_u,
    ("tzsp",): tzsp,
    ("gre",): gre,
    ("gue", "fou"): gue,
    ("l2tp",): l2tp,
    ("l2tpv3",): l2tp_v3,
    ("mpls",): mpls,
    ("vlan",): vlan,
    ("nsh",): nsh,
    ("pbb",): frame_behind(4),
    ("etherip",): frame_behind(2),
    ("llc",): llc,
    ("pppoe", "pppoes"): pppoe,
    ("ppp",): ppp,
    ("hdlc", "chdlc"): hdlc,
    ("fr", "frelay"): frame_relay,
    ("lisp",): lisp,
    ("capwap",): capwap,
    ("sll",): linux_cooked,
    ("sll2",): linux_cooked_v2,
    ("null", "loop"): null,
    ("wlan", "ieee80211"): ieee80211,
    ("radiotap",): radiotap,
    ("prism",): prism,
    ("pktap",): pktap,
    ("nflog",): nflog,
    ("ppi",): ppi,
    ("pflog",): pf_log,
    ("erf",): erf,
}
_LAYER_OF_NAME = {name: layer for names, layer in LAYERS.items() for name in names}

#: Selectors, with the largest number of each.
SELECTORS: Final = {"udp.port": 65535, "ethertype": 65535, "ip.proto": 255, "link_type": 65535}
_ALIASES = {"eth.type": "ethertype", "linktype": "link_type", "dlt": "link_type"}
_ALWAYS_READ = {("ethertype", IPV4), ("ethertype", IPV6), ("ip.proto", 6), ("ip.proto", 17)}
_RULE = re.compile(r"([\w.]+)\s*==\s*(0x[0-9a-f]{1,8}|\d{1,8})\s*,\s*([\w-]+)", re.ASCII | re.IGNORECASE)
_EXAMPLE = "udp.port==8473,vxlan"


class Rule(NamedTuple):
    """One rule."""

    selector: str
    number: int
    layer: LinkLayer


def rule_of(text: str) -> Rule:
    """The rule that a text is. Raises ValueError, which says what would be accepted."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not SELECTOR==NUMBER,NAME like {_EXAMPLE}")
    written, digits, name = match[1].lower(), match[2], match[3].lower()
    if written == "tcp.port":
        raise ValueError("tcp.port: Kafka is found on any port; --port names one that is a broker's")
    selector = _ALIASES.get(written, written)
    largest = SELECTORS.get(selector)
    if largest is None:
        raise ValueError(f"{match[1]!r} is not one of {', '.join(SELECTORS)}")
    number = int(digits, 0) if digits[:2].lower() == "0x" else int(digits)
    if number > largest:
        raise ValueError(f"{selector} is at most {largest}, not {digits}")
    if (selector, number) in _ALWAYS_READ:
        raise ValueError(f"{selector}=={digits} is read as what it is")
    layer = _LAYER_OF_NAME.get(name)
    if layer is None:
        raise ValueError(f"{match[3]!r} is not one of {', '.join(names[0] for names in LAYERS)}")
    return Rule(selector, number, layer)


def tables_of(texts: Iterable[str]) -> Choices:
    """The tables that rules make; of two for the same number the last one counts. Raises ValueError."""
    tables: dict[str, dict[int, LinkLayer]] = {selector: {} for selector in SELECTORS}
    for rule in map(rule_of, texts):
        tables[rule.selector][rule.number] = rule.layer
    return Choices(tables["link_type"], {**TAGS, **tables["ethertype"]}, tables["udp.port"], tables["ip.proto"])
