"""Packet references: one integer for the index of a capture file and the number of a packet in it.

The low 40 bits are the packet's number, counted from 1; the rest is the index of the file in the order of reading. The
numbers are ``Final``: compiled modules have them as machine integers.
"""

from __future__ import annotations

from typing import Final

PACKET_BITS: Final = 40
PACKET_MASK: Final = (1 << 40) - 1
