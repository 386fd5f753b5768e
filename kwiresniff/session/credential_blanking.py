"""Credentials in a saved state: overwritten where their place is known, else left out with what stands around them.

In a request without a response they are overwritten, so that it still decodes; what can be read of them has been read
by then. In a SASL token that is not complete yet, what names the user stays to be read. Of other messages that may hold
credentials and are not complete the header is saved. Bytes of which it is not known yet what they are, segments that
came out of order and bytes under search, are left out where an authentication is under way or such a message begins.
All that is left out is reported as missing bytes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import Final

from kwiresniff.base.api_keys import SASL_AUTHENTICATE
from kwiresniff.base.connect_records import is_config_topic
from kwiresniff.base.entities import RECORD_SETS
from kwiresniff.base.fastint import i16, i32
from kwiresniff.base.header_fields import unpack_request_header
from kwiresniff.model import Direction, Dissection, Exchange, Message, Node
from kwiresniff.session.annotation import dissect_message
from kwiresniff.session.apis import known_versions, read_version
from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.session.frame_search import NO, score_request_header
from kwiresniff.session.peek import SECRET_REQUESTS, missing_bytes, runs_into_body
from kwiresniff.session.phases import SASL_OPAQUE
from kwiresniff.session.sasl_opaque import token_mechanism
from kwiresniff.session.secrets import has_secrets, may_hide
from kwiresniff.session.topic_ids import TopicNameTable
from kwiresniff.session.withheld import all_nodes
from kwiresniff.stream.frame_handler import WITHHELD
from kwiresniff.stream.frame_reader import SOUND_FRAME_BYTES

#: Valid in text, and no byte that separates the parts of a token.
_BLANK: Final = b"*"
#: The bytes of the length before a value (protocol guide, "Protocol Primitive Types"); compact types have a varint.
_LENGTH_BYTES: Final = {
    "STRING": 2, "NULLABLE_STRING": 2, "BYTES": 4, "NULLABLE_BYTES": 4, "RECORDS": 4,
}  # fmt: skip
#: The bytes of api_key, api_version, correlation_id and the length of client_id.
_HEADER_BYTES: Final = 10
#: The first version of SaslAuthenticate with compact types (KIP-482).
_FIRST_FLEXIBLE: Final = 2
#: The bytes of a response's correlation_id and an empty tag section.
_RESPONSE_FRONT_BYTES: Final = 5
#: The clear part of tokens: SCRAM's first message and second up to the proof, a JWT to its signature, PLAIN's names.
_OPEN_PARTS: Final = (
    re.compile(rb"(?:n|y|p=[^,\x00\x01]*)(?:,[^\x00\x01]*)?\Z"),
    re.compile(rb"c=[^\x00]*?,p="),
    re.compile(rb"n,[^\x00]*?\x01auth=[Bb]earer +(?:[\w-]+\.[\w-]*\.?)?"),
    re.compile(rb"[^\x00]*\x00[^\x00]*\x00?"),
)
#: Of Connect's records, the front of one with configs and the key of one with a session key, as its converter writes.
_CONNECT_MARKS: Final = (b'{"properties":', b"session-key")
#: Where the name of a message's first topic stands: client id, transactional id and name have up to 255 bytes each.
_TOPIC_FRONT_BYTES: Final = 1024
#: As much of a frame as shows whether it is a token: names in tokens have up to 1,024 bytes.
_TOKEN_FRONT_BYTES: Final = 4096


def blank_exchange(exchange: Exchange, topics: TopicNameTable) -> None:
    """Overwrites credentials in an exchange's frames, and cuts them off where record sets have any."""
    sides: tuple[tuple[Direction, Message | None], ...] = (
        ("request", exchange.request), ("response", exchange.response),
    )  # fmt: skip
    for which, message in sides:
        if message is None or message.frame is None or not has_secrets(exchange.api_key, which):
            continue
        hides = may_hide(exchange.api_key, which)
        if not hides and not _may_be_connects(message.frame):
            continue
        frame = bytearray(message.frame)
        before, message.version = message.version, read_version(exchange, which)  # it may not have been decoded yet
        tree = dissect_message(exchange, which, topics)
        if not hides:
            end = _first_secret_records(frame, tree)
            if end < len(frame):
                lost = missing_bytes(which, len(frame) - end, message.size_bytes, WITHHELD)
                exchange.problems.append(lost)
                del frame[end:]
        elif tree is None or message.version < 0:
            _blank(frame, message.body_offset, len(frame))
        else:
            for node in all_nodes(tree.root):
                if isinstance(node.value, dict) and node.value.get("withheld"):
                    _blank(frame, _data_start(frame, node), node.offset + node.length)
        message.frame, message.version = bytes(frame), before


