"""Credentials in Kafka Connect's internal topics: configs of connectors and tasks by name and value, session keys.

The key with which workers sign their requests (KIP-507) is withheld whole. What begins like a config and cannot be read
is withheld as well, as is what could not be read in a topic with the name of a config topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.base.connect_records import is_config_topic, may_be_connects
from kwiresniff.base.entities import RECORD_SETS
from kwiresniff.codec.embedded.connect import SESSION_KEY, read_connect_record
from kwiresniff.model import Body, Node
from kwiresniff.session.secret_configs import is_secret_config
from kwiresniff.session.secret_records import OPENED
from kwiresniff.session.withheld import all_nodes, hide, hide_bytes, withheld

_TOPICS = ("responses", "topic_data", "topics")
_PARTITIONS = ("partitions", "partition_data")
#: What a record has in it that is a config or a session key.
_SECRET_MARKS = (b'"properties"', b'"creation-timestamp"')


def conceal_connect_records(body: Body) -> None:
    """Replaces the secrets of Connect's records in a body, in place."""
    for topic, holder, name in _record_sets(body):
        batches = holder[name]
        in_configs = is_config_topic(topic)
        if isinstance(batches, bytes):
            if in_configs:
                holder[name] = withheld(batches)
            continue
        for batch in batches if isinstance(batches, list) else ():
            for member, value in batch.items():
                if isinstance(value, bytes) and (in_configs or _is_marked(value)):
                    batch[member] = withheld(value)  # what could not be decoded is kept as it was
            for record in batch.get("records") or ():
                _conceal_record(record)


def _record_sets(body: Body) -> Iterator[tuple[Any, Body, str]]:
    """The record sets of a body: topic, and what has it under which name."""
    for topics in _TOPICS:
        for topic in body.get(topics) or ():
            name = topic.get("topic") or topic.get("name")
            for partitions in _PARTITIONS:
                for partition in topic.get(partitions) or ():
                    for field in RECORD_SETS & partition.keys():
                        yield name, partition, field


def _conceal_record(record: Body) -> None:
    key, value = record.get("key"), record.get("value")
    if not may_be_connects(key, value):
        return
    found = read_connect_record(key, value)
    decoded = record.get("decoded") or {}
    for name, raw, data in (("key", key, found and found.key), ("value", value, found and found.value)):
        if data is None:
            if name == "value" and isinstance(raw, bytes) and _is_marked(raw):
                record[name] = withheld(raw)
                decoded.pop(name, None)
        elif found is not None and _conceal(data, found.message):
            record[name] = withheld(raw)
            if name in decoded:
                _conceal(decoded[name]["data"], found.message)


def _is_marked(raw: bytes) -> bool:
    return any(mark in raw for mark in _SECRET_MARKS)


def _conceal(data: Any, message: str) -> bool:
    """Withholds the secrets in what a record holds, in place; returns whether there are any."""
    has_any = False
    for name, value in list(data.items()) if isinstance(data, dict) else list(enumerate(data)):
        if isinstance(value, dict | list):
            has_any |= _conceal(value, message)
        elif is_secret(str(name), value, message):
            data[name] = withheld(value)
            has_any = True
    return has_any


def is_secret(name: str, value: Any, message: str) -> bool:
    """Whether a value in a record of Connect, by its name there, is a secret."""
    return (
        isinstance(value, str)
        and bool(value)
        and ((message == SESSION_KEY and name == "key") or is_secret_config(name, value))
    )


def conceal_connect_nodes(root: Node) -> None:
    """Conceals the secrets of Connect's records in an annotated message."""
    for topics in root.children:
        for topic in topics.children if topics.name in _TOPICS else ():
            in_configs = any(is_config_topic(child.value) for child in topic.children)
            for record_set in all_nodes(topic):
                if record_set.name in RECORD_SETS and record_set.type.endswith("RECORDS"):
                    _conceal_record_set(record_set, in_configs)


def _conceal_record_set(record_set: Node, in_configs: bool) -> None:
    for node in all_nodes(record_set):
        if node.type in ("RECORD", "MESSAGE"):
            _conceal_record_node(node)
        unread = node.meaning == CUT_SHORT or (node.type in OPENED and node.value is None)
        if in_configs and unread and node.length > 1 and not node.children:
            hide_bytes(node)  # nobody can say what is in it


def _conceal_record_node(record: Node) -> None:
    parts = {child.name: child for child in record.children if child.name in ("key", "value")}
    raw = {name: node.value for name, node in parts.items()}
    if not may_be_connects(raw.get("key"), raw.get("value")):
        return
    found = read_connect_record(raw.get("key"), raw.get("value"))
    for name, node in parts.items():
        data = found and (found.key if name == "key" else found.value)
        if data is None:
            if name == "value" and isinstance(node.value, bytes) and _is_marked(node.value):
                node.children = []
                hide(node)
        elif found is not None and _conceal(data, found.message):
            for leaf in all_nodes(node):
                if leaf is not node and is_secret(leaf.name, leaf.value, found.message):
                    hide(leaf)
            hide(node)
