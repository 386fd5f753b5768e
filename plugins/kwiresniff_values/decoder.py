"""The value decoder: from what a key or value names, or the user says of its topic, to what a person can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kwiresniff.plugins import Decoded, DoesNotFit
from kwiresniff_values import avro, cloud_events, connect, framing, json_schema, json_text, packed, windows
from kwiresniff_values.captured import Captured
from kwiresniff_values.formats import WITH_SCHEMA, Format, Formats
from kwiresniff_values.framing import Claim
from kwiresniff_values.limits import MAX_PAYLOAD_BYTES, MAX_PREPARED
from kwiresniff_values.plain import plain
from kwiresniff_values.primitives import READERS
from kwiresniff_values.problems import Misfit, Unusable
from kwiresniff_values.protobuf import FORMAT as PROTOBUF
from kwiresniff_values.protobuf import Messages
from kwiresniff_values.schemas import Schema, Source

Headers = Sequence[Mapping[str, Any]]
#: A schema by what it is called in sources that the user gives, or as it is in the capture.
_Key = tuple[str, str] | Schema
#: Errors that are raised; Plugins switches a decoder off that has raised a few more.
MAX_REPORTED = 5
#: Ids of registries count from 1; bytes that begin with a 0 for another reason make larger ones.
MAX_ID = 10_000_000
_FORMATS = {"AVRO": avro.FORMAT, "PROTOBUF": PROTOBUF, "JSON": json_schema.FORMAT}


class _Prepared:
    """A schema that is ready to read payloads by; ``key`` is where the decoder keeps it."""

    def __init__(self, schema: Schema, key: _Key) -> None:
        self.key = key
        self.name = schema.name
        self.format = _FORMATS[schema.kind]
        self._messages = Messages(schema) if schema.kind == "PROTOBUF" else None
        reader = {"AVRO": avro.reader, "JSON": json_schema.reader}.get(schema.kind)
        self._read = None if reader is None else reader(schema)

    def read(self, payload: bytes, indexes: Sequence[int] | None) -> Any:
        """The value; raises Misfit, TooMuch and Unusable. Without ``indexes`` they, or a name, are in the payload."""
        if self._messages is not None:
            if indexes is not None:
                return self._messages.reader(indexes)(payload)
            named = framing.message_name(payload)
            read = self._messages.reader_of(named[0]) if named is not None else None
            if named is not None and read is not None:
                return read(named[1])
            indexes, payload = framing.message_indexes(payload)
            return self._messages.reader(indexes)(payload)
        assert self._read is not None
        return self._read(payload)


class ValueDecoder:
    """Keys and values by the schemas that they name, or by the formats of their topics."""

    def __init__(self, sources: Sequence[Source], formats: Formats) -> None:
        self._captured = Captured()
        self._sources = tuple(sources)
        self._formats = formats
        self._prepared: dict[_Key, _Prepared | None] = {}
        self._reported = 0

    def __call__(self, topic: str | None, part: str, data: bytes, headers: Headers) -> Any:
        """Returns Decoded, or None for what is of no format; raises DoesNotFit and, once each, what is unusable."""
        if len(data) > MAX_PAYLOAD_BYTES:
            return None
        try:
            return self._decode(topic, part, data, headers, self._formats.of(topic, part))
        except Unusable:
            self._reported += 1
            if self._reported > MAX_REPORTED:
                return None
            raise

    def check(self) -> None:
        """Raises Unusable where a schema or a library is missing that the rules name."""
        for format in self._formats.all:
            if format.schema is not None:
                self._by_name(format)
            elif format.name in ("msgpack", "cbor"):
                _reader(format.name)(b"\0")

    def learn(self, topic: str | None, key: bytes, value: bytes) -> None:
        """A record of the topic ``_schemas``."""
        self._captured.learn(key, value)

    def enter(self, node: int, scope: Callable[[int], int]) -> None:
        """The brokers that the next records are of."""
        self._captured.enter(node, scope)

    def _decode(self, topic: str | None, part: str, data: bytes, headers: Headers, format: Format) -> Any:
        if format.name == "auto":
            return self._by_itself(topic, part, data, headers)
        if format.name in WITH_SCHEMA:
            return self._by_subject(topic, part, data, headers, format)
        if format.name == "windowed":
            window = windows.of_serializer(data)
            return None if window is None else self._windowed(window, headers)
        try:
            return Decoded(_reader(format.name)(data), None, format.name)
        except Misfit as error:
            raise DoesNotFit(format.name, error) from None

    def _by_itself(self, topic: str | None, part: str, data: bytes, headers: Headers) -> Any:
        """Decodes data that names its format or schema itself."""
        found = self._claimed(part, data, headers)
        if found is not None:
            return found
        if part == "value":
            event = cloud_events.event(data, headers)
            if event is not None:
                return self._event(event)
        elif (window := windows.windowed(topic, data)) is not None:
            return self._windowed(window, headers)
        found = _json(data)
        if found is None and not self._reported and not (topic or "").startswith("__"):  # Kafka's own begin so
            self._tell_unknown(topic, part, data, headers)
        return found

    def _tell_unknown(self, topic: str | None, part: str, data: bytes, headers: Headers) -> None:
        """Raises Unusable where a schema is named that is in no source, unless there was something else to tell."""
        for claim in framing.claims(part, data, headers):
            if not claim.doubtful and (not claim.id.isdecimal() or 0 < int(claim.id) < MAX_ID):
                where = "neither --schemas nor the capture has" if self._sources else "the capture does not have"
                raise Unusable(f"{where} the schema with {claim}, which a {part} of {topic} names")

    def _claimed(self, part: str, data: bytes, headers: Headers) -> Any:
        """By the schema that the bytes or the headers name, where a source has it."""
        for claim in framing.claims(part, data, headers):
            prepared = self._schema(claim.by, claim.id)
            if prepared is not None:
                return self._read(prepared, claim)
        return None

    def _read(self, prepared: _Prepared, claim: Claim) -> Decoded | None:
        name = f"{prepared.name} ({claim})" if claim.id not in prepared.name else prepared.name
        try:
            payload = framing.inflated(claim.payload) if claim.compressed else claim.payload
            if claim.in_json:
                return Decoded(plain(json_text.parse(payload)), name, "json")
            return Decoded(prepared.read(payload, claim.indexes), name, prepared.format)
        except Misfit as error:
            if claim.doubtful:
                return None
            raise DoesNotFit(name, error) from None
        except Unusable:
            self._prepared[prepared.key] = None
            raise

    def _by_subject(self, topic: str | None, part: str, data: bytes, headers: Headers, format: Format) -> Any:
        """Of a topic with a format: by the schema given with it, else that which is named, else the subject's."""
        if format.schema is None:
            found = self._claimed(part, data, headers)
            if found is not None:
                return found
        prepared = self._by_name(format._replace(schema=format.schema or f"{topic}-{part}"))
        try:
            return Decoded(prepared.read(data, ()), prepared.name, prepared.format)
        except Misfit as error:
            raise DoesNotFit(prepared.name, error) from None

    def _by_name(self, format: Format) -> _Prepared:
        """The schema of a format that has the name of one; raises Unusable."""
        assert format.schema is not None
        prepared = self._schema("name", format.schema)
        if prepared is None:
            raise Unusable(f"no source has a schema {format.schema}; give its folder or registry with --schemas")
        if prepared.format != format.name:
            raise Unusable(f"schema {format.schema} is of the format {prepared.format}, not of {format.name}")
        return prepared

    def _schema(self, by: str, id: str) -> _Prepared | None:
        """The schema of the first source that has it; the capture is the last, and may have more later."""
        file, _, message = id.partition("#") if by == "name" else (id, "", "")
        key = by, id
        if key not in self._prepared:
            self._keep(key, None)  # also where looking for it fails, which is told once
            for source in self._sources:
                schema = _found(source, by, file)
                if schema is not None:
                    self._keep(key, _Prepared(replace(schema, message=message or None), key))
                    break
        known = self._prepared[key]
        if known is not None:
            return known
        schema = _found(self._captured, by, file)
        if schema is None:
            return None
        schema = replace(schema, message=message or None)
        if schema not in self._prepared:
            self._keep(schema, None)
            self._keep(schema, _Prepared(schema, schema))
        return self._prepared[schema]

    def _keep(self, key: _Key, prepared: _Prepared | None) -> None:
        if key not in self._prepared and len(self._prepared) >= MAX_PREPARED:
            del self._prepared[next(iter(self._prepared))]
        self._prepared[key] = prepared

    def _event(self, event: cloud_events.Event) -> Decoded:
        members = plain(event.attributes)
        if event.data is not None:
            found = _json(event.data) if cloud_events.is_json(event.content_type) else None
            members["data"] = event.data if found is None else found.data
        return Decoded(members, None, cloud_events.FORMAT)

    def _windowed(self, window: windows.Window, headers: Headers) -> Decoded:
        """The key in front of the window by the schema that it names, else as it is."""
        inner = self._claimed("key", window.key, headers) or Decoded(window.key)
        return Decoded({"key": inner.data, "window": window.members}, inner.schema, "windowed")


def _found(source: Source, by: str, id: str) -> Schema | None:
    """The schema in a source. Raises Unusable."""
    return source.by_name(id) if by == "name" else source.by_id(by, id)


def _json(data: bytes) -> Decoded | None:
    """Objects and arrays in JSON; Connect's envelope is taken off, Debezium's events are named."""
    if data[:1] not in (b"{", b"["):
        return None
    try:
        found = json_text.parse(data)
    except Misfit:
        return None
    schema, format = None, "json"
    if connect.is_envelope(found):
        schema, format = connect.schema_name(found), connect.CONNECT
        try:
            found = connect.payload_of(found)
        except Misfit as error:
            raise DoesNotFit(schema, error) from None
    event = connect.change_event(found)
    if event is not None:
        found, format = event, connect.DEBEZIUM
    return Decoded(plain(found), schema, format)


def _reader(name: str) -> Callable[[bytes], Any]:
    readers = {
        "json": lambda data: plain(json_text.parse(data)),
        "msgpack": packed.read_msgpack,
        "cbor": packed.read_cbor,
    }
    return readers.get(name) or READERS[name]
