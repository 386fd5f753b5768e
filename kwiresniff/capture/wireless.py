"""IEEE 802.11 as captures have it: the frame alone or behind a header of the driver (radiotap, Prism, AVS).

The functions are layers as in ``link_layer``. Only frames that are not encrypted can be read; of aggregated ones
(A-MSDU) the first.
"""

from __future__ import annotations

from kwiresniff.capture.link_layer import NOTHING, NoSegment
from kwiresniff.capture.tags import llc

_DATA = 2
_TO_DS = 0x01
_FROM_DS = 0x02
_PROTECTED = 0x40
_ORDER = 0x80
_AGGREGATED = 0x80
_PRISM_BYTES = 144


def ieee80211(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """A data frame: frame control, duration, three or four addresses, sequence, QoS, then LLC."""
    if end - start < 24:
        return NOTHING, end
    control, flags = buffer[start], buffer[start + 1]
    if control & 3 or control >> 2 & 3 != _DATA or control & 0x40:  # another version, management, or no data
        return NOTHING, end
    if flags & _PROTECTED:
        raise NoSegment("wifi_encrypted")
    offset = start + 24
    if flags & (_TO_DS | _FROM_DS) == _TO_DS | _FROM_DS:
        offset += 6
    if control & 0x80:
        aggregated = offset < end and buffer[offset] & _AGGREGATED
        offset += 6 if flags & _ORDER else 2
        if aggregated:
            offset += 14
    return llc(buffer, offset, end)


def radiotap(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """Version 0, padding, the header's length (little-endian), then the frame."""
    if end - start < 8 or buffer[start]:
        return NOTHING, end
    return ieee80211(buffer, start + int.from_bytes(buffer[start + 2 : start + 4], "little"), end)


def avs(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """A magic number with the version, the header's length, then the frame."""
    if end - start < 8 or buffer[start : start + 3] != b"\x80\x21\x10":
        return NOTHING, end
    return ieee80211(buffer, start + int.from_bytes(buffer[start + 4 : start + 8]), end)


def prism(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """144 bytes, or an AVS header, which drivers gave under the same link type."""
    if buffer.startswith(b"\x80\x21\x10", start, end):
        return avs(buffer, start, end)
    return ieee80211(buffer, start + _PRISM_BYTES, end)
