"""The decoder: which schema or format a key or value is read by, and what is said when that cannot be."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastavro")

from kwiresniff.errors import PluginError
from kwiresniff.plugins import Decoded, DoesNotFit, PluginOptions
from kwiresniff.plugins.answers import TooMuch
from kwiresniff.plugins.loading import load_plugins
from kwiresniff_values.decoder import MAX_REPORTED, ValueDecoder
from kwiresniff_values.folder import Folder
from kwiresniff_values.formats import Formats
from kwiresniff_values.limits import MAX_PAYLOAD_BYTES, MAX_PREPARED
from kwiresniff_values.problems import Unusable

FRAME = b"\0\0\0\0\7"
START = 1_767_323_045_678


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "7.avsc").write_text('"string"')
    (tmp_path / "orders-value.avsc").write_text('"long"')
    (tmp_path / "8.avsc").write_text("{")
    (tmp_path / "9.json").write_text('{"$ref": "http://127.0.0.1:1/x"}')
    return tmp_path


def decoder(folder: Path, *rules: str) -> ValueDecoder:
    return ValueDecoder([Folder(str(folder))], Formats(rules))


def test_the_schema_that_is_named_counts(folder: Path) -> None:
    """Of a key or a value."""
    decode = decoder(folder)
    assert decode("t", "value", FRAME + b"\2a", []) == Decoded("a", "7", "avro")
    assert decode("t", "key", FRAME + b"\2a", []) == Decoded("a", "7", "avro")
    with pytest.raises(DoesNotFit, match="does not fit 7: the value: 1 bytes, of which 0 are there"):
        decode("t", "value", FRAME + b"\2", [])


def test_a_number_of_eight_bytes_that_does_not_fit_is_a_number(folder: Path) -> None:
    """It only looks as if it named a schema."""
    assert decoder(folder)("t", "value", struct.pack(">q", 7 << 24 | 5), []) is None


def test_rules_count_where_nothing_is_named(folder: Path) -> None:
    """By the file that is told, else by the subject of the topic."""
    decode = decoder(folder, "orders=avro", "other=avro:7.avsc", "n/key=long", "w/key=windowed", "j=json")
    assert decode("orders", "value", b"\2", []) == Decoded(1, "orders-value", "avro")
    assert decode("orders", "value", FRAME + b"\2a", []) == Decoded("a", "7", "avro")
    assert decode("other", "value", b"\2a", []) == Decoded("a", "7", "avro")
    assert decode("n", "key", struct.pack(">q", -5), []) == Decoded(-5, None, "long")
    assert decode("j", "value", b"5", []) == Decoded(5, None, "json")
    found = decode("w", "key", FRAME + b"\2a" + struct.pack(">q", START), [])
    assert found.data["key"] == "a" and found.data["window"]["start_ms"] == START
    with pytest.raises(DoesNotFit, match="does not fit long: 1 bytes, not 8"):
        decode("n", "key", b"x", [])
    with pytest.raises(DoesNotFit, match="orders-value"):
        decode("orders", "value", b"\2\2", [])


def test_what_names_nothing_and_says_nothing_is_left(folder: Path) -> None:
    """Formats that any bytes may be of are not guessed."""
    decode = decoder(folder)
    for data in (b"text", b"5", b"\x81\xa1a\1", b"\xa1\x61a\1", b"{nearly", b"\3\0"):
        assert decode("t", "value", data, []) is None
    assert decode("t", "value", b"[1]", []) == Decoded([1], None, "json")


def test_a_payload_beyond_the_bound_is_left(folder: Path) -> None:
    """Everything is proportional to it."""
    decode = decoder(folder, "big=string")
    assert decode("big", "value", b"x" * MAX_PAYLOAD_BYTES, []) is not None
    assert decode("big", "value", b"x" * (MAX_PAYLOAD_BYTES + 1), []) is None


def test_json_within_a_payload_is_bounded(folder: Path) -> None:
    """In levels that can be shown."""
    with pytest.raises(TooMuch):
        decoder(folder)("t", "value", b"[" * 70 + b"]" * 70, [])
    assert decoder(folder)("t", "value", b"[" * 100_000, []) is None


def test_a_schema_that_is_unusable_is_told_once(folder: Path) -> None:
    """Whether that is seen when it is prepared or when it is used."""
    decode = decoder(folder)
    for number, data in ((8, b"\2a"), (9, b"{}")):
        with pytest.raises(Unusable):
            decode("t", "value", b"\0\0\0\0" + bytes([number]) + data, [])
        assert decode("t", "value", b"\0\0\0\0" + bytes([number]) + data, []) is None


def test_a_schema_that_is_in_no_source_is_told_once(folder: Path) -> None:
    """Bytes that begin with a 0 for another reason have longer ids, or are Kafka's own."""
    decode = decoder(folder)
    assert decode("t", "value", b"\0\x7f\0\0\1abcdef", []) is None
    assert decode("__transaction_state", "key", b"\0\0\0\7billing", []) is None
    said = "neither --schemas nor the capture has the schema with id 77, which a value of t names"
    with pytest.raises(Unusable, match=said):
        decode("t", "value", b"\0\0\0\0\x4dabcdef", [])
    assert decode("t", "value", b"\0\0\0\0\x4eabcdef", []) is None


