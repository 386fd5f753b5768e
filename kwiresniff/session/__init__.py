"""Frames to exchanges: who is the broker, which response belongs to which request, what both say."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kwiresniff.base.depths import Depth
from kwiresniff.base.flows import endpoints
from kwiresniff.session.analyzer import Analyzer, analyze
from kwiresniff.session.topic_ids import TopicNameTable

if TYPE_CHECKING:
    from kwiresniff.session.annotation import dissect_message
    from kwiresniff.session.decode import BodyDecoder

__all__ = ["Analyzer", "BodyDecoder", "Depth", "TopicNameTable", "analyze", "dissect_message", "endpoints"]

if not TYPE_CHECKING:  # mypy would take any name for one of this package

    def __getattr__(name: str) -> Any:
        # Imported on use: who wants no bodies needs nothing that decodes them.
        home = {"BodyDecoder": "decode", "dissect_message": "annotation"}.get(name)
        if home is not None:
            return getattr(import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
