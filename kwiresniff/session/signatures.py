"""Which protocol a connection speaks that is not Kafka, as far as its first bytes show.

Sources: for each protocol the fixed bytes that its specification puts first. What has none is not named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Final

from kwiresniff.session.tls_names import alert_name
from kwiresniff.stream.frame_reader import SOUND_FRAME_BYTES

if TYPE_CHECKING:
    import re

#: Protocol and the pattern of its first bytes, of either side; the first match counts.
_SIGNATURES: Final = (
    ("sip", rb"[A-Z]+ sips?:|SIP/2\.0 "),  # RFC 3261
    ("rtsp", rb"[A-Z_]+ rtsps?:|RTSP/[12]\.0 "),  # RFC 7826
    ("nats", rb"(?:INFO|CONNECT) \{"),
    ("http", rb"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE) \S|HTTP/[12]|HTTP\Z|PRI \* HTTP/2"),
    ("ssh", rb"SSH-"),  # RFC 4253
    ("proxy protocol", rb"PROXY |\r\n\r\n\x00\r\nQUIT\n"),
    ("mysql", rb"...\x00\x0a."),
    ("postgresql", rb"....(?:\x00\x03\x00\x00|\x04\xd2\x16\x2f)"),
    ("pop3", rb"\+OK [^\r\n]"),  # RFC 1939
    ("redis", rb"\*[0-9]+\r\n\$|\*[1-3]\r\n|PING\r\n|\+PONG|\+OK|-ERR |-NOAUTH "),
    ("mqtt", rb"\x10.{1,4}\x00(?:\x04MQTT|\x06MQIsdp)"),
    ("amqp", rb"AMQP"),
    ("stomp", rb"(?:CONNECT|CONNECTED|STOMP)\r?\n"),
    ("xmpp", rb"<\?xml[^>]*>\s*<stream:|<stream:"),  # RFC 6120
    ("mongodb", rb".{3}\x00.{8}(?:\xdd\x07|\xd4\x07)\x00\x00"),
    ("cassandra", rb"[\x03-\x05]\x00\x00.[\x01\x05]\x00\x00"),
    ("tds", rb"\x12\x01..\x00\x00[\x00\x01]\x00"),
    ("smb", rb"\x00...[\xfe\xff]SMB"),
    ("bgp", rb"\xff{16}"),  # RFC 4271
    ("bittorrent", rb"\x13BitTorrent protocol"),
    ("zabbix", rb"ZBXD[\x01-\x07]"),
    ("opc ua", rb"(?:HEL|ACK|OPN)F"),
    ("elasticsearch", rb"ES\x00\x00"),
    ("pulsar", rb".{8}\x08\x02\x12"),
    ("rocketmq", rb".{4}\x00...\{\""),
    # PeerProperties, where a SaslHandshake of Kafka would name a mechanism that begins with a zero.
    ("rabbitmq stream", rb"\x00.{3}\x00\x11\x00\x01.{4}\x00\x00\x00.\x00.[a-z]"),
    ("thrift", rb".{4}\x80\x01\x00[\x01-\x04]"),
    ("smtp or ftp", rb"[1-5][0-9]{2}[ -]"),  # RFC 5321, RFC 959
    # Four-letter words of administrators' commands.
    ("zookeeper", rb"(?:conf|cons|crst|dirs|dump|envi|gtmk|isro|mntr|ruok|srst|srvr|stat|stmk|wch[cps])\s*\Z"),
    ("text", rb"[\t\r\n\x20-\x7e]{4,}"),
)
_ALERT: Final = 0x15
#: What is said of a connection of which the capture has nothing but what reads like responses.
RESPONSES_ALONE: Final = "kafka responses"
#: Segments searched for a row of responses, its length, and the largest step between correlation ids.
MAX_ROWS: Final = 64
ENOUGH_RESPONSES: Final = 3
MAX_STEP: Final = 100
_response_front = Struct(">ii").unpack_from
_zookeeper_front = Struct(">ii").unpack_from

#: Object identifiers of Kerberos V5 (RFC 4121) and SPNEGO (RFC 4178) in an initial token (RFC 2743, 3.1).
_KERBEROS_OID = bytes.fromhex("06092a864886f712010202")
_SPNEGO_OID = bytes.fromhex("06062b0601050502")


def guess_protocol(first: bytes) -> str:
    """Name the protocol whose stream begins with ``first``; ``unknown`` when nothing gives it away."""
    if _is_tls(first):
        return "tls"
    if is_zookeeper(first):
        return "zookeeper"
    if not first:
        return "unknown"
    for name, pattern in _patterns():
        if pattern.match(first):
            return name
    return "unknown"


@cache
def _patterns() -> list[tuple[str, re.Pattern[bytes]]]:
    """The signatures, ready to be compared: thousands of connections may have to be, with two dozen each."""
    return [(name, re.compile(pattern, re.DOTALL)) for name, pattern in _SIGNATURES]


def response_protocol(first: bytes) -> tuple[str, str | None] | None:
    """The protocol of a server that answers Kafka with ``first``, and the text of a TLS alert; None when nothing gives
    it away. To be asked only about bytes where a length stands that no response of Kafka has.
    """
    name = guess_protocol(first)
    if name == "unknown":
        return None
    if name == "tls" and first[0] == _ALERT and len(first) >= 7 and first[3:5] == b"\x00\x02":
        return name, alert_name(first[6])
    return name, None


def is_certain_response(first: bytes) -> bool:
    """Whether ``first`` is a whole TLS alert in the clear, or the begin of an HTTP response."""
    alert = len(first) == 7 and first[0] == _ALERT and _is_tls(first) and first[3:6] in (b"\0\2\1", b"\0\2\2")
    # Few begin so, and compiling the expression takes as long as a hundred frames.
    return alert or (first[:5] == b"HTTP/" and _begins_http(first))


def _begins_http(first: bytes) -> bool:
    return re.match(rb"HTTP/1\.[01] [1-5][0-9]{2} ", first) is not None


def _is_tls(first: bytes) -> bool:
    return len(first) >= 3 and 0x14 <= first[0] <= 0x17 and first[1] == 3 and first[2] <= 4


def reads_like_responses(data: bytes, starts: Sequence[int]) -> bool:
    """Whether lengths lead from one of the first ``starts`` through a row of frames with rising correlation ids."""
    length = len(data)
    for start in starts[:MAX_ROWS]:
        at, count, last = start, 0, -1
        while at + 8 <= length:
            size, correlation_id = _response_front(data, at)
            if not 4 <= size <= SOUND_FRAME_BYTES or not (last < 0 or last < correlation_id <= last + MAX_STEP):
                break
            if correlation_id < 0:
                break
            at, count, last = at + 4 + size, count + 1, correlation_id
            if count >= ENOUGH_RESPONSES and at <= length:
                return True
    return False


def is_zookeeper(first: bytes) -> bool:
    """Whether ``first`` begins with ZooKeeper's ConnectRequest or ConnectResponse, by size and password length."""
    if len(first) < 32:
        return False
    size, version = _zookeeper_front(first)
    password = first[28:32] if size in (44, 45) else first[20:24] if size in (36, 37) else b""
    return version == 0 and password == b"\x00\x00\x00\x10"


def is_gssapi_token(frame: bytes) -> bool:
    """Whether a frame is an initial GSS-API token, which pre-0.10 Kerberos clients send as their first bytes."""
    front = frame[:24]
    return len(front) > 0 and front[0] == 0x60 and (_KERBEROS_OID in front or _SPNEGO_OID in front)
