"""Credentials in the metadata log, which brokers fetch from each other (KIP-900): SCRAM users and configs.

Its records have neither keys nor headers. Where there are some, or a value that nobody can read, it is not what it
seems, and is withheld.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.base.entities import RECORD_SETS
from kwiresniff.base.known_ids import METADATA_TOPIC, METADATA_TOPIC_ID
from kwiresniff.model import Body, Node
from kwiresniff.session.secret_configs import is_secret_config
from kwiresniff.session.withheld import all_nodes, hide, hide_bytes, hide_text, withheld, without_text

#: Where responses to Fetch and FetchSnapshot have topics.
_TOPICS = frozenset({"responses", "topics"})
_SCRAM_RECORD, _CONFIG_RECORD = 11, 4
#: Fields of UserScramCredentialRecord that a password could be guessed with, and that of ConfigRecord.
_SECRET_FIELDS = frozenset({"salt", "stored_key", "server_key", "value"})


def _is_secret(value: bytes, read: bool, name: Any, config: Any) -> bool:
    """Whether a metadata log's value may hold a secret, by its record type and a ConfigRecord's fields."""
    number = value[1] if len(value) > 2 else -1
    if not read or number == _SCRAM_RECORD:
        return True
    return number == _CONFIG_RECORD and is_secret_config(name, config)


def conceal_metadata_records(body: Body) -> None:
    """Replaces what a response to Fetch or FetchSnapshot says of them, in place."""
    for batch in _batches(body):
        if not isinstance(batch, dict):
            continue
        for name, member in batch.items():
            if isinstance(member, bytes):  # what could not be decoded is kept as it was
                batch[name] = withheld(member)
        for record in batch.get("records") or () if not batch.get("is_control") else ():
            _conceal_record(record)


def _conceal_record(record: Body) -> None:
    value = record.get("value")
    data = record.get("decoded", {}).get("value", {}).get("data")
    facts = data or {}
    if isinstance(value, bytes) and _is_secret(value, data is not None, facts.get("name"), facts.get("value")):
        record["value"] = withheld(value)
        for name in _SECRET_FIELDS & facts.keys():
            facts[name] = withheld(facts[name])
    record["key"] = withheld(record.get("key"))
    without_text(record.get("headers"))


def _batches(body: Body) -> Iterator[Any]:
    """The batches of the metadata log."""
    for topic in body.get("responses") or body.get("topics") or ():
        if METADATA_TOPIC in (topic.get("topic"), topic.get("name")) or topic.get("topic_id") == METADATA_TOPIC_ID:
            for partition in topic.get("partitions") or ():
                for field in RECORD_SETS & partition.keys():
                    batches = partition[field]
                    if isinstance(batches, bytes):
                        partition[field] = withheld(batches)
                    elif isinstance(batches, list):
                        yield from batches


def conceal_metadata_nodes(root: Node) -> None:
    """Conceal the records of the metadata log in an annotated message."""
    for topics in root.children:
        if topics.name in _TOPICS:
            for topic in topics.children:
                values = [child.value for child in topic.children]
                if METADATA_TOPIC in values or METADATA_TOPIC_ID in values:
                    _conceal_topic(topic)


def _conceal_topic(topic: Node) -> None:
    for record_set in all_nodes(topic):
        if record_set.name not in RECORD_SETS or not record_set.type.endswith("RECORDS"):
            continue
        for node in all_nodes(record_set):
            if node.type == "RECORD":
                _conceal_record_node(node)
            elif node.meaning == CUT_SHORT or (node.type in OPENED and not node.children and node.length):
                hide_bytes(node)  # nobody can say what is in it


#: What has something below it, unless it could not be read.
OPENED = frozenset({"RECORDS", "COMPACT_RECORDS", "RECORD_BATCH", "MESSAGE", "ARRAY", "RECORD"})


def _conceal_record_node(record: Node) -> None:
    if any(child.name == "control" for child in record.children):
        return
    for node in record.children:
        if node.name == "value" and isinstance(node.value, bytes):
            facts = {child.name: child.value for child in node.children}
            read = bool(node.meaning) and not node.problem
            if _is_secret(node.value, read, facts.get("name"), facts.get("value")):
                for child in node.children:
                    if child.name in _SECRET_FIELDS:
                        hide(child)
                hide(node)
        elif node.name in ("key", "headers"):
            hide_text(node)
