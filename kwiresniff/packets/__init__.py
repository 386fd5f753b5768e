"""Chosen exchanges to the packets that carry them: what is written is a capture that tells the same of them."""

from kwiresniff.packets.context import Context
from kwiresniff.packets.selection import Selection
from kwiresniff.packets.source import Source
from kwiresniff.packets.writing import Anonymous, Written, write_packets

__all__ = ["Anonymous", "Context", "Selection", "Source", "Written", "write_packets"]
