"""Credentials inside messages, which must not leave the program: each is replaced by its size.

Covers SASL tokens (KIP-152), SCRAM credentials (KIP-554), delegation-token HMACs (KIP-48), passwords in configs,
the same messages inside an Envelope (KIP-590), the SCRAM credentials and passwords of the metadata log (KIP-900), and
those of Kafka Connect's config topic. What has been decoded of such bytes is covered as well as the bytes.

In a message that does not read as its definition says, a wrong length may have moved a secret into any other field. So
of a message that may hold one, and is not sound, no text and no bytes are shown.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import Any, Final

from kwiresniff.base.api_keys import (
    ALTER_CONFIGS,
    ALTER_USER_SCRAM_CREDENTIALS,
    CREATE_DELEGATION_TOKEN,
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_DELEGATION_TOKEN,
    ENVELOPE,
    EXPIRE_DELEGATION_TOKEN,
    FETCH,
    FETCH_SNAPSHOT,
    INCREMENTAL_ALTER_CONFIGS,
    PRODUCE,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SHARE_FETCH,
    STREAMS_GROUP_DESCRIBE,
    STREAMS_GROUP_HEARTBEAT,
)
from kwiresniff.base.body_members import DECODED, UNKNOWN_TAGS
from kwiresniff.base.secret_texts import EXPLANATIONS, is_secret_text
from kwiresniff.model import Body, Dissection, Message, Node, Problem
from kwiresniff.session.connect_secrets import conceal_connect_nodes, conceal_connect_records
from kwiresniff.session.peek import runs_into_body
from kwiresniff.session.secret_configs import SensitiveNames, is_secret_config, is_secret_name
from kwiresniff.session.secret_records import conceal_metadata_nodes, conceal_metadata_records
from kwiresniff.session.withheld import all_nodes, hide, hide_text, withheld, without_text

#: (api_key, direction) -> names of the fields that hold secrets, or may quote them, at any depth.
_SECRET_FIELDS: dict[tuple[int, str], frozenset[str]] = {
    (SASL_AUTHENTICATE, "request"): frozenset({"auth_bytes"}),
    (SASL_AUTHENTICATE, "response"): frozenset({"auth_bytes", "error_message"}),
    (CREATE_DELEGATION_TOKEN, "response"): frozenset({"hmac"}),
    (RENEW_DELEGATION_TOKEN, "request"): frozenset({"hmac"}),
    (EXPIRE_DELEGATION_TOKEN, "request"): frozenset({"hmac"}),
    (DESCRIBE_DELEGATION_TOKEN, "response"): frozenset({"hmac"}),
    (ALTER_USER_SCRAM_CREDENTIALS, "request"): frozenset({"salt", "salted_password"}),
    (ALTER_USER_SCRAM_CREDENTIALS, "response"): frozenset({"error_message"}),
}
#: Messages that carry configs: names, values, and what the broker says of them.
_CONFIG_APIS = frozenset(
    {
        (CREATE_TOPICS, "request"),
        (CREATE_TOPICS, "response"),
        (DESCRIBE_CONFIGS, "response"),
        (ALTER_CONFIGS, "request"),
        (ALTER_CONFIGS, "response"),  # its error messages quote values
        (INCREMENTAL_ALTER_CONFIGS, "request"),
        (INCREMENTAL_ALTER_CONFIGS, "response"),
        (STREAMS_GROUP_HEARTBEAT, "request"),  # the configs of the topics it wants
        (STREAMS_GROUP_DESCRIBE, "response"),
    }
)
_TEACHING = frozenset({(CREATE_TOPICS, "response"), (DESCRIBE_CONFIGS, "response")})
_CONFIG_NAMES: Final = ("name", "config_name", "key")
_CONFIG_VALUES: Final = ("value", "config_value")
_EXPLANATION: Final = "error_message"
_CONFIG_FIELDS: Final = frozenset({*_CONFIG_VALUES, _EXPLANATION})
#: Longer explanations are withheld without a comparison, which takes time in proportion to both.
MAX_EXPLANATION_CHARS: Final = 256
MAX_COMPARED_BYTES: Final = 1 << 14
#: What may quote a credential: characters in a row, words from four letters on, hex or base64.
_QUOTED_CHARS: Final = 6
_WORD: Final = r"\w{4,}"
_ENCODED: Final = r"[\w+/-]{6,}"
#: What may be the name of a config.
_CONFIG_NAME: Final = r"[\w.-]+"
#: Messages whose records may be those of the metadata log or of Kafka Connect.
_WITH_RECORDS = frozenset(
    {(PRODUCE, "request"), (FETCH, "response"), (FETCH_SNAPSHOT, "response"), (SHARE_FETCH, "response")}
)
_api_key = Struct(">h").unpack_from


def has_secrets(api_key: int, direction: str) -> bool:
    """Whether such a message may carry secrets at all."""
    return may_hide(api_key, direction) or (api_key, direction) in _WITH_RECORDS


def may_hide(api_key: int, direction: str) -> bool:
    """Whether any field of such a message may hold a secret when the message is not sound (``is_sound``)."""
    where = (api_key, direction)
    return where in _SECRET_FIELDS or where in _CONFIG_APIS or api_key == ENVELOPE


def teaches(api_key: int, direction: str) -> bool:
    """Whether such a message may call a config sensitive, so that what comes later is concealed."""
    return (api_key, direction) in _TEACHING


def is_sound(problems: Iterable[Problem], missing: int) -> bool:
    """Whether a message read as it was written: nothing is wrong with it, or only its end was not captured."""
    codes = [problem.code for problem in problems]
    return not codes or (missing > 0 and codes == ["truncated"])


def conceal(
    api_key: int,
    direction: str,
    body: Body,
    *,
    sound: bool = True,
    inner_sound: bool = True,
    sensitive: SensitiveNames | None = None,
    request: Message | None = None,
) -> None:
    """Replaces every secret in a decoded body, in place. ``inner_sound`` is of an Envelope's message, ``sensitive`` the
    configs called so, ``request`` what a response may quote.
    """
    where = (api_key, direction)
    if where in _WITH_RECORDS:
        conceal_metadata_records(body)
        conceal_connect_records(body)
    elif not sound and may_hide(api_key, direction):
        without_text(body)
    elif api_key == ENVELOPE:
        _conceal_envelope(direction, body, inner_sound, sensitive, request)
    elif may_hide(api_key, direction):
        _Concealment(where, sensitive, request).structure(body, False)
        return
    if direction == "response":
        conceal_explanations(body)


def conceal_explanations(body: Body) -> bool:
    """Withholds the texts in which a broker quotes a credential, in place; returns whether there are any."""
    has_any = False
    todo: list[dict[Any, Any]] = [body]  # names of members are texts, those of unknown tagged fields numbers
    while todo:
        member = todo.pop()
        for name, value in member.items():
            if isinstance(value, dict):
                todo.append(value)
            elif isinstance(value, list):
                todo += (one for one in value if isinstance(one, dict))
            elif (
                value
                and isinstance(value, str)
                and isinstance(name, str)
                and name.endswith(EXPLANATIONS)
                and is_secret_text(value)
            ):
                member[name] = withheld(value)
                has_any = True
    return has_any


def _is_secret_explanation(
    where: tuple[int, str], text: Any, request: Message | None, sensitive: SensitiveNames | None
) -> bool:
    """Whether a broker's text holds, or quotes from the ``request``, a credential or a secret config's name."""
    if not text or not isinstance(text, str):
        return False
    if where in _CONFIG_APIS:
        names = (word.strip(".") for word in re.findall(_CONFIG_NAME, text))
        return is_secret_config(text, text) or any(
            is_secret_name(name) or (sensitive is not None and name in sensitive) for name in names
        )
    if is_secret_text(text):
        return True
    if where not in _SECRET_FIELDS:
        return False
    return request is None or request.frame is None or _quotes(text, request.frame[request.body_offset :])


def _quotes(text: str, asked: bytes) -> bool:
    """Whether a text quotes any of the bytes of a request: as they are, in hex or in base64."""
    if len(text) > MAX_EXPLANATION_CHARS or len(asked) > MAX_COMPARED_BYTES:
        return True
    parts = {text[at : at + _QUOTED_CHARS] for at in range(len(text) - _QUOTED_CHARS + 1)}
    parts.update(re.findall(_WORD, text))
    return any(part.encode("utf-8", "surrogateescape") in asked for part in parts) or any(
        decoded in asked for word in re.findall(_ENCODED, text, re.ASCII) for decoded in _decoded(word)
    )


def _decoded(word: str) -> Iterator[bytes]:
    """The bytes that a word stands for in hex and in base64, where it is any."""
    with suppress(ValueError):
        yield bytes.fromhex(word)
    with suppress(ValueError):
        yield b64decode(word + "=" * (-len(word) % 4), b"-_" if {*"-_"} & {*word} else None, validate=True)


def _conceal_envelope(
    direction: str, body: Body, inner_sound: bool, sensitive: SensitiveNames | None, request: Message | None
) -> None:
    name = f"{direction}_data"
    inside = body.get(f"{name}{DECODED}")
    data = body.get(name)
    if data and isinstance(data, bytes) and _envelope_is_secret(data, direction, inside and inside["api_key"]):
        body[name] = withheld(body[name])
    if inside:
        if direction == "response" and conceal_explanations(inside["body"]):
            body[name] = withheld(body[name])
        conceal(inside["api_key"], direction, inside["body"], sound=inner_sound, sensitive=sensitive, request=request)
        if not inner_sound and inside.get("client_id") and may_hide(inside["api_key"], direction):
            inside["client_id"] = withheld(inside["client_id"])


def _envelope_is_secret(data: bytes, direction: str, api_key: int | None) -> bool:
    """Whether enveloped bytes may hold a secret; ``api_key`` is that of the inner message as far as it is known."""
    if api_key is None:
        if direction == "response" or len(data) < 2:
            return direction == "response"  # it does not say what it answers
        (api_key,) = _api_key(data)
    return has_secrets(api_key, direction)


class _Concealment:
    """Withholds fields of a body: all that hold secrets, or of configs and explanations those that are secrets."""

    def __init__(self, where: tuple[int, str], sensitive: SensitiveNames | None, request: Message | None) -> None:
        self.where = where
        self.configs = where in _CONFIG_APIS
        self.names = _CONFIG_FIELDS if self.configs else _SECRET_FIELDS[where]
        self.sensitive = sensitive
        self.request = request

    def structure(self, member: Body, is_synonym: bool) -> None:
        """A structure and all below it; ``is_synonym`` says that it is one of a config that is a secret."""
        secret = not self.configs or _is_config(member, self.sensitive) or is_synonym
        for name, value in member.items():
            if isinstance(value, list):
                for one in value:
                    if isinstance(one, dict):
                        self.structure(one, secret and self.configs and name == "synonyms")
            elif name == UNKNOWN_TAGS:
                without_text(value)
            elif isinstance(value, dict):
                self.structure(value, False)
            elif name in self.names and value and isinstance(value, str | bytes):
                if name == _EXPLANATION:
                    is_withheld = _is_secret_explanation(self.where, value, self.request, self.sensitive)
                else:
                    is_withheld = secret
                if is_withheld:
                    member[name] = withheld(value)


def _is_config(member: Body, sensitive: SensitiveNames | None) -> bool:
    """Whether a structure is a config whose value is a secret. One without a value is none, as a topic with configs."""
    for field in _CONFIG_VALUES:
        if field in member:
            return _is_secret(member, member[field], sensitive)
    return False


def _is_secret(member: Body, value: Any, sensitive: SensitiveNames | None) -> bool:
    name = None
    for field in _CONFIG_NAMES:
        if field in member:
            name = member[field]
            break
    is_sensitive = member.get("is_sensitive")
    if sensitive is not None:
        if is_sensitive is True:
            sensitive.learn(name)
        elif is_sensitive is None and name in sensitive:  # nobody says here whether it is one
            return True
    return is_secret_config(name, value, is_sensitive, member.get("config_type"))


def conceal_dissection(
    api_key: int,
    direction: str,
    dissection: Dissection,
    inner_api_key: int | None = None,
    *,
    sound: bool = True,
    sensitive: SensitiveNames | None = None,
    request: Message | None = None,
) -> None:
    """Conceals a tree; ``inner_api_key`` is that of an Envelope's message, ``request`` the one answered."""
    where = (api_key, direction)
    if where in _WITH_RECORDS:
        conceal_metadata_nodes(dissection.root)
        conceal_connect_nodes(dissection.root)
    elif not sound and may_hide(api_key, direction):
        hide_text(dissection.root)
    elif api_key == ENVELOPE:
        _conceal_envelope_nodes(direction, dissection, inner_api_key, sensitive, request)
    elif may_hide(api_key, direction):
        fields = _SECRET_FIELDS.get(where, frozenset())
        for node in all_nodes(dissection.root):
            if node.name == UNKNOWN_TAGS:
                hide_text(node)
            elif node.name in fields and node.name != _EXPLANATION:
                hide(node)
            elif where in _CONFIG_APIS and node.children:
                _conceal_config_node(node, sensitive)

    if direction == "response":
        for node in all_nodes(dissection.root):
            if node.name.endswith(EXPLANATIONS) and _is_secret_explanation(where, node.value, request, sensitive):
                hide(node)


