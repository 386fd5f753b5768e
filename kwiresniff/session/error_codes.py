"""The error codes of answers, for the ``errors`` of their exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import ENVELOPE
from kwiresniff.codec.body_scanner import BodyScanner
from kwiresniff.codec.embedded import ANSWER
from kwiresniff.model import Body, Exchange, Message

if TYPE_CHECKING:
    from kwiresniff.codec.error_finders import ErrorFinder

_ERRORS = frozenset({"error_code"})


@final
class ErrorCodes:
    """Finds error codes in bodies, whether these could be read to their end or not."""

    def __init__(self) -> None:
        # By (api_key << 16) + version as read, of which there are only as many as are known.
        self._finders: dict[int, ErrorFinder] = {}
        self._scanners: dict[int, BodyScanner] = {}

    def may_be_in(self, exchange: Exchange, response: Message) -> bool:
        """Whether to look for error codes in a body: most have none, and a scan says so before anything is made that
        could look. An answer inside an Envelope has its own.
        """
        if exchange.api_key == ENVELOPE or response.frame is None:
            return True
        key = (exchange.api_key << 16) + response.version
        scanner = self._scanners.get(key)
        if scanner is None:
            scanner = codec.scanner(exchange.api_key, response.version, "response", _ERRORS)
            self._scanners[key] = scanner
        return not scanner.scan(response.frame, response.body_offset) or len(scanner.found) > 0

    def collect(self, exchange: Exchange, api_key: int, version: int, body: Body, place: str = "") -> None:
        """Adds the error codes of a body; ``place`` is the path of the body itself, with a dot behind it."""
        find = self._finders.get((api_key << 16) + version)
        if find is None:
            find = codec.error_finder(api_key, version)
            self._finders[(api_key << 16) + version] = find
        add_errors(exchange, find(body), place)
        if api_key == ENVELOPE and (inner := body.get(ANSWER)):
            self.collect(exchange, inner["api_key"], inner["api_version"], inner["body"], f"{ANSWER}.body.")


def add_errors(exchange: Exchange, errors: list[tuple[str, int]], place: str = "") -> None:
    """Adds error codes, each with its path below ``place``."""
    for path, code in errors:
        error = schema.error(code)
        exchange.errors.append((place + path, code, error.name, error.retriable))
