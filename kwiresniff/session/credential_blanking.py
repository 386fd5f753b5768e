"""Credentials in the frames of a saved state: overwritten in place, so that the frames still decode.

A request without a response is saved as it came. What can be read of its credentials has been read by then. Of a
request that is not complete yet the part is saved that has come; in a SASL token, what names the user stays to be read.
"""

from __future__ import annotations

import re
from typing import Final

from kwiresniff.base.api_keys import (
    ALTER_USER_SCRAM_CREDENTIALS,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
)
from kwiresniff.base.header_fields import unpack_request_header
from kwiresniff.model import Direction, Exchange, Message, Node
from kwiresniff.session.annotation import dissect_message
from kwiresniff.session.apis import read_version
from kwiresniff.session.connection_state import ConnectionState
from kwiresniff.session.phases import SASL_OPAQUE
from kwiresniff.session.secrets import may_hide
from kwiresniff.session.topic_ids import TopicNameTable
from kwiresniff.session.withheld import all_nodes

#: Valid in text, and no byte that separates the parts of a token.
_BLANK: Final = b"*"
#: The bytes of the length before a value (protocol guide, "Protocol Primitive Types"); compact types have a varint.
_LENGTH_BYTES: Final = {"STRING": 2, "NULLABLE_STRING": 2, "BYTES": 4, "NULLABLE_BYTES": 4}
#: The bytes of api_key, api_version, correlation_id and the length of client_id.
_HEADER_BYTES: Final = 10
#: The first version of SaslAuthenticate with compact types (KIP-482).
_FIRST_FLEXIBLE: Final = 2
#: Requests of which nothing behind the header is saved before they are complete. Those with configs are not among them:
#: most of what they hold is to be read on.
_CREDENTIAL_APIS: Final = frozenset({ALTER_USER_SCRAM_CREDENTIALS, EXPIRE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN})
#: Of the tokens that hold more than credentials, the part before those: the message with which SCRAM begins (RFC 5802),
#: its second one up to the proof, a JSON Web Token up to the signature (RFC 7628), PLAIN's two names (RFC 4616).
_OPEN_PARTS: Final = (
    re.compile(rb"(?s)[nyp][^\x00\x01]*$"),
    re.compile(rb"c=[^\x00]*?,p="),
    re.compile(rb"n,[^\x00]*?\x01auth=[Bb]earer +(?:[\w-]+\.[\w-]*\.?)?"),
    re.compile(rb"[^\x00]*\x00[^\x00]*\x00?"),
)


def blank_exchange(exchange: Exchange, topics: TopicNameTable) -> None:
    """Overwrites the credentials in the frames of an exchange; ``topics`` knows which configs are sensitive."""
    sides: tuple[tuple[Direction, Message | None], ...] = (
        ("request", exchange.request), ("response", exchange.response),
    )  # fmt: skip
    for which, message in sides:
        if message is None or message.frame is None or not may_hide(exchange.api_key, which):
            continue
        frame = bytearray(message.frame)
        before, message.version = message.version, read_version(exchange, which)  # it may not have been decoded yet
        tree = dissect_message(exchange, which, topics)
        if tree is None or message.version < 0:
            _blank(frame, message.body_offset, len(frame))
        else:
            for node in all_nodes(tree.root):
                if isinstance(node.value, dict) and node.value.get("withheld"):
                    _blank(frame, _data_start(frame, node), node.offset + node.length)
        message.frame, message.version = bytes(frame), before


def blank_unfinished(connection: ConnectionState) -> None:
    """Overwrites the credentials in what has come of the request that its client is sending."""
    frames = connection.client.frames if connection.started else None
    if frames is None or not frames.remaining or frames.filter is not None:
        return
    data = b"".join(frames.parts)
    if connection.phase == SASL_OPAQUE:
        frames.parts = [_blanked_token(data, 0)]
    elif len(data) >= _HEADER_BYTES:
        api_key, api_version, _, length = unpack_request_header(data)
        body = _HEADER_BYTES + max(length, 0)
        if api_key == SASL_AUTHENTICATE:
            # An empty tag section and a varint, or a length of four bytes.
            start = _behind_varint(data, body + 1) if api_version >= _FIRST_FLEXIBLE else body + 4
            frames.parts = [_blanked_token(data, start)]
        elif api_key in _CREDENTIAL_APIS:
            frames.parts = [data[:body] + _BLANK * (len(data) - body)]


def _blanked_token(data: bytes, start: int) -> bytes:
    """The data with the token at ``start`` overwritten from where it holds credentials."""
    found = [pattern.match(data[start:]) for pattern in _OPEN_PARTS]
    kept = start + next((match.end() for match in found if match), 0)
    return data[:kept] + _BLANK * (len(data) - kept)


def _data_start(frame: bytes | bytearray, node: Node) -> int:
    """The offset of a value behind its length."""
    if node.type.startswith("COMPACT_"):
        return _behind_varint(frame, node.offset)
    return node.offset + _LENGTH_BYTES.get(node.type, 0)


def _behind_varint(data: bytes | bytearray, at: int) -> int:
    while at < len(data) and data[at] & 0x80:
        at += 1
    return at + 1


def _blank(frame: bytearray, start: int, end: int) -> None:
    if start < end:
        frame[start:end] = _BLANK * (end - start)
