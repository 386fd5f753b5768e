"""Compiled readers by API, version and direction, each made once and kept.

All raise SchemaError for an API, message or version that the definitions do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kwiresniff import schema
from kwiresniff.codec.body_walker import BodyScanner, NumberReader
from kwiresniff.codec.digests import DigestReader
from kwiresniff.codec.dissector import dissect_front
from kwiresniff.codec.field_layout import is_records
from kwiresniff.codec.plan import Step, has_records, leaf_plan, passing_plan, plan
from kwiresniff.codec.records import decode_record_set
from kwiresniff.codec.shown_records import decode_shown
from kwiresniff.codec.text.json_bodies import BodyWriter
from kwiresniff.codec.value_reader import Decoder, RecordSetDecoder, message_decoder
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction, Dissection, RecordsMode

#: Readers kept of each sort; all of Kafka's messages at all versions are about 700 in each direction.
KEPT = 1024


@lru_cache(KEPT)
def decoder(api_key: int, version: int, direction: Direction, records: RecordsMode = "full") -> Decoder:
    """Returns ``body, end = decode(frame, body_offset, issues)``, which raises DecodeError alone; problems of records
    go to ``issues``. ``records``: ``full``, ``shown`` as in a tree, ``headers`` of batches, ``skip`` for their size.
    """
    message = schema.message(api_key, version, direction)
    return message_decoder(message, records, _shown_decoder if records == "shown" else _record_set_decoder)


def _record_set_decoder() -> RecordSetDecoder:
    return decode_record_set


def _shown_decoder() -> RecordSetDecoder:
    return decode_shown


@lru_cache(KEPT)
def data_decoder(name: str, version: int) -> Decoder:
    """The decoder of a message carried in bytes fields or stored in a log."""
    return message_decoder(schema.data_message(name, version))


def scanner(
    api_key: int, version: int, direction: Direction, leaves: frozenset[str], *, whole: bool = False
) -> BodyScanner:
    """The scanner of bodies for ``leaves``, see ``kwiresniff.codec.plan.leaf_plan``."""
    return BodyScanner(_leaf_plan(api_key, version, direction, leaves, whole))


def number_reader(api_key: int, version: int, direction: Direction, field: str) -> NumberReader:
    """The reader of the number in a field with this name."""
    return NumberReader(_leaf_plan(api_key, version, direction, frozenset({field}), False))


@lru_cache(KEPT)
def _leaf_plan(api_key: int, version: int, direction: Direction, leaves: frozenset[str], whole: bool) -> list[Step]:
    return leaf_plan(schema.message(api_key, version, direction), leaves, whole=whole)


def record_weigher(api_key: int, version: int) -> BodyScanner:
    """The scanner of a response body for the sizes in bytes of its record sets that are not empty."""
    return BodyScanner(_record_set_plan(api_key, version))


@lru_cache(KEPT)
def _record_set_plan(api_key: int, version: int) -> list[Step]:
    message = schema.message(api_key, version, "response")
    return passing_plan(message, lambda field, parent, outermost: int(is_records(field.type)))


@lru_cache(KEPT)
def stripping_plan(api_key: int, version: int) -> list[Step] | None:
    """The steps over a whole response to its record sets; None where it has none."""
    steps = passing_plan(schema.message(api_key, version, "response"))
    return steps if has_records(steps) else None


def body_writer(encode: Callable[[Any], bytes], is_internal: Callable[[str], bool]) -> BodyWriter:
    """The writer of JSON text straight from bytes (``kwiresniff.codec.text``)."""
    return BodyWriter(encode, is_internal)


def digest_reader(is_internal: Callable[[str], bool]) -> DigestReader:
    """The reader of digests, for analyses."""
    return DigestReader(is_internal)


@lru_cache(KEPT)
def text_steps(api_key: int, version: int, direction: Direction) -> list[Step] | None:
    """The plan for the JSON text of one message; None for one that cannot be written."""
    try:
        return plan(schema.message(api_key, version, direction))
    except SchemaError:
        return None


def dissect_header(kind: Direction, version: int, frame: bytes) -> Dissection:
    """Annotates the header at the front of a frame, of header ``version``."""
    return dissect_front(schema.header(kind, version), frame)
