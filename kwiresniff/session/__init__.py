"""Frames to exchanges: which side is the broker, which response belongs to which request, what both say."""

from kwiresniff.base.depths import Depth
from kwiresniff.base.flows import endpoints
from kwiresniff.session.analyzer import Analyzer, analyze
from kwiresniff.session.topic_ids import TopicNameTable

__all__ = ["Analyzer", "Depth", "TopicNameTable", "analyze", "endpoints"]
