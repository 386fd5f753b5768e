"""Frames to exchanges: who is the broker, which response belongs to which request, what both say."""

from kwiresniff.session.analyzer import Analyzer, Depth, analyze
from kwiresniff.session.decode import BodyDecoder, annotate
from kwiresniff.session.flows import endpoints
from kwiresniff.session.topics import Topics

__all__ = ["Analyzer", "BodyDecoder", "Depth", "Topics", "analyze", "annotate", "endpoints"]
