"""The user's choices of how packets are decoded, as the tables that decoding looks into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kwiresniff.base.light_typing import Final, NamedTuple
from kwiresniff.capture.link_layer import LinkLayer
from kwiresniff.capture.tags import TAGS


class Choices(NamedTuple):
    """Layers by link type, ethertype, UDP port and IP protocol; ``tags`` has those that are known, too."""

    link_types: Mapping[int, LinkLayer] = {}
    tags: Mapping[int, LinkLayer] = TAGS
    udp_ports: Mapping[int, LinkLayer] = {}
    ip_protocols: Mapping[int, LinkLayer] = {}


#: What is known, and no more.
NO_CHOICES: Final = Choices()


def choices_of(decode_as: Sequence[str]) -> Choices:
    """The tables that rules of ``decode_as`` make. Raises ValueError for one that is none."""
    if not decode_as:
        return NO_CHOICES
    from kwiresniff.capture.decode_as import tables_of  # few have any

    return tables_of(decode_as)
