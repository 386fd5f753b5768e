"""What must not leave the program: credentials inside messages, replaced by their size.

Covers SASL tokens (KIP-152), SCRAM credentials (KIP-554), delegation-token HMACs (KIP-48), passwords in configs,
the same messages inside an Envelope (KIP-590), and the SCRAM credentials and passwords of the metadata log (KIP-900).
What has been decoded of such bytes is covered as well as the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from kwiresniff.codec.embedded import UNDECODED
from kwiresniff.codec.metadata_topic import METADATA_TOPIC, METADATA_TOPIC_ID
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
_SCRAM_RECORD, _CONFIG_RECORD = 11, 4
#: Fields of UserScramCredentialRecord that a password could be guessed with.
_SCRAM_FIELDS = frozenset({"salt", "stored_key", "server_key"})
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
        name = f"{direction}_data"
        inside = body.get(f"{name}_decoded")
        if body.get(name) and _envelope_is_secret(body[name], direction, inside and inside["api_key"]):
            body[name] = withheld(body[name])
        if inside:
            conceal(inside["api_key"], direction, inside["body"])
    elif where in _FETCHES:
        _conceal_metadata_records(body)


def _envelope_is_secret(data: bytes, direction: str, api_key: int | None) -> bool:
    """Whether enveloped bytes may hold a secret; ``api_key`` is that of the inner message as far as it is known."""
    if api_key is None:
        if direction == "response" or len(data) < 2:
            return direction == "response"  # it does not say what it answers
        (api_key,) = _api_key(data)
    return has_secrets(api_key, direction)


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


def _is_secret_record(value: bytes, config: Any) -> bool:
    """Whether a value of the metadata log holds a secret; ``config`` is the name in a ConfigRecord, if it is known."""
    number = _metadata_record_type(value)
    return number == _SCRAM_RECORD or (number == _CONFIG_RECORD and (config is None or is_secret_config(config)))


def _conceal_metadata_records(body: Body) -> None:
    for record in _metadata_records(body):
        value = record.get("value")
        data = record.get("decoded", {}).get("value", {}).get("data", {})
        if isinstance(value, bytes) and _is_secret_record(value, data.get("name")):
            record["value"] = withheld(value)
            for name in _SCRAM_FIELDS | {"value"}:
                if name in data:
                    data[name] = withheld(data[name])


def _metadata_records(body: Body) -> Iterator[Body]:
    """The records of the metadata log in a response to Fetch or FetchSnapshot."""
    for topic in body.get("responses") or body.get("topics") or ():
        if METADATA_TOPIC in (topic.get("topic"), topic.get("name")) or topic.get("topic_id") == METADATA_TOPIC_ID:
            for partition in topic.get("partitions") or ():
                batches = partition.get("records") or partition.get("unaligned_records")
                for batch in batches if isinstance(batches, list) else ():
                    yield from batch.get("records") or ()


def conceal_walk(api_key: int, direction: str, walk: Walk, inner_api_key: int | None = None) -> None:
    """The same for an annotated message: secret leaves lose their value and are not tied to bytes any more.

    ``inner_api_key`` is that of the message inside an Envelope, when it is known.
    """
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
        name = f"{direction}_data"
        for node in walk.root.children:
            if node.name != name or not isinstance(node.value, bytes):
                continue
            if inner_api_key is not None:
                for part in node.children:
                    conceal_walk(inner_api_key, direction, Walk(part, 0))
            if _envelope_is_secret(node.value, direction, inner_api_key):
                _conceal_nodes(node, lambda part: part.name == UNDECODED)
                _conceal_node(node)
    elif where in _FETCHES:
        from kwiresniff.codec.record_plain import CUT_SHORT  # imported here: it brings the compression codecs

        for topic in _nodes(walk.root):
            if any(child.value in (METADATA_TOPIC, METADATA_TOPIC_ID) for child in topic.children):
                for node in _nodes(topic):
                    if node.type == "RECORD":
                        _conceal_record(node)
                    elif node.meaning == CUT_SHORT:
                        # Nobody can say what is in it.
                        node.value, node.derived = {"withheld": True, "size_bytes": node.length}, True


def _conceal_record(record: Node) -> None:
    for node in record.children:
        if node.name == "value" and isinstance(node.value, bytes):
            config = next((child.value for child in node.children if child.name == "name"), None)
            if _is_secret_record(node.value, config):
                _conceal_nodes(node, lambda child: child.name in _SCRAM_FIELDS or child.name == "value")
                _conceal_node(node)


def _nodes(root: Node) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children


def _conceal_nodes(root: Node, is_secret: Callable[[Node], bool]) -> None:
    for node in _nodes(root):
        if not node.children and node.value and is_secret(node):
            _conceal_node(node)


def _conceal_node(node: Node) -> None:
    """A node with children keeps those."""
    node.value = withheld(node.value)
    node.derived = True
    if not node.children:
        node.meaning = "withheld"
