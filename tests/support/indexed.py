"""Captures indexed as ``browse`` does, in this process."""

from __future__ import annotations

from typing import Any

from kwiresniff.capture import CaptureSet, SegmentSource, open_captures, with_decryption
from kwiresniff.index import ExchangeIndex, ExchangeReader, IndexSink
from kwiresniff.index.exchange_reader import WHOLE
from kwiresniff.session import Analyzer
from tests.support.events import process


def indexed(path: Any, keylog: str | None = None) -> tuple[ExchangeIndex, ExchangeReader]:
    """Reads a capture into an index, with what reads exchanges of it again."""
    captures = open_captures([str(path)])
    source = with_decryption(captures, keylog)
    analyzer = Analyzer(IndexSink.NEEDS, tls_secrets=source.tls_secrets)
    sink = IndexSink(analyzer.topics.name)
    analyzer.give_to(sink)
    feed = source.feed if isinstance(source, CaptureSet) else None
    for step in (analyzer.read(feed) if feed is not None else process(analyzer, source), analyzer.end()):
        for _ in step:
            pass
    index = ExchangeIndex()
    index.extend(sink.take())

    def whole() -> tuple[SegmentSource, Analyzer]:
        source = with_decryption(open_captures([str(path)]), keylog)
        return source, Analyzer(WHOLE, tls_secrets=source.tls_secrets)

    again = captures.again()
    assert again is not None
    return index, ExchangeReader(index, again, captures.places, analyzer.topics, whole)
