"""Records in an annotated tree, shown as plugins read them."""

from __future__ import annotations

import json
from typing import Any

from kwiresniff.base.entities import holds_topics, is_topic_field
from kwiresniff.model import Dissection, Node, TopicNames
from kwiresniff.plugins import Plugins

#: A tree is for reading; whoever needs all of a large value takes JSON.
MAX_TEXT_CHARS = 4_096


def decode_dissection(dissection: Dissection, plugins: Plugins, topic_name: TopicNames) -> None:
    """Puts what a plugin makes of a key or value in its place, with the plugin's name as its meaning."""
    todo: list[tuple[Node, str, str | None]] = [(dissection.root, "", None)]
    while todo:
        node, parent, topic = todo.pop()
        topic = _topic(node, parent, topic_name) or topic
        if node.type == "RECORD":
            _decode(node, topic, plugins)
        else:
            todo += [(child, node.name if node.type != "STRUCT" else parent, topic) for child in node.children]


def _topic(node: Node, parent: str, topic_name: TopicNames) -> str | None:
    """The topic that a structure is about, when it says so."""
    for child in node.children:
        if isinstance(child.value, str) and child.value:
            if is_topic_field(child.name) or (child.name == "name" and holds_topics(parent)):
                return child.value
            if child.name == "topic_id":
                return topic_name(child.value)
    return None


def _decode(record: Node, topic: str | None, plugins: Plugins) -> None:
    parts = {child.name: child for child in record.children}
    headers = [
        {field.name: field.value for field in header.children}
        for header in (parts["headers"].children if "headers" in parts else ())
    ]
    for part in ("key", "value"):
        node = parts.get(part)
        if node is not None and isinstance(node.value, bytes) and node.value:
            found = plugins.decode(topic, part, node.value, headers)
            if found is not None:
                node.meaning, node.value = found[0], _text(found[1])


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value[:MAX_TEXT_CHARS]
    return json.dumps(value, ensure_ascii=False, default=repr)[:MAX_TEXT_CHARS]
