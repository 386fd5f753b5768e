"""MessagePack and CBOR (RFC 8949), read by msgpack and cbor2."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_DEPTH, MAX_PACKED_BYTES, MAX_VALUES
from kwiresniff_values.plain import plain
from kwiresniff_values.problems import Misfit, missing

#: Tags that would compute, compile or parse a stranger's bytes: decimals, bigfloats, rationals, regex, MIME, sets.
_TAGS_LEFT = (4, 5, 30, 35, 36, 52, 54, 258, 260, 261)


def read_msgpack(data: bytes) -> Any:
    """The value of a MessagePack text; raises Misfit and TooMuch."""
    try:
        import msgpack
    except ImportError:
        raise missing("msgpack") from None
    _bound(data)
    try:
        # The library makes room for as many items as a header says there are.
        found = msgpack.unpackb(
            data,
            strict_map_key=False,
            timestamp=3,
            ext_hook=_extension,
            max_array_len=MAX_VALUES,
            max_map_len=MAX_VALUES,
        )
    except (msgpack.StackError, RecursionError):
        raise TooMuch(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        if "exceeds max_" in str(error):
            raise TooMuch(f"of more than {MAX_VALUES} values") from None
        raise Misfit(f"no MessagePack: {error or type(error).__name__}") from None
    except (TypeError, OverflowError) as error:
        raise Misfit(f"no MessagePack: {error}") from None
    return plain(found)


def _bound(data: bytes) -> None:
    if len(data) > MAX_PACKED_BYTES:
        raise TooMuch(f"of more than {MAX_PACKED_BYTES} bytes of MessagePack or CBOR")


def _extension(code: int, data: bytes) -> Any:
    return {"extension": code, "data": data}


def read_cbor(data: bytes) -> Any:
    """The value of a CBOR data item; raises Misfit and TooMuch."""
    try:
        import cbor2
    except ImportError:
        raise missing("cbor2") from None
    _bound(data)
    stream = io.BytesIO(data)
    semantic = {**{tag: _left_alone(tag) for tag in _TAGS_LEFT}, 2: _big, 3: _negative_big, 37: _uuid}
    try:
        decoder = cbor2.CBORDecoder(stream, max_depth=MAX_DEPTH, semantic_decoders=semantic, tag_hook=_tag)
        found = decoder.decode()
    except (cbor2.CBORDecodeError, ValueError, TypeError, OverflowError, ArithmeticError, RecursionError) as error:
        if "nesting depth" in str(error):
            raise TooMuch(f"nested deeper than {MAX_DEPTH} levels") from None
        raise Misfit(f"no CBOR: {error}") from None
    left = len(data) - stream.tell()
    if left:
        raise Misfit(f"no CBOR: {left} bytes are left over behind the value")
    return plain(found, _special)


def _left_alone(tag: int) -> Any:
    return lambda value, immutable: {"tag": tag, "value": value}


def _big(value: bytes, immutable: bool) -> int:
    """An integer of any size, though not as the key of a map: of these any number may have the same hash."""
    if immutable:
        raise ValueError("a number of any size as a key")
    return int.from_bytes(value, "big")


def _negative_big(value: bytes, immutable: bool) -> int:
    return -1 - _big(value, immutable)


def _uuid(value: bytes, immutable: bool) -> Any:
    return str(UUID(bytes=value))


def _tag(tag: Any, immutable: bool) -> Any:
    return {"tag": tag.tag, "value": tag.value}


def _special(value: Any) -> Any:
    """Simple values without a meaning, and the value that is not defined."""
    number = getattr(value, "value", None)
    return {"simple": number} if isinstance(number, int) else None
