"""Bytes that nobody wrote: whatever they are, the decoder answers, or says in one of three ways why not."""

from __future__ import annotations

import base64
import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("fastavro")
pytest.importorskip("msgpack")
pytest.importorskip("cbor2")
pytest.importorskip("jsonschema")

from kwiresniff.errors import PluginError
from kwiresniff.plugins import DoesNotFit, PluginOptions
from kwiresniff.plugins.answers import TooMuch, checked_copy
from kwiresniff.plugins.loading import load_plugins
from kwiresniff_values.decoder import ValueDecoder
from kwiresniff_values.folder import Folder
from kwiresniff_values.formats import Formats
from kwiresniff_values.problems import Unusable
from tests.values.schemas import ALL, order_file

#: Topics whose names are their formats; what says itself what it is has another.
RULES = ("msgpack", "cbor", "json", "windowed", "string", "double")
HEADERS = ("__value_schema_id", "apicurio.value.globalId", "content-type", "ce_id", "traceparent")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> ValueDecoder:
    folder = tmp_path_factory.mktemp("schemas")
    (folder / "1.avsc").write_text(json.dumps(ALL))
    (folder / "2.avsc").write_text('{"type": "array", "items": {"type": "map", "values": "bytes"}}')
    (folder / "3.proto").write_text(base64.b64encode(order_file().SerializeToString()).decode())
    (folder / "4.json").write_text('{"type": "object", "additionalProperties": {"type": "integer"}}')
    return ValueDecoder([Folder(str(folder))], Formats([f"{name}={name}" for name in RULES]))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    topic=st.sampled_from(["orders", "x-changelog", *RULES]),
    schema=st.integers(0, 5),
    data=st.binary(min_size=1, max_size=60),
    headers=st.lists(st.tuples(st.sampled_from(HEADERS), st.binary(max_size=20)), max_size=2),
)
def test_any_bytes_are_answered(
    decoder: ValueDecoder, topic: str, schema: int, data: bytes, headers: list[tuple[str, bytes]]
) -> None:
    """With a schema's id in front or without; the answer has a form in JSON."""
    framed = b"\0" + struct.pack(">I", schema) + data if schema else data
    said: list[dict[str, Any]] = [{"key": name, "value": value} for name, value in headers]
    try:
        found = decoder(topic, "key" if topic == "windowed" else "value", framed, said)
    except (DoesNotFit, TooMuch, Unusable):
        return
    checked_copy(found, None)


@pytest.mark.parametrize(
    ("library", "options"),
    [
        ("msgpack", PluginOptions(value_formats=("t=msgpack",))),
        ("cbor2", PluginOptions(value_formats=("t=cbor",))),
        ("fastavro", PluginOptions(value_formats=("t=avro:1",))),
        ("jsonschema", PluginOptions(value_formats=("t=json-schema:4",))),
    ],
)
def test_a_library_that_is_missing_is_one_line_with_the_extra(
    library: str, options: PluginOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is read, where the format was asked for."""
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / "1.avsc").write_text('"int"')
    (tmp_path / "4.json").write_text("{}")
    with pytest.raises(PluginError) as raised:
        load_plugins([], options._replace(schemas=(str(tmp_path),)))
    assert str(raised.value) == f'{library} is not installed: pip install "kwiresniff[values]"'
