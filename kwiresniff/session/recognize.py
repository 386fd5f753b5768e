"""What a connection that is not Kafka speaks, as far as its first bytes tell."""

from __future__ import annotations

import re
from struct import Struct

_HTTP = rb"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE) \S|HTTP/[12]|PRI \* HTTP/2"
_SMTP_OR_FTP = rb"[1-5][0-9]{2}[ -]"
_PRINTABLE_LINE = rb"[\t\r\n\x20-\x7e]{4,}"
_zookeeper_front = Struct(">ii").unpack_from

#: The ASN.1 object identifier of Kerberos V5 (RFC 4121) inside an initial GSS-API token (RFC 2743, section 3.1).
_KERBEROS_OID = bytes.fromhex("06092a864886f712010202")


def protocol_of(first: bytes) -> str:
    """Name the protocol whose stream begins with ``first``; ``unknown`` when nothing gives it away."""
    if len(first) >= 3 and 0x14 <= first[0] <= 0x17 and first[1] == 3 and first[2] <= 4:
        return "tls"
    if re.match(_HTTP, first):
        return "http"
    if first.startswith(b"SSH-"):
        return "ssh"
    if first.startswith((b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n")):
        return "proxy protocol"
    if is_zookeeper(first):
        return "zookeeper"
    if len(first) >= 4 and first[3] == 0 and first[4:5] == b"\x0a" and len(first) > 5:
        return "mysql"
    if first[4:8] in (b"\x00\x03\x00\x00", b"\x04\xd2\x16\x2f"):
        return "postgresql"
    if first.startswith((b"*1\r\n", b"*2\r\n", b"*3\r\n", b"+PONG", b"+OK")):
        return "redis"
    if first.startswith(b"AMQP"):
        return "amqp"
    if re.match(_SMTP_OR_FTP, first):
        return "smtp or ftp"
    if re.match(_PRINTABLE_LINE, first):
        return "text"
    return "unknown"


def is_zookeeper(first: bytes) -> bool:
    """A ConnectRequest (44 or 45 bytes) or ConnectResponse (36 or 37): both hold a 16-byte password."""
    if len(first) < 32:
        return False
    size, version = _zookeeper_front(first)
    password = first[28:32] if size in (44, 45) else first[20:24] if size in (36, 37) else b""
    return version == 0 and password == b"\x00\x00\x00\x10"


def is_gssapi_token(frame: bytes) -> bool:
    """Whether a frame is an initial GSS-API token, which pre-0.10 Kerberos clients send as their first bytes."""
    return frame[:1] == b"\x60" and _KERBEROS_OID in frame[:24]
