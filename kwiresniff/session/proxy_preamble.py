"""What a client and a proxy say to each other before the bytes of the connection itself: PROXY, SOCKS, HTTP CONNECT.

Sources: PROXY protocol (HAProxy, doc/proxy-protocol.txt, versions 1 and 2); SOCKS4 and SOCKS4a ("SOCKS: A protocol for
TCP proxy across firewalls", Ying-Da Lee); SOCKS5 (RFC 1928) with user name and password (RFC 1929); HTTP CONNECT
(RFC 9110, section 9.3.6).

PROXY is one message of the proxy, which names the client; it has no answer. SOCKS and CONNECT are a dialogue of a
client with its proxy, which names the broker to be dialled. Preambles may follow each other. The bytes are given as
they come, and those that were read are dropped: a password, and the headers of HTTP, are passed over and kept nowhere.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from kwiresniff.base.flows import endpoints

#: PROXY v1: a line, its end included ("maximum line lengths", proxy-protocol.txt section 2.1).
MAX_PROXY_V1_BYTES: Final = 107
#: PROXY v2: HAProxy itself reads no more than a buffer (tune.bufsize), 16 KB. The format allows 65,551 bytes.
MAX_PROXY_V2_BYTES: Final = 16 << 10
#: The request line of CONNECT: a host name has 255 bytes at most.
MAX_CONNECT_LINE_BYTES: Final = 320
#: The headers of a CONNECT request, or of its answer: twice what Squid and nginx take for a header.
MAX_CONNECT_HEADER_BYTES: Final = 16 << 10
#: Preambles one after the other: chains of proxies, and attempts to authenticate (NTLM takes three).
MAX_PREAMBLES: Final = 8

#: The first bytes of all preambles.
FIRST_OF_ANY: Final = frozenset(b"P\r\x04\x05C")

#: What ``opening`` answers about bytes that begin no preamble, or may begin one when more of them are there.
NONE: Final = ""
PERHAPS: Final = "?"

_V1: Final = "PROXY v1"
_V2: Final = "PROXY v2"
_SOCKS4: Final = "SOCKS4"
_SOCKS5: Final = "SOCKS5"
_CONNECT: Final = "HTTP CONNECT"

_V1_BEGIN: Final = b"PROXY "
_V2_BEGIN: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_V2_HEADER_BYTES: Final = 16
#: Address family and protocol of v2 -> the length of two addresses and ports. Of the others no address is a client's.
_V2_ADDRESSES: Final = {0x11: 12, 0x12: 12, 0x21: 36, 0x22: 36}
_CONNECT_BEGIN: Final = b"CONNECT "
#: Method selection of SOCKS5 (RFC 1928, section 3).
_NO_AUTHENTICATION: Final = 0
_PASSWORD: Final = 2
_NO_METHOD: Final = 0xFF
#: Length of a SOCKS5 request or reply before its address, and of address and port by type; a name has a length byte.
_SOCKS5_FRONT: Final = 4
_SOCKS5_ADDRESSES: Final = {1: 6, 4: 18}
_SOCKS5_NAME: Final = 3

#: What is expected next from the client: a preamble or what follows them all; credentials or a request of SOCKS5; the
#: rest of a password; the headers of CONNECT; nothing that is read here.
_ANY: Final = "any"
_REQUEST: Final = "request"
_SECRET: Final = "password"
_HEADERS: Final = "headers"
_REST: Final = "rest"
#: What is expected next from the proxy, of an answer: its first message, the result of the authentication, the reply.
_FIRST: Final = "first"
_AUTHENTICATED: Final = "authenticated"
_REPLY: Final = "reply"
#: The headers of an HTTP answer that others follow (RFC 9110, section 15.2).
_INTERIM: Final = "interim"

_SOCKS4_REPLIES: Final = {
    0x5B: "rejected or failed",
    0x5C: "no identd at the client",
    0x5D: "identd names another user",
}
_SOCKS5_REPLIES: Final = {
    1: "general failure",
    2: "not allowed by the ruleset",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}
_STATUS: Final = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    407: "Proxy Authentication Required",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}

_v1_line = re.compile(rb"PROXY (?:UNKNOWN[^\r\n]*|TCP([46]) (\S{1,39}) (\S{1,39}) ([0-9]{1,5}) ([0-9]{1,5}))\r\n")
_socks4_request = re.compile(
    rb"\x04\x01(?!\x00\x00)(..)(?:([^\x00]...)[^\x00-\x1f\x7f]{0,255}\x00"
    rb"|\x00\x00\x00[^\x00][^\x00-\x1f\x7f]{0,255}\x00([^\x00-\x20\x7f]{1,255})\x00)",
    re.DOTALL,
)
#: The same as far as it goes.
_socks4_front = re.compile(
    rb"\x04(?:\x01.{0,2}|\x01..(?:[^\x00].{0,3}|[^\x00]...[^\x00-\x1f\x7f]{0,255}|\x00{1,3}"
    rb"|\x00\x00\x00[^\x00][^\x00-\x1f\x7f]{0,255}(?:\x00[^\x00-\x20\x7f]{0,255})?))?\Z",
    re.DOTALL,
)
_connect_line = re.compile(rb"CONNECT (?:[^\x00-\x20\x7f@]*@)?([^\x00-\x20\x7f@]{1,255}:[0-9]{1,5}) HTTP/1\.[01]\r\n")
_status_line = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r]")
_STATUS_BYTES: Final = 13


def opening(data: bytes, answer: bytes, *, is_first: bool) -> str:
    """The name of the preamble that ``data`` begins with; NONE, or PERHAPS while there is too little of it.

    ``answer`` is what the other side has sent so far. Only what ``is_first`` of a connection can be SOCKS: two or three
    bytes of it, in the middle of a stream, show nothing.
    """
    if data.startswith(_V1_BEGIN[: len(data)]):
        if _v1_flow(data) is not None:
            return _V1
        return PERHAPS if len(data) < MAX_PROXY_V1_BYTES and b"\n" not in data else NONE
    if data.startswith(_V2_BEGIN[: len(data)]):
        return _v2_opening(data)
    if data.startswith(_CONNECT_BEGIN[: len(data)]):
        if _connect_line.match(data[:MAX_CONNECT_LINE_BYTES]):
            return _CONNECT
        return PERHAPS if len(data) < MAX_CONNECT_LINE_BYTES and b"\n" not in data else NONE
    if is_first and data[0] == 5:
        return _socks5_opening(data, answer)
    if is_first and data[0] == 4:
        return _SOCKS4 if _socks4_request.match(data) else PERHAPS if _socks4_front.match(data) else NONE
    return NONE


def _v2_opening(data: bytes) -> str:
    if len(data) < _V2_HEADER_BYTES:
        return PERHAPS
    size = _v2_bytes(data)
    if data[12] not in (0x20, 0x21) or size > MAX_PROXY_V2_BYTES:
        return NONE
    return _V2 if len(data) >= size else PERHAPS


def _socks5_opening(data: bytes, answer: bytes) -> str:
    """A greeting shows little: what follows it, or its answer, has to fit it."""
    if len(data) < 2 or len(data) < 2 + data[1]:
        return PERHAPS
    methods, rest = data[2 : 2 + data[1]], data[2 + data[1] :]
    if not methods or len(set(methods)) < len(methods):
        return NONE
    if len(answer) >= 2 and answer[0] == 5 and (answer[1] in methods or answer[1] == _NO_METHOD):
        return _SOCKS5
    if rest[:1] == b"\x01" and _PASSWORD in methods:
        return PERHAPS if len(rest) == 1 else _SOCKS5 if rest[1] else NONE
    if not b"\x05\x01\x00".startswith(rest[:3]):
        return NONE
    if len(rest) < _SOCKS5_FRONT:
        return PERHAPS
    return _SOCKS5 if rest[3] in _SOCKS5_ADDRESSES or rest[3] == _SOCKS5_NAME else NONE


class ProxyPreamble:
    """The preambles of one connection, from the first of them that ``opening`` has named.

    ``refused`` is what the proxy has answered instead of success, in words, with packet and time (ns), or None.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "_answer", "_answers", "_broker", "_by", "_client", "_count", "_left", "_next", "_passed", "_skips_body",
        "_local", "refused",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self) -> None:
        self.refused: tuple[str, int, int] | None = None
        self._client: str | None = None
        self._broker: str | None = None
        self._by: list[str] = []
        self._local = False  # the proxy speaks for itself: a health check
        self._next = _ANY
        self._count = 0
        self._left = 0  # bytes of a password
        self._passed = [0, 0]  # bytes of HTTP headers, by direction
        self._answers: list[str] = []  # preambles whose answer is still to come, the first first
        self._answer = _FIRST
        self._skips_body = False  # of an HTTP answer that was no success

    def facts(self) -> dict[str, Any]:
        """The ``proxied`` member of the connection: ``client`` and ``broker`` (``host:port``), None where no preamble
        names them, and ``by``, the names of the preambles.
        """
        return {"client": self._client, "broker": self._broker, "by": ", ".join(self._by)}

    def dialled(self) -> str | None:
        """The broker that the proxy was to dial, ``host:port``."""
        return self._broker

    def described(self, protocol: str, has_rest: bool) -> str:
        """What a connection carries that is not Kafka: ``protocol`` is that of the bytes behind the preambles, if it
        ``has_rest``, any such bytes.
        """
        by = ", ".join(self._by)
        if self.refused is not None:
            return f"{by}, refused ({self.refused[0]})"
        if has_rest:
            return f"{'an unknown protocol' if protocol == 'unknown' else protocol} behind {by}"
        return f"{by} with nothing behind it" + (" (LOCAL: a health check)" if self._local else "")

    def expects(self, is_client: bool) -> bool:
        """Whether the next bytes of that direction may be of a preamble."""
        return self._next != _REST if is_client else bool(self._answers) or self.refused is not None

    def give_up(self, is_client: bool) -> None:
        """Notes that what comes next of a direction is not its next bytes, or not what was expected."""
        if is_client:
            self._next = _REST
        else:
            self._answers.clear()

    # -- the client's bytes -------------------------------------------------------------------------------------

    def from_client(self, data: bytes, answer: bytes) -> int:
        """Reads preambles at the beginning of ``data``; returns how many bytes of it are not wanted again.

        ``answer`` is what was not read yet of the other direction.
        """
        at = 0
        while at < len(data) and self._next != _REST:
            taken = self._client_message(data[at:], answer)
            if taken <= 0:
                break
            at += taken
        return at

    def _client_message(self, data: bytes, answer: bytes) -> int:
        """How many bytes were read of one message; 0 when more are needed, or when there is none."""
        if self._next == _ANY:
            return self._preamble(data, b"" if self._answers else answer)
        if self._next == _HEADERS:
            return self._headers(data, 0)
        if self._next == _SECRET:
            taken = min(self._left, len(data))
            self._left -= taken
            if not self._left:
                self._next = _REQUEST
            return taken
        if data[0] == 1:
            return self._credentials(data)
        return self._socks5_request(data)

    def _preamble(self, data: bytes, answer: bytes) -> int:
        name = opening(data, answer, is_first=True)
        if name == PERHAPS:
            return 0
        if name == NONE or self._count == MAX_PREAMBLES:
            self._next = _REST
            return 0
        self._count += 1
        if name == _V1:
            return self._proxy_v1(data)
        if name == _V2:
            return self._proxy_v2(data)
        self._answers.append(name)
        if name == _SOCKS5:
            self._next = _REQUEST
            self._add(name)
            return 2 + data[1]
        if name == _SOCKS4:
            return self._socks4(data)
        return self._connect(data)

    def _add(self, name: str) -> None:
        if name not in self._by[-1:]:
            self._by.append(name)

    def _proxy_v1(self, data: bytes) -> int:
        self._add(_V1)
        flow = _v1_flow(data)
        if flow:
            self._client = endpoints(flow)[0]
        return data.index(b"\n") + 1

    def _proxy_v2(self, data: bytes) -> int:
        self._add(_V2)
        self._local = data[12] == 0x20
        length = _V2_ADDRESSES.get(data[13], 0)
        size = _v2_bytes(data)
        if length and not self._local and size >= _V2_HEADER_BYTES + length:
            self._client = endpoints(data[_V2_HEADER_BYTES : _V2_HEADER_BYTES + length])[0]
        return size

    def _socks4(self, data: bytes) -> int:
        self._add(_SOCKS4)
        match = _socks4_request.match(data)
        assert match is not None
        port, address, name = match.groups()
        self._broker = _address(address, port) if name is None else _named(name, port)
        return match.end()

    def _credentials(self, data: bytes) -> int:
        """The user name is not kept, the password is passed over as it comes (RFC 1929, section 2)."""
        if len(data) < 2 or len(data) < 3 + data[1]:
            return 0
        self._left = data[2 + data[1]]
        self._next = _SECRET if self._left else _REQUEST
        return 3 + data[1]

    def _socks5_request(self, data: bytes) -> int:
        size = _socks5_bytes(data)
        if not b"\x05\x01\x00".startswith(data[:3]) or size < 0:
            self._next = _REST  # another command than CONNECT, or a method that is not read here
            return 0
        if len(data) < size:
            return 0
        port = data[size - 2 : size]
        is_name = data[3] == _SOCKS5_NAME
        self._broker = _named(data[5 : size - 2], port) if is_name else _address(data[4 : size - 2], port)
        self._next = _ANY
        return size

    def _connect(self, data: bytes) -> int:
        self._add(_CONNECT)
        match = _connect_line.match(data)
        assert match is not None
        self._broker = _text(match[1])
        self._next = _HEADERS
        if self.refused is not None:
            self.refused = None
            self._skips_body = True
        return match.end() - 2  # the end of the line is the beginning of the end of the headers

    def _headers(self, data: bytes, side: int) -> int:
        """Passes over headers; their end is an empty line."""
        end = data.find(b"\r\n\r\n")
        taken = max(len(data) - 3, 0) if end < 0 else end + 4
        self._passed[side] += taken
        if self._passed[side] > MAX_CONNECT_HEADER_BYTES:
            self.give_up(side == 0)
            return 0
        if end >= 0:
            self._passed[side] = 0
            if side == 0:
                self._next = _ANY
            else:
                if self._answer == _HEADERS:
                    self._answers.pop(0)
                self._answer = _FIRST
        return taken

    # -- the proxy's bytes --------------------------------------------------------------------------------------

    def from_broker(self, data: bytes, packet: int, ns: int) -> int:
        """Reads answers at the beginning of ``data``, which begins in ``packet``; returns how many bytes of it are not
        wanted again. What follows a refusal is none of Kafka's.
        """
        at = 0
        while at < len(data) and self._answers:
            taken = self._proxy_message(data[at:], packet, ns)
            if taken <= 0:
                break
            at += taken
        return len(data) if self.refused is not None and not self._answers else at

    def _proxy_message(self, data: bytes, packet: int, ns: int) -> int:
        name = self._answers[0]
        if name == _CONNECT:
            return self._http_answer(data, packet, ns)
        if name == _SOCKS4:
            return self._end_of_answer(data, 0, 0x5A, 8, _SOCKS4_REPLIES, packet, ns)
        if self._answer == _REPLY:
            size = _socks5_bytes(data) if len(data) < 2 or not data[1] else 2
            return self._end_of_answer(data, 5, 0, size, _SOCKS5_REPLIES, packet, ns)
        if len(data) < 2:
            return 0
        if self._answer == _AUTHENTICATED:
            if data[1]:
                return self._refuse("user name or password", packet, ns, 2)
            self._answer = _REPLY
        elif data[0] != 5:
            self.give_up(False)
            return 0
        elif data[1] == _NO_METHOD:
            return self._refuse("no acceptable authentication method", packet, ns, 2)
        elif data[1] in (_NO_AUTHENTICATION, _PASSWORD):
            self._answer = _AUTHENTICATED if data[1] == _PASSWORD else _REPLY
        else:
            self.give_up(False)  # GSS-API and private methods may wrap all that follows
            self.give_up(True)
            return 0
        return 2

    def _end_of_answer(
        self, data: bytes, version: int, granted: int, size: int, replies: dict[int, str], packet: int, ns: int
    ) -> int:
        """A reply of SOCKS, ``size`` bytes: the version, and a code."""
        if data[0] != version or size < 0:
            self.give_up(False)
            return 0
        if len(data) < max(size, 2):
            return 0
        if data[1] != granted:
            return self._refuse(replies.get(data[1], f"code {data[1]}"), packet, ns, size)
        self._answers.pop(0)
        self._answer = _FIRST
        return size

    def _http_answer(self, data: bytes, packet: int, ns: int) -> int:
        if self._answer != _FIRST:
            return self._headers(data, 1)
        match = _status_line.search(data) if self._skips_body else _status_line.match(data)
        if match is None:
            if self._skips_body:
                return max(len(data) - _STATUS_BYTES, 0)
            if len(data) >= _STATUS_BYTES or not data.startswith(b"HTTP/1."[: len(data)]):
                self.give_up(False)
            return 0
        status = int(match[1])
        self._skips_body = False
        if status >= 300:
            return self._refuse(f"{status} {_STATUS.get(status, '')}".strip(), packet, ns, match.end())
        self._answer = _HEADERS if status >= 200 else _INTERIM
        return match.end() - 1

    def _refuse(self, why: str, packet: int, ns: int, size: int) -> int:
        self._answers.pop(0)
        self._answer = _FIRST
        self.refused = why, packet, ns
        return size


