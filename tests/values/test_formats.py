"""Rules of ``--value-format``, and Kafka's own serializers."""

from __future__ import annotations

import struct

import pytest

from kwiresniff.errors import PluginError
from kwiresniff_values.formats import AUTO, Format, Formats
from kwiresniff_values.primitives import READERS
from kwiresniff_values.problems import Misfit


def test_the_first_rule_that_applies_counts() -> None:
    """Of the topic's name, which may be a pattern, and of the part; values are meant where none is given."""
    formats = Formats(["orders=avro:order.avsc", "orders/key=string", "log.*=msgpack", "cbor"])
    assert formats.of("orders", "value") == Format("avro", "order.avsc")
    assert formats.of("orders", "key") == Format("string")
    assert formats.of("log.eu", "value") == Format("msgpack")
    assert formats.of("other", "value") == formats.of(None, "value") == Format("cbor")
    assert formats.of("other", "key") == AUTO
    assert [format.name for format in formats.all] == ["avro", "string", "msgpack", "cbor"]
    assert Formats([]).of("any", "value") == AUTO


@pytest.mark.parametrize(
    "rule", ["", "orders=", "=avro", "orders=xml", "orders/header=avro", "orders=avro:", "orders=cbor:x"]
)
def test_what_is_no_rule_is_refused_with_the_text(rule: str) -> None:
    """In one line."""
    with pytest.raises(PluginError) as raised:
        Formats([rule])
    assert repr(rule) in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "form", "value"), [("short", ">h", -2), ("integer", ">i", 7), ("long", ">q", 2**40), ("double", ">d", 0.1)]
)
def test_numbers_are_big_endian(name: str, form: str, value: float) -> None:
    """As org.apache.kafka.common.serialization writes them."""
    data = struct.pack(form, value)
    assert READERS[name](data) == value
    for wrong in (data[:-1], data + b"\0"):
        with pytest.raises(Misfit):
            READERS[name](wrong)


def test_texts_are_utf_8() -> None:
    """Or do not fit."""
    assert READERS["string"]("é".encode()) == "é"
    with pytest.raises(Misfit, match="from byte 1 on"):
        READERS["string"](b"a\xff")