def _conceal_config_node(node: Node, sensitive: SensitiveNames | None) -> None:
    """Hides the value of a config node that is a secret, and those of its synonyms."""
    member = {child.name: child.value for child in node.children}
    if _is_config(member, sensitive):
        for child in all_nodes(node):
            if child.name in _CONFIG_VALUES:
                hide(child)


def _conceal_envelope_nodes(
    direction: str,
    dissection: Dissection,
    inner_api_key: int | None,
    sensitive: SensitiveNames | None,
    request: Message | None,
) -> None:
    name = f"{direction}_data"
    for node in dissection.root.children:
        if node.name != name or not isinstance(node.value, bytes):
            continue
        if inner_api_key is not None:
            sound = not node.problem
            for part in node.children:
                inner = Dissection(part, 0)
                conceal_dissection(inner_api_key, direction, inner, sound=sound, sensitive=sensitive, request=request)
        quoted = any(isinstance(one.value, dict) for one in all_nodes(node) if one.name.endswith(EXPLANATIONS))
        if quoted or _envelope_is_secret(node.value, direction, inner_api_key):
            if node.problem:
                hide_text(node)
            hide(node)


def conceal_header(dissection: Dissection, *, tags: bool) -> None:
    """Conceals what a wrong length moved into a header: client ids with a zero byte, with ``tags`` tagged fields."""
    for node in all_nodes(dissection.root):
        if tags and node.name == UNKNOWN_TAGS:
            hide_text(node)
        elif node.name == "client_id" and runs_into_body(node.value):
            hide(node)
