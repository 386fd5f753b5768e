"""Capture files to TCP segments.

``open_captures(paths)`` takes files, folders, patterns and ``-``; iterating what it returns gives ``Segment``
tuples (see ``kwiresniff.model``). The only errors are CaptureError, raised before the first segment; whatever is
wrong with a capture after that is a Problem in ``Captures.problems``. ``with_decryption`` adds what
TLS connections carry to them. Live captures are in ``capture.live``.
"""

from kwiresniff.capture.captures import Captures, open_captures
from kwiresniff.capture.segments import SegmentSource
from kwiresniff.capture.tls import with_decryption

__all__ = ["Captures", "SegmentSource", "open_captures", "with_decryption"]
