"""Packets that show who talked how, and to whom, but no name, address or value: what is written is made anew, and of
what was captured only what is known to tell nothing is taken over.
"""

from kwiresniff.packets.anonymous.keeping import FrameKeeper
from kwiresniff.packets.anonymous.payloads import FrameSpool
from kwiresniff.packets.anonymous.pseudonyms import Pseudonyms

__all__ = ["FrameKeeper", "FrameSpool", "Pseudonyms"]
