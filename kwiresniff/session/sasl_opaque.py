"""SASL tokens sent as frames without a Kafka header, between requests and responses that have one.

Source: KIP-43 (after SaslHandshake v0 each token is a frame of its own), KIP-152 (which ended that). Before Kafka 0.10
GSS-API tokens begin the connection. Only its content distinguishes a token from a request.
"""

from __future__ import annotations

from typing import ClassVar

from kwiresniff.session.frame_search import STRONG, WEAK, Versions, score_request_header
from kwiresniff.session.readings import READS, read_request
from kwiresniff.session.signatures import is_gssapi_token

#: So much of a frame shows whether it is a request: header and client id.
_FRONT_BYTES = 1100


class OpaqueTokens:
    """The state of such tokens: ``expected`` from the client, ``awaiting`` answers; ``from_client`` and ``from_broker``
    until a frame of that side is none.
    """

    STATE: ClassVar[tuple[str, ...]] = ("awaiting", "expected", "from_broker", "from_client")
    __slots__ = STATE

    def __init__(self) -> None:
        self.expected = False
        self.awaiting = 0
        self.from_client = False
        self.from_broker = False

    def begin(self) -> None:
        """Expects tokens instead of messages from now on."""
        self.expected = self.from_client = self.from_broker = True

    def is_over(self) -> bool:
        """Whether no frame is a token any more."""
        return not (self.from_client or self.from_broker)


def is_request(size: int, data: bytes, versions: Versions) -> bool:
    """Whether a frame from the client is a request, no token, which shows that the tokens were accepted."""
    grade = score_request_header(size.to_bytes(4, "big") + data[:_FRONT_BYTES], 0, versions)
    return grade == STRONG or (grade == WEAK and read_request(data) == READS)


def token_mechanism(frame: bytes) -> str:
    """The mechanism of a first token, among frames of unknown APIs, or an empty text. Sources: RFC 2743 (GSSAPI), 4616
    (PLAIN), 5801 and 5802 (SCRAM), 7628 (OAUTHBEARER).
    """
    if is_gssapi_token(frame):
        return "GSSAPI"
    front = frame[:_FRONT_BYTES]
    if front[:2] in (b"n,", b"y,", b"p="):
        if b",\x01auth=" in front:
            return "OAUTHBEARER"
        return "SCRAM" if b",n=" in front and b",r=" in front else ""
    if frame.count(b"\0") == 2 and len(front) == len(frame):
        _, user, password = frame.split(b"\0")
        if user and password and _is_text(frame.replace(b"\0", b"")):
            return "PLAIN"
    return ""


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False
