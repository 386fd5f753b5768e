"""What must not leave the program: credentials inside messages, replaced by their size.

Covers SASL tokens (KIP-152), SCRAM credentials (KIP-554), delegation-token HMACs (KIP-48), passwords in configs,
the same messages inside an Envelope (KIP-590), and SCRAM records of the metadata log (KIP-900).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from kwiresniff.model import Body, Node, Walk

#: (api_key, direction) -> names of the fields that hold secrets, at any depth.
_SECRET_FIELDS: dict[tuple[int, str], frozenset[str]] = {
    (36, "request"): frozenset({"auth_bytes"}),  # SaslAuthenticate
    (36, "response"): frozenset({"auth_bytes"}),
    (38, "response"): frozenset({"hmac"}),  # CreateDelegationToken
    (39, "request"): frozenset({"hmac"}),  # RenewDelegationToken
    (40, "request"): frozenset({"hmac"}),  # ExpireDelegationToken
    (41, "response"): frozenset({"hmac"}),  # DescribeDelegationToken
    (51, "request"): frozenset({"salt", "salted_password"}),  # AlterUserScramCredentials
}
_CONFIG_APIS = frozenset({(19, "request"), (33, "request"), (44, "request"), (32, "response")})
_CONFIG_ARRAYS = frozenset({"configs", "config_entries", "synonyms"})
_ENVELOPE = 58
_FETCHES = frozenset({(1, "response"), (59, "response")})
_METADATA_TOPIC = "__cluster_metadata"
#: record types of the metadata log whose values hold secrets: UserScramCredentialRecord
_SECRET_METADATA_RECORDS = frozenset({11})
_api_key = Struct(">h").unpack_from


def withheld(value: Any) -> Any:
    """What stands in the place of a secret: its size, nothing else."""
    return {"withheld": True, "size_bytes": len(value)} if value else value


def is_secret_config(name: Any) -> bool:
    """Whether a config of that name holds a credential (``ssl.keystore.password``, ``sasl.jaas.config``, ...)."""
    if not isinstance(name, str):
        return False
    lowered = name.lower()
    return lowered.endswith(("password", "secret", "jaas.config", "keystore.key", "credential"))


def has_secrets(api_key: int, direction: str) -> bool:
    """Whether such a message may carry secrets at all."""
    where = (api_key, direction)
    return where in _SECRET_FIELDS or where in _CONFIG_APIS or where in _FETCHES or api_key == _ENVELOPE


def conceal(api_key: int, direction: str, body: Body) -> None:
    """Replace every secret in a decoded body, in place."""
    where = (api_key, direction)
    fields = _SECRET_FIELDS.get(where)
    if fields:
        _conceal_fields(body, fields)
    elif where in _CONFIG_APIS:
        _conceal_configs(body)
    elif api_key == _ENVELOPE:
        for name in ("request_data", "response_data"):
            if body.get(name) and _envelope_is_secret(body[name], direction):
                body[name] = withheld(body[name])
    elif where in _FETCHES:
        _conceal_metadata_records(body)


def _envelope_is_secret(data: bytes, direction: str) -> bool:
    if direction == "response" or len(data) < 2:
        return direction == "response"  # it does not say what it answers
    (api_key,) = _api_key(data)
    return (api_key, "request") in _SECRET_FIELDS or (api_key, "request") in _CONFIG_APIS


def _conceal_fields(value: Any, names: frozenset[str]) -> None:
    if isinstance(value, dict):
        for name, member in value.items():
            if name in names:
                value[name] = withheld(member)
            else:
                _conceal_fields(member, names)
    elif isinstance(value, list):
        for member in value:
            _conceal_fields(member, names)


def _conceal_configs(value: Any) -> None:
    if isinstance(value, dict):
        for name, member in value.items():
            if name in _CONFIG_ARRAYS:
                for config in member or ():
                    secret = is_secret_config(config.get("name"))
                    for holder in ("value", "config_value"):
                        if secret and holder in config:
                            config[holder] = withheld(config[holder])
            _conceal_configs(member)
    elif isinstance(value, list):
        for member in value:
            _conceal_configs(member)


def _metadata_record_type(value: bytes) -> int:
    """The record type behind the frame version of a metadata record value (KIP-631), or -1."""
    return value[1] if len(value) > 2 and value[0] < 0x80 and value[1] < 0x80 else -1


def _conceal_metadata_records(body: Body) -> None:
    for topic in body.get("responses") or ():
        if topic.get("topic") != _METADATA_TOPIC and topic.get("topic_id") != "AAAAAAAAAAAAAAAAAAAAAQ":
            continue
        for partition in topic.get("partitions") or ():
            records = partition.get("records")
            for batch in records if isinstance(records, list) else ():
                for record in batch.get("records") or ():
                    value = record.get("value")
                    if isinstance(value, bytes) and _metadata_record_type(value) in _SECRET_METADATA_RECORDS:
                        record["value"] = withheld(value)


def conceal_walk(api_key: int, direction: str, walk: Walk) -> None:
    """The same for an annotated message: secret leaves lose their value and are not tied to bytes any more."""
    where = (api_key, direction)
    fields = _SECRET_FIELDS.get(where)
    if fields:
        _conceal_nodes(walk.root, lambda node: node.name in fields)
    elif where in _CONFIG_APIS:
        for node in _nodes(walk.root):
            named = any(
                child.name in ("name", "config_name") and is_secret_config(child.value) for child in node.children
            )
            if named:
                _conceal_nodes(node, lambda child: child.name in ("value", "config_value"))
    elif api_key == _ENVELOPE:
        _conceal_nodes(
            walk.root,
            lambda node: (
                node.name in ("request_data", "response_data")
                and isinstance(node.value, bytes)
                and _envelope_is_secret(node.value, direction)
            ),
        )
    elif where in _FETCHES and any(node.value == _METADATA_TOPIC for node in _nodes(walk.root) if node.name == "topic"):
        _conceal_nodes(
            walk.root,
            lambda node: (
                node.name == "value"
                and isinstance(node.value, bytes)
                and _metadata_record_type(node.value) in _SECRET_METADATA_RECORDS
            ),
        )


def _nodes(root: Node) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children


def _conceal_nodes(root: Node, is_secret: Callable[[Node], bool]) -> None:
    for node in _nodes(root):
        if not node.children and node.value and is_secret(node):
            node.value = withheld(node.value)
            node.meaning = "withheld"
            node.derived = True
