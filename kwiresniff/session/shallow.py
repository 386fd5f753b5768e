"""Error codes and topic names of an exchange, without decoding its bodies."""

from __future__ import annotations

from typing import Any

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import API_VERSIONS, ENVELOPE
from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.codec.plan import Step
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Direction, Exchange, Message
from kwiresniff.session.apis import MAX_FACTS, known_versions, read_version
from kwiresniff.session.error_codes import ERRORS, add_errors
from kwiresniff.session.record_stripper import RecordStripper
from kwiresniff.session.topic_ids import NAMING_RESPONSES, TopicNameTable

_TOPICS = frozenset({"topicName", "topic_id"})


class ShallowReader:
    """Fills ``errors``, ``topics`` and the outcome of exchanges whose bodies are not asked for."""

    def __init__(self, names: TopicNameTable, *, errors: bool, topics: bool) -> None:
        self._versions = known_versions()
        self._names = names
        self._topics = topics
        self._request_leaves = _TOPICS if topics else frozenset()
        self._response_leaves = (ERRORS if errors else frozenset()) | self._request_leaves
        self._errors: list[tuple[str, int]] = []  # of the answer that is being read
        # By (api_key << 16) + version; None where there is no definition.
        self._request_scanners: dict[int, BodyScanner | None] = {}
        self._response_scanners: dict[int, BodyScanner | None] = {}
        self._strippers: dict[int, list[Step] | None] = {}

    def scan(self, exchange: Exchange) -> None:
        """Looks through the frames of a complete exchange and fills in what it finds."""
        request, response = exchange.request, exchange.response
        if request is None:
            return
        api_key: int = exchange.api_key
        key = (api_key << 16) + exchange.api_version
        found: list[tuple[str, Any]] = []
        errors = self._errors
        frame = request.frame
        if self._topics and frame is not None:
            scanner = self._request_scanners.get(key)
            if scanner is None:
                scanner = self._scanner(api_key, exchange.api_version, "request", self._request_scanners)
            if scanner is not None:
                scanner.scan(frame, request.body_offset, request.size_bytes)
                if scanner.found:
                    found += scanner.found
        understood = True
        if response is not None and (frame := response.frame) is not None:
            scanner = self._response_scanners.get(key)
            if scanner is None:
                version = read_version(exchange, "response") if api_key == API_VERSIONS else exchange.api_version
                scanner = self._scanner(api_key, version, "response", self._response_scanners)
            if scanner is None:
                understood = False
            else:
                if self._topics and api_key in NAMING_RESPONSES:
                    self._learn(api_key, exchange.api_version, response, frame)
                understood = scanner.scan(frame, response.body_offset, response.size_bytes, errors)
                if scanner.found:
                    found += scanner.found
                if errors:
                    add_errors(exchange, errors)
                elif api_key == ENVELOPE and understood and not found:
                    found += self._enveloped(exchange)
        if found:
            self._name_topics(exchange, found)
        if exchange.outcome == "ok" and (exchange.errors or not understood):
            exchange.outcome = "error" if exchange.errors else "undecoded"

    def stripper(self, exchange: Exchange, body_offset: int) -> RecordStripper | None:
        """The filter that keeps a response without its record sets while it comes in; None where it has none."""
        key = (exchange.api_key << 16) + exchange.api_version
        if key not in self._strippers:
            if len(self._strippers) >= MAX_FACTS:
                self._strippers.clear()
            try:
                self._strippers[key] = codec.stripping_plan(exchange.api_key, exchange.api_version)
            except SchemaError:
                self._strippers[key] = None
        steps = self._strippers[key]
        return RecordStripper(steps, body_offset) if steps is not None else None

    def _is_known(self, api_key: int, version: int) -> bool:
        """Whether there is a definition. Asking for one that is not there costs a hundred times as much."""
        known = self._versions.get(api_key)
        return known is not None and known[0] <= version <= known[1]

    def _scanner(
        self, api_key: int, version: int, direction: Direction, scanners: dict[int, BodyScanner | None]
    ) -> BodyScanner | None:
        """The scanner of messages of this version, where ``scan`` will find it; None where there is no definition.

        An ApiVersions may be answered in another version than was asked for; its error code leads all of them.
        """
        key = (api_key << 16) + version
        if key not in scanners:
            scanners[key] = self._make(api_key, version, direction)
        return scanners[key]

    def _enveloped(self, exchange: Exchange) -> list[tuple[str, Any]]:
        """The topics of the response inside an Envelope that has no error of its own; adds its error codes."""
        from kwiresniff.codec.embedded import ANSWER, forwarded_answer

        answer = forwarded_answer(exchange)
        if answer is None:
            return []
        header, frame = answer
        scanner = self._scanner(header.api_key, header.api_version, "response", self._response_scanners)
        if scanner is None or not scanner.scan(frame, header.body_offset, 0, self._errors):
            return []
        add_errors(exchange, self._errors, f"{ANSWER}.body.")
        return scanner.found

    def _make(self, api_key: int, version: int, direction: Direction) -> BodyScanner | None:
        if len(self._request_scanners) + len(self._response_scanners) >= MAX_FACTS:
            self._request_scanners.clear()
            self._response_scanners.clear()
        if not self._is_known(api_key, version):
            return None
        try:
            leaves = self._request_leaves if direction == "request" else self._response_leaves
            return codec.scanner(api_key, version, direction, leaves)
        except SchemaError:
            return None

    def _learn(self, api_key: int, version: int, message: Message, frame: bytes) -> None:
        """Remember the topic names of a response, as far as it is there."""
        offset = message.body_offset
        try:
            body, _ = codec.decoder(api_key, version, "response", "skip")(frame, offset, [])
        except DecodeError:
            from kwiresniff.codec.dissector import MessageBytes
            from kwiresniff.codec.folding import front_of

            definition = schema.message(api_key, version, "response")
            missing = message.size_bytes - len(frame)
            body, _ = front_of(MessageBytes(definition, frame, offset, missing=missing))
        self._names.learn(api_key, "response", body)

    def _name_topics(self, exchange: Exchange, found: list[tuple[str, Any]]) -> None:
        topics: dict[str, None] = {}
        for name, value in found:
            if name == "topic_id":
                topics[self._names.name(value) or value] = None
            else:
                topics[value] = None
        exchange.topics = tuple(topics)
