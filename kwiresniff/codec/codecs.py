"""Compiled readers by API, version and direction, each made once and kept; their modules are imported then.

All raise SchemaError for an API, message or version that the definitions do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kwiresniff import schema
from kwiresniff.codec.body_walker import BodyScanner, NumberReader
from kwiresniff.codec.field_layout import is_records
from kwiresniff.codec.plan import Step, has_records, leaf_plan, passing_plan, plan
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction, Dissection, RecordsMode

if TYPE_CHECKING:
    from kwiresniff.codec.decoder_gen import Decoder, RecordSetDecoder
    from kwiresniff.codec.digests import DigestReader
    from kwiresniff.codec.text.json_bodies import BodyWriter

#: Compiled functions kept of each sort. All of Kafka's messages at all versions are about 700 in each direction, and
#: nobody meets them all; a function takes some 20 kB.
KEPT = 1024


@lru_cache(KEPT)
def decoder(api_key: int, version: int, direction: Direction, records: RecordsMode = "full") -> Decoder:
    """``body, end = decode(frame, body_offset, issues)`` for one message.

    ``frame`` is exactly one frame. ``records``: ``full`` opens record sets, ``shown`` as far as a tree shows them,
    ``headers`` reads batch headers only, ``skip`` gives their size. The decoder raises DecodeError and nothing else;
    what is wrong inside records is appended to ``issues``.
    """
    from kwiresniff.codec.decoder_gen import compile_decoder

    message = schema.message(api_key, version, direction)
    return compile_decoder(message, records, _shown_decoder if records == "shown" else _record_set_decoder)


def _record_set_decoder() -> RecordSetDecoder:
    from kwiresniff.codec.records import decode_record_set

    return decode_record_set


def _shown_decoder() -> RecordSetDecoder:
    from kwiresniff.codec.shown_records import decode_shown

    return decode_shown


@lru_cache(KEPT)
def data_decoder(name: str, version: int) -> Decoder:
    """The decoder of a message that is carried in bytes fields or stored in a log, such as
    ConsumerProtocolSubscription.
    """
    from kwiresniff.codec.decoder_gen import compile_decoder

    return compile_decoder(schema.data_message(name, version))


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
    from kwiresniff.codec.text.json_bodies import BodyWriter

    return BodyWriter(encode, is_internal)


def digest_reader(is_internal: Callable[[str], bool]) -> DigestReader:
    """The reader of digests, for analyses."""
    from kwiresniff.codec.digests import DigestReader

    return DigestReader(is_internal)


@lru_cache(KEPT)
def text_steps(api_key: int, version: int, direction: Direction) -> list[Step] | None:
    """How the body writer writes one message; None for one that it cannot write."""
    try:
        return plan(schema.message(api_key, version, direction))
    except SchemaError:
        return None


def dissect_header(kind: Direction, version: int, frame: bytes) -> Dissection:
    """Annotates the header at the front of a frame, of header ``version``."""
    from kwiresniff.codec.dissector import dissect_front

    return dissect_front(schema.header(kind, version), frame)
