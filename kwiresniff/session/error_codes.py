"""The error codes of answers, for the ``errors`` of their exchanges."""

from __future__ import annotations

from typing import Final, final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import ENVELOPE
from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.model import Exchange, Message

ERRORS: Final = frozenset({"error_code"})


@final
class ErrorCodes:
    """Finds error codes in the bytes of answers, whether these can be read to their end or not."""

    def __init__(self) -> None:
        # By (api_key << 16) + version as read, of which there are only as many as are known.
        self._scanners: dict[int, BodyScanner] = {}
        self._found: list[tuple[str, int]] = []

    def collect(self, exchange: Exchange, response: Message) -> None:
        """Adds the error codes of a response, and of the answer inside an Envelope."""
        if response.frame is None:
            return
        self._scan(
            exchange, exchange.api_key, response.version, response.frame, response.body_offset, response.size_bytes
        )
        if exchange.api_key != ENVELOPE:
            return
        from kwiresniff.codec.embedded import ANSWER, forwarded_answer

        answer = forwarded_answer(exchange)
        if answer is not None:
            header, frame = answer
            self._scan(exchange, header.api_key, header.api_version, frame, header.body_offset, 0, f"{ANSWER}.body.")

    def _scan(
        self,
        exchange: Exchange,
        api_key: int,
        version: int,
        frame: bytes,
        offset: int,
        size_bytes: int,
        place: str = "",
    ) -> None:
        key = (api_key << 16) + version
        scanner = self._scanners.get(key)
        if scanner is None:
            scanner = self._scanners[key] = codec.scanner(api_key, version, "response", ERRORS)
        scanner.scan(frame, offset, size_bytes, self._found)
        if self._found:
            add_errors(exchange, self._found, place)


def add_errors(exchange: Exchange, errors: list[tuple[str, int]], place: str = "") -> None:
    """Adds error codes, each with its path below ``place``."""
    for path, code in errors:
        error = schema.error(code)
        exchange.errors.append((place + path, code, error.name, error.retriable))
