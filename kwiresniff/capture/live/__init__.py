"""Network interfaces to TCP segments, as they pass.

``open_live(options)`` gives what ``open_captures`` gives for files: something that yields ``Segment`` tuples and keeps
count. It ends by ``LiveCapture.stop``, a count of packets or a duration, and says what it missed. Raises
CaptureError, one line, for whatever keeps it from starting.
"""

from kwiresniff.capture.live.interfaces import ANY, NetworkInterface, network_interfaces
from kwiresniff.capture.live.live_capture import LiveCapture, open_live
from kwiresniff.capture.live.savefiles import Rotation
from kwiresniff.capture.live.source import LiveOptions

__all__ = [
    "ANY",
    "LiveCapture",
    "LiveOptions",
    "NetworkInterface",
    "Rotation",
    "network_interfaces",
    "open_live",
]
