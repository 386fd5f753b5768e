"""Capture files to TCP segments.

``open_captures(paths)`` takes files, folders, patterns and ``-``; iterating what it returns gives ``Segment``
tuples (see ``kwiresniff.model``). The only errors are CaptureError, raised before the first segment; whatever is
wrong with a capture after that is a Problem in ``CaptureSet.problems``. ``with_decryption`` adds what
TLS connections carry to them. Live captures are in ``capture.live``.
"""

from collections.abc import Callable

from kwiresniff.capture.capture_set import CaptureSet, open_captures
from kwiresniff.capture.sources import SegmentSource
from kwiresniff.capture.tls_decryption import decrypted
from kwiresniff.model import SegmentSink, feed_of

__all__ = ["CaptureSet", "SegmentSource", "feed_from", "open_captures", "with_decryption"]


def feed_from(source: SegmentSource) -> Callable[[SegmentSink], bool]:
    """A function that feeds the segments of ``source`` to a sink; captures that are read as they are do it themselves,
    which costs less.
    """
    return source.feed if isinstance(source, CaptureSet) else feed_of(source)


def with_decryption(captures: CaptureSet, keylog: str | None) -> SegmentSource:
    """``captures`` with what their TLS connections carry, as far as keys are there.

    The keys are those in the file ``keylog``, and those that pcapng files have before their first packets. Without
    any, the captures are returned as they are. Raises CaptureError when ``keylog`` was asked for and cannot be used.
    """
    if keylog is None and not captures.has_secrets():
        return captures
    return decrypted(captures, keylog)