def blank_unread(connection: ConnectionAnalyzer) -> None:
    """Removes the credentials from what has come of a connection and is not a whole message yet."""
    if not connection.started:
        return
    client, broker = connection.client, connection.broker
    sasl = connection.connection.sasl
    authenticates = connection.phase == SASL_OPAQUE or (sasl is not None and sasl.get("outcome") == "unknown")
    for half, is_withheld in ((client, _blank_request(connection)), (broker, _withhold_response(connection))):
        half.drop_queued(bool if authenticates or is_withheld else begins_credentials)
        buffer = half.resync.buffer
        if len(buffer) and (authenticates or begins_credentials(buffer.data, buffer.starts())):
            half.drop_search()


def begins_credentials(data: bytes, starts: Iterable[int] = (0,)) -> bool:
    """Whether a SASL token or a secret request begins at one of ``starts``, or Connect's configs are in the data."""
    if _may_be_connects(data):
        return True
    versions, seen = known_versions(), set[int]()
    for at in starts:
        while at not in seen and len(data) - at > _LENGTH_BYTES["BYTES"]:
            seen.add(at)
            size = i32(data, at)
            if not 0 <= size <= SOUND_FRAME_BYTES:
                break
            if score_request_header(data, at, versions) != NO:
                if i16(data, at + 4) in SECRET_REQUESTS:
                    return True
            elif token_mechanism(data[at + 4 : at + 4 + min(size, _TOKEN_FRONT_BYTES)]):
                return True
            at += 4 + size
    return False


def _may_be_connects(data: bytes) -> bool:
    """Whether part of a message may hold uncompressed records of Connect, or names a config topic."""
    front = data[:_TOPIC_FRONT_BYTES].decode("latin-1")
    return is_config_topic(front) or any(mark in data for mark in _CONNECT_MARKS)


def _blank_request(connection: ConnectionAnalyzer) -> bool:
    """Overwrites the token in the client's unfinished frame, or drops it; returns whether it dropped any."""
    frames = connection.client.frames
    if not frames.remaining:
        return False
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
        elif may_hide(api_key, "request") or _may_be_connects(data):
            frames.withhold(_HEADER_BYTES if runs_into_body(data[_HEADER_BYTES:body]) else body)
            return True
    return False


def _withhold_response(connection: ConnectionAnalyzer) -> bool:
    """Drops what may be credentials of the broker's current frame; whether it has dropped any."""
    frames = connection.broker.frames
    if not frames.remaining:
        return False
    data = b"".join(frames.parts)
    if len(data) <= _RESPONSE_FRONT_BYTES:
        return False
    if connection.phase != SASL_OPAQUE and not _may_be_connects(data):
        found = connection.in_flight.by_id.get(i32(data, 0))
        request = found[0] if isinstance(found, deque) else found
        if request is None or not may_hide(request.api_key, "response"):
            return False
    frames.withhold(_RESPONSE_FRONT_BYTES)
    return True


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


def _first_secret_records(frame: bytearray, tree: Dissection | None) -> int:
    """The offset of the first record set with credentials, behind its length; that of the end where there is none."""
    found = len(frame)
    for node in all_nodes(tree.root) if tree is not None else ():
        is_first = node.name in RECORD_SETS and node.type.endswith("RECORDS") and node.offset < found
        if is_first and any(isinstance(one.value, dict) and one.value.get("withheld") for one in all_nodes(node)):
            found = _data_start(frame, node)
    return found


def _behind_varint(data: bytes | bytearray, at: int) -> int:
    while at < len(data) and data[at] & 0x80:
        at += 1
    return at + 1


def _blank(frame: bytearray, start: int, end: int) -> None:
    if start < end:
        frame[start:end] = _BLANK * (end - start)
