"""Kafka's own serializers of single numbers and texts: org.apache.kafka.common.serialization."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kwiresniff_values.problems import Misfit


def _number(form: str) -> Callable[[bytes], Any]:
    layout = struct.Struct(form)

    def read(data: bytes) -> Any:
        if len(data) != layout.size:
            raise Misfit(f"{len(data)} bytes, not {layout.size}")
        return layout.unpack(data)[0]

    return read


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Misfit(f"no UTF-8 from byte {error.start} on") from None


#: By the names of the serializers.
READERS: dict[str, Callable[[bytes], Any]] = {
    "short": _number(">h"),
    "integer": _number(">i"),
    "long": _number(">q"),
    "float": _number(">f"),
    "double": _number(">d"),
    "string": _text,
}
