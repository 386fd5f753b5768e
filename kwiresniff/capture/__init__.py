"""Capture files to TCP segments.

``open_captures(paths)`` takes files, folders, patterns and ``-``; iterating what it returns gives ``Segment``
tuples (see ``kwiresniff.model``). The only errors are CaptureError, raised before the first segment; whatever is
wrong with a capture after that is a Problem in ``Captures.problems``. Live captures are in ``capture.live``.
"""

from kwiresniff.capture.captures import Captures, open_captures
from kwiresniff.capture.segments import SegmentSource

__all__ = ["Captures", "SegmentSource", "open_captures"]
