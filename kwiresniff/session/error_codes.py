"""The error codes of answers, for the ``errors`` of their exchanges."""

from __future__ import annotations

from typing import Any, Final, final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import ENVELOPE
from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.model import Exchange, Message

ERRORS: Final = frozenset({"error_code"})


@final
class ErrorCodes:
    """Finds error codes in answers, even broken ones; other ``leaves`` are in ``found``, as in ``BodyScanner``."""

    def __init__(self, leaves: frozenset[str] = ERRORS) -> None:
        self.found: list[tuple[str, Any]] = []
        self._leaves = leaves
        # By (api_key << 16) + version, of those that are known.
        self._scanners: dict[int, BodyScanner] = {}
        self._errors: list[tuple[str, int]] = []

    def collect(self, exchange: Exchange, response: Message, version: int) -> bool:
        """Adds the error codes of a response of a known ``version``; returns whether it reads to its end."""
        self.found.clear()
        frame, api_key = response.frame, exchange.api_key
        if frame is None:
            return True
        is_whole = self._scan(exchange, api_key, version, frame, response.body_offset, response.size_bytes)
        if api_key == ENVELOPE:
            from kwiresniff.codec.embedded import ANSWER, forwarded_answer

            answer = forwarded_answer(exchange)
            if answer is not None:
                header, inner = answer
                place = f"{ANSWER}.body."
                self._scan(exchange, header.api_key, header.api_version, inner, header.body_offset, 0, place)
        return is_whole

    def _scan(
        self,
        exchange: Exchange,
        api_key: int,
        version: int,
        frame: bytes,
        offset: int,
        size_bytes: int,
        place: str = "",
    ) -> bool:
        key = (api_key << 16) + version
        scanner = self._scanners.get(key)
        if scanner is None:
            scanner = self._scanners[key] = codec.scanner(api_key, version, "response", self._leaves)
        is_whole = scanner.scan(frame, offset, size_bytes, self._errors)
        if scanner.found:
            self.found += scanner.found
        if self._errors:
            add_errors(exchange, self._errors, place)
        return is_whole


def add_errors(exchange: Exchange, errors: list[tuple[str, int]], place: str = "") -> None:
    """Adds error codes, each with its path below ``place``."""
    for path, code in errors:
        error = schema.error(code)
        exchange.errors.append((place + path, code, error.name, error.retriable))