def _v1_flow(data: bytes) -> bytes | None:
    """Addresses and ports in a line of PROXY v1, as in a flow key; empty for UNKNOWN, None where there is no line."""
    match = _v1_line.match(data[:MAX_PROXY_V1_BYTES])
    if match is None:
        return None
    if match[1] is None:
        return b""
    from ipaddress import ip_address

    try:
        source, target = (ip_address(match[index].decode("ascii")) for index in (2, 3))
        ports = [int(match[index]).to_bytes(2, "big") for index in (4, 5)]
    except (ValueError, OverflowError):
        return None
    if {source.version, target.version} != {int(match[1])}:
        return None
    return source.packed + target.packed + ports[0] + ports[1]


def _v2_bytes(data: bytes) -> int:
    return _V2_HEADER_BYTES + int.from_bytes(data[14:16], "big")


def _socks5_bytes(data: bytes) -> int:
    """The length of a request or reply of SOCKS5, more than is there while that is not known; -1 when it is none."""
    if len(data) <= _SOCKS5_FRONT:
        return len(data) + 1
    if data[3] == _SOCKS5_NAME:
        return _SOCKS5_FRONT + 1 + data[4] + 2
    return _SOCKS5_FRONT + _SOCKS5_ADDRESSES[data[3]] if data[3] in _SOCKS5_ADDRESSES else -1


def _address(raw: bytes, port: bytes) -> str:
    return endpoints(raw + raw + port + port)[0]


def _named(name: bytes, port: bytes) -> str:
    return f"{_text(name)}:{int.from_bytes(port, 'big')}"


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
