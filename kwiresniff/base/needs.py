"""What somebody needs of exchanges: how far frames are read, and in which form bodies may come.

A named tuple, never compiled (see ``kwiresniff.base.observations``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kwiresniff.base.depths import DEPTHS, Depth


class Needs(NamedTuple):
    """The needs of an analysis, an output or a filter, declared beside it; ``one | other`` satisfies both.

    ``depth`` says how far frames are read: ``headers`` (who asked what, when answered), ``errors`` (and which error
    codes came back), ``bodies`` (everything but records), ``records`` (everything). ``topics`` asks for the names of
    the topics, where bodies are not decoded, ``sessions`` for what an incremental fetch is about
    (``Exchange.fetched``), ``attempts`` for connections that never came to be, ``clusters`` for which brokers are one
    cluster.

    The others are leave to do less than decode bodies. ``digests``: of bodies that have one, the digest is enough, and
    they are decoded when somebody asks for more. ``text``: bodies may come as JSON text
    (``Message.text``), by a function that gives the text of a value. ``shown``: record sets may be decoded as far as a
    tree shows them.
    """

    depth: Depth = "records"
    topics: bool = False
    sessions: bool = False
    attempts: bool = False
    clusters: bool = False
    digests: bool = False
    text: Callable[[Any], bytes] | None = None
    shown: bool = False

    @property
    def decodes(self) -> bool:
        """Whether bodies are looked into."""
        return self.depth in ("bodies", "records")

    def __or__(self, other: object) -> Needs:
        if not isinstance(other, Needs):
            return NotImplemented
        # Leave is given by all who look into bodies.
        leave = [one for one in (self, other) if one.decodes] or [self, other]
        first, last = leave[0], leave[-1]
        return Needs(
            max(self.depth, other.depth, key=DEPTHS.index),
            self.topics or other.topics,
            self.sessions or other.sessions,
            self.attempts or other.attempts,
            self.clusters or other.clusters,
            first.digests and last.digests,
            first.text if first.text is last.text else None,
            first.shown and last.shown,
        )