def test_what_is_unusable_never_switches_the_decoder_off(folder: Path) -> None:
    """However many schemas are."""
    for number in range(100, 130):
        (folder / f"{number}.avsc").write_text("{")
    plugins = load_plugins([], PluginOptions(schemas=(str(folder),)))
    for number in range(100, 130):
        plugins.decode("t", "value", b"\0\0\0\0" + bytes([number]) + b"\2a", [])
    assert plugins.decode("t", "value", FRAME + b"\2a", []) == ("values", Decoded("a", "7", "avro"))
    said = [problem.message for problem in plugins.take_problems()]
    assert len(said) == 1 and "schema 100 is no JSON" in said[0]
    assert MAX_REPORTED < 10


def test_schemas_are_learnt_while_reading(folder: Path) -> None:
    """What was not there is looked for again then."""
    decode = decoder(folder)
    data = b"\0\x7f\0\0\2" + b"\2a!!"
    assert decode("t", "value", data, []) is None
    value = {"subject": "s", "version": 1, "id": 0x7F000002, "schema": '{"type": "string"}'}
    decode.learn("_schemas", b'{"keytype": "SCHEMA"}', json.dumps(value).encode())
    with pytest.raises(DoesNotFit, match=r"s version 1 \(id 2130706434\): 2 bytes are left over"):
        decode("t", "value", data, [])


def test_prepared_schemas_are_bounded(folder: Path) -> None:
    """The oldest is prepared again when it is needed."""
    decode = decoder(folder)
    for number in range(MAX_PREPARED + 50):
        decode("t", "value", b"\0\x7f" + struct.pack(">H", number) + b"\0x" * 3, [])
    assert len(decode._prepared) == MAX_PREPARED
    assert decode("t", "value", FRAME + b"\2a", []) == Decoded("a", "7", "avro")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (PluginOptions(schemas=("/no/such/folder",)), "no such file or folder"),
        (PluginOptions(schemas=("ftp://ada:secret@host",)), "not valid"),
        (PluginOptions(value_formats=("orders=xml",)), "no format 'xml'"),
        (PluginOptions(value_formats=("orders=avro:x.avsc",)), "no source has a schema x.avsc"),
    ],
)
def test_options_that_are_wrong_are_told_before_anything_is_read(options: PluginOptions, why: str) -> None:
    """In one line without a password."""
    with pytest.raises(PluginError, match=why) as raised:
        load_plugins([], options)
    assert "secret" not in str(raised.value)


def test_without_options_nothing_is_decoded() -> None:
    """It costs every command that reads records to do so."""
    assert "values" not in [plugin.name for plugin in load_plugins().loaded]


def test_cloud_events_are_read_in_both_modes(folder: Path) -> None:
    """The example of the specification's Kafka binding."""
    decode = decoder(folder)
    attributes = {"specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext", "id": "1234-1234-1234"}
    headers: list[dict[str, Any]] = [
        {"key": f"ce_{name}", "value": value.encode()} for name, value in attributes.items()
    ]
    media = {"key": "content-type", "value": b"application/json; charset=utf-8"}
    said = {**attributes, "datacontenttype": "application/json; charset=utf-8", "data": {"a": 1}}
    assert decode("t", "value", b'{"a": 1}', [*headers, media]) == Decoded(said, None, "cloudevents")
    found = decode("t", "value", b"\xff", [*headers, {"key": "content-type", "value": b"image/png"}])
    assert found.data == {**attributes, "datacontenttype": "image/png", "data": b"\xff"}
    media = {"key": "content-type", "value": b"application/cloudevents+json; charset=UTF-8"}
    event = {**attributes, "data": [1]}
    assert decode("t", "value", json.dumps(event).encode(), [media]) == Decoded(event, None, "cloudevents")
    assert decode("t", "value", b"{}", [media]) == Decoded({}, None, "json")
