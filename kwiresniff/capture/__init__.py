"""Capture files to TCP segments.

``open_captures(paths)`` takes files, folders, patterns and ``-``; iterating what it returns gives ``Segment``
tuples (see ``kwiresniff.model``). The only errors are CaptureError, raised before the first segment; whatever is
wrong with a capture after that is a Problem in ``CaptureSet.problems``. ``with_decryption`` adds the
keys of TLS connections to them. Live captures are in ``capture.live``.
"""

from collections.abc import Callable

from kwiresniff.capture.capture_set import CaptureSet, open_captures
from kwiresniff.capture.sources import SegmentSource
from kwiresniff.model import SegmentSink, feed_of

__all__ = ["BUILT_IN", "TSHARK", "CaptureSet", "SegmentSource", "feed_from", "open_captures", "with_decryption"]

#: Who decrypts TLS.
BUILT_IN, TSHARK = "built-in", "tshark"


def feed_from(source: SegmentSource) -> Callable[[SegmentSink], bool]:
    """Returns a function that feeds the segments of ``source`` to a sink."""
    return source.feed if isinstance(source, CaptureSet) else feed_of(source)


def with_decryption(captures: CaptureSet, keylog: str | None, engine: str = BUILT_IN) -> SegmentSource:
    """``captures`` with the TLS keys in ``keylog``; with the engine TSHARK with what tshark decrypts. Raises
    CaptureError for an unusable ``keylog``.
    """
    if engine == TSHARK:
        from kwiresniff.capture.tshark_decryption import decrypted

        return decrypted(captures, keylog)
    if keylog is not None:
        captures.follow_key_log(keylog)
    return captures
