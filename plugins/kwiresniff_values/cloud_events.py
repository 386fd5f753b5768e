"""CloudEvents 1.0 in Kafka: attributes in headers ``ce_*`` (binary mode), or one JSON object (structured mode).

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kwiresniff_values import json_text

FORMAT = "cloudevents"
_PREFIX = "ce_"
_REQUIRED = ("id", "source", "specversion", "type")
_STRUCTURED = "application/cloudevents+json"


class Event(NamedTuple):
    """The attributes of an event, and its data where that is still to be read, of the ``content_type`` or None."""

    attributes: dict[str, Any]
    content_type: str | None
    data: bytes | None


def event(data: bytes, headers: Iterable[Mapping[str, Any]]) -> Event | None:
    """The event that a record is, or None."""
    texts: dict[str, str] = {}
    for header in headers:
        value = header.get("value")
        if isinstance(value, bytes):
            texts[str(header.get("key")).lower()] = value.decode("utf-8", "replace")
    content_type = texts.get("content-type")
    attributes = {name.removeprefix(_PREFIX): value for name, value in texts.items() if name.startswith(_PREFIX)}
    if all(name in attributes for name in _REQUIRED):
        if content_type is not None:
            attributes["datacontenttype"] = content_type
        return Event(attributes, content_type, data)
    if content_type is not None and content_type.partition(";")[0].strip().lower() == _STRUCTURED:
        found = json_text.parse_object(data)
        if found is not None and all(isinstance(found.get(name), str) for name in _REQUIRED):
            return Event(found, None, None)
    return None


def is_json(content_type: str | None) -> bool:
    """Whether a media type says that the data is JSON; without one it may be."""
    media = "application/json" if content_type is None else content_type.partition(";")[0].strip().lower()
    return media.endswith(("/json", "+json"))
