"""MessagePack and CBOR (RFC 8949), read by msgpack and cbor2."""

from __future__ import annotations

import io
from typing import Any

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_DEPTH, MAX_PAYLOAD_BYTES
from kwiresniff_values.plain import plain
from kwiresniff_values.problems import Misfit, missing

#: Tags whose decoders would compile, compute or parse what a stranger wrote: a regular expression, MIME, a bigfloat and
#: a decimal fraction with exponents of any size.
_TAGS_LEFT = (4, 5, 35, 36)


def read_msgpack(data: bytes) -> Any:
    """The value of a MessagePack text; raises Misfit and TooMuch.

    Read by the library's Python version: that in C makes room for as many items as a header says there are.
    """
    try:
        from msgpack.exceptions import ExtraData, StackError
        from msgpack.fallback import Unpacker
    except ImportError:
        raise missing("msgpack") from None
    unpacker = Unpacker(
        strict_map_key=False, timestamp=3, ext_hook=_extension, max_buffer_size=MAX_PAYLOAD_BYTES, raw=False
    )
    try:
        unpacker.feed(data)
        found = unpacker.unpack()
    except (StackError, RecursionError):
        raise TooMuch(f"nested deeper than {MAX_DEPTH} levels") from None
    except (ExtraData, ValueError, TypeError, OverflowError) as error:
        raise Misfit(f"no MessagePack: {error}") from None
    except Exception as error:  # OutOfData has a root of its own
        raise Misfit(f"no MessagePack: {type(error).__name__}") from None
    left = len(data) - unpacker.tell()
    if left:
        raise Misfit(f"no MessagePack: {left} bytes are left over behind the value")
    return plain(found)


def _extension(code: int, data: bytes) -> Any:
    return {"extension": code, "data": data}


def read_cbor(data: bytes) -> Any:
    """The value of a CBOR data item; raises Misfit and TooMuch."""
    try:
        import cbor2
    except ImportError:
        raise missing("cbor2") from None
    stream = io.BytesIO(data)
    semantic = {tag: _left_alone(tag) for tag in _TAGS_LEFT}
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


def _tag(tag: Any, immutable: bool) -> Any:
    return {"tag": tag.tag, "value": tag.value}


def _special(value: Any) -> Any:
    """Simple values without a meaning, and the value that is not defined."""
    number = getattr(value, "value", None)
    return {"simple": number} if isinstance(number, int) else None
