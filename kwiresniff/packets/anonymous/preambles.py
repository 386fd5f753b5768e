"""Preambles of proxies without what they say: as long as those of a capture, of the same kind, and of nobody.

Lengths stay, because sequence numbers do. The formats are those of ``session.proxy_preamble``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kwiresniff.session.proxy_preamble import MAX_PROXY_V1_BYTES

#: Names of hosts are of this letter.
_LETTER: Final = b"x"
#: A port that is none.
_PORT: Final = b"\0\1"
#: PROXY v2 with addresses of no family.
_PROXY_V2: Final = b"\r\n\r\n\0\r\nQUIT\n\x21\0"
_CONNECT: Final = b"CONNECT x:1 HTTP/1.1\r\n"
_CONNECTED: Final = b"HTTP/1.1 200 \r\n"
_END: Final = b"\r\n\r\n"


def preamble(by: str, from_client: bool, size: int) -> bytes:
    """``size`` bytes that read as what one side says in a dialogue ``by`` (``proxied`` of a connection); empty where it
    cannot be so short or so long.
    """
    for name, client, proxy in _DIALOGUES:
        made = (client if from_client else proxy)(size) if name in by else b""
        if len(made) == size:
            return made
    return b""


def _proxy_v1(size: int) -> bytes:
    return b"PROXY UNKNOWN" + b" " * (size - 15) + b"\r\n" if size <= MAX_PROXY_V1_BYTES else b""


def _proxy_v2(size: int) -> bytes:
    length = max(size - len(_PROXY_V2) - 2, 0)
    return _PROXY_V2 + (length & 0xFFFF).to_bytes(2, "big") + bytes(length)


def _socks4(size: int) -> bytes:
    return b"\4\1" + _PORT + b"\x0a\0\0\0" + _LETTER * (size - 9) + b"\0"


def _socks5(size: int) -> bytes:
    return b"\5\1\0\5\1\0\3" + _name(size - 10)


def _socks5_answer(size: int) -> bytes:
    return b"\5\0\5\0\0\3" + _name(size - 9)


def _name(length: int) -> bytes:
    return bytes([length]) + _LETTER * length + _PORT if 0 < length < 256 else b""


def _headers(front: bytes) -> Callable[[int], bytes]:
    return lambda size: front + _LETTER * max(size - len(front) - len(_END), 1) + _END


#: The kinds, those with answers first: PROXY may stand before them. What the client says, and the proxy.
_DIALOGUES: Final[tuple[tuple[str, Callable[[int], bytes], Callable[[int], bytes]], ...]] = (
    ("HTTP CONNECT", _headers(_CONNECT), _headers(_CONNECTED)),
    ("SOCKS5", _socks5, _socks5_answer),
    ("SOCKS4", _socks4, lambda _: b"\0\x5a" + bytes(6)),
    ("PROXY v1", _proxy_v1, lambda _: b""),
    ("PROXY", _proxy_v2, lambda _: b""),
)
