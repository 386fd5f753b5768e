"""Frames to exchanges: which side is the broker, which response belongs to which request, what both say."""

from kwiresniff.base.depths import Depth
from kwiresniff.base.flows import endpoints
from kwiresniff.base.lazy_names import lazy_names
from kwiresniff.base.light_typing import TYPE_CHECKING
from kwiresniff.session.analyzer import Analyzer, analyze
from kwiresniff.session.topic_ids import TopicNameTable

if TYPE_CHECKING:
    from kwiresniff.session.annotation import dissect_message
    from kwiresniff.session.decode import BodyDecoder

__all__ = ["Analyzer", "BodyDecoder", "Depth", "TopicNameTable", "analyze", "dissect_message", "endpoints"]

#: Where the others are. Imported on use: who wants no bodies needs nothing that decodes them.
_HOMES = {"BodyDecoder": "decode", "dissect_message": "annotation"}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _HOMES)
