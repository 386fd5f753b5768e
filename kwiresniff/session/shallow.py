"""Error codes and topic names of an exchange, without decoding its bodies."""

from __future__ import annotations

from typing import Any

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.codec.plan import Step
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Exchange, Message
from kwiresniff.session.apis import MAX_FACTS, known_versions, read_version
from kwiresniff.session.error_codes import ERRORS, ErrorCodes
from kwiresniff.session.record_stripper import RecordStripper
from kwiresniff.session.topic_ids import NAMING_RESPONSES, TopicNameTable

_TOPICS = frozenset({"topicName", "topic_id"})


class ShallowReader:
    """Fills ``errors``, ``topics`` and the outcome of exchanges whose bodies are not asked for."""

    def __init__(self, names: TopicNameTable, *, errors: bool, topics: bool) -> None:
        self._versions = known_versions()
        self._names = names
        self._topics = topics
        self._answers = ErrorCodes((ERRORS if errors else frozenset()) | (_TOPICS if topics else frozenset()))
        # By (api_key << 16) + version, of those that are known.
        self._requests: dict[int, BodyScanner] = {}
        self._strippers: dict[int, list[Step] | None] = {}

    def scan(self, exchange: Exchange) -> None:
        """Looks through the frames of a complete exchange and fills in what it finds."""
        request, response = exchange.request, exchange.response
        if request is None:
            return
        api_key, api_version = exchange.api_key, exchange.api_version
        found: list[tuple[str, Any]] = []
        frame = request.frame
        if self._topics and frame is not None and self._is_known(api_key, api_version):
            key = (api_key << 16) + api_version
            scanner = self._requests.get(key)
            if scanner is None:
                scanner = self._requests[key] = codec.scanner(api_key, api_version, "request", _TOPICS)
            scanner.scan(frame, request.body_offset, request.size_bytes)
            found += scanner.found
        understood = True
        if response is not None and (frame := response.frame) is not None:
            # An ApiVersions may be answered in another version than was asked for.
            version = read_version(exchange, "response") if api_key == API_VERSIONS else api_version
            understood = self._is_known(api_key, version)
            if understood:
                if self._topics and api_key in NAMING_RESPONSES:
                    self._learn(api_key, version, response, frame)
                understood = self._answers.collect(exchange, response, version)
                found += self._answers.found
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
