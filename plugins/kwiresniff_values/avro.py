"""Avro's binary encoding, read by fastavro."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.avro_bounds import Walk
from kwiresniff_values.limits import MAX_REFERENCES
from kwiresniff_values.plain import plain
from kwiresniff_values.problems import Misfit, Unusable, missing
from kwiresniff_values.schema_json import parse_schema_text
from kwiresniff_values.schemas import Schema, with_references

FORMAT = "avro"
#: Types in files of their own that need one another.
MAX_NESTED = 20
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def reader(schema: Schema) -> Callable[[bytes], Any]:
    """Returns the reader of payloads of a schema, which raises Misfit and TooMuch. Raises Unusable."""
    try:
        from fastavro import schemaless_reader
    except ImportError:
        raise missing("fastavro") from None
    named: dict[str, Any] = {}
    for _, other in with_references(schema):
        _parsed(other, named)
    parsed: Any = _parsed(schema, named)

    def read(payload: bytes) -> Any:
        Walk(payload, named).check(parsed)
        try:
            return plain(schemaless_reader(io.BytesIO(payload), parsed, None))
        except TooMuch:
            raise
        except Exception as error:
            # A date before the year 1, text that is not UTF-8, a decimal of more digits than the schema has.
            raise Misfit(f"{type(error).__name__}: {str(error)[:200]}") from None

    return read


def _parsed(schema: Schema, named: dict[str, Any], needed_by: tuple[str, ...] = ()) -> Any:
    """The schema as fastavro wants it; types that it does not define are looked for by their names."""
    from fastavro.schema import UnknownType, parse_schema

    definition = _definition(schema)
    for _ in range(MAX_REFERENCES):
        try:
            parse_schema(definition, dict(named))  # which is half filled where a type is not known
            return parse_schema(definition, named)
        except UnknownType as error:
            name = error.name if isinstance(error.name, str) else ""  # a strange type is no name
            other = schema.referred(name) if name else None
            if other is None or name in needed_by or len(needed_by) == MAX_NESTED:
                raise Unusable(f"schema {schema.name}: no source has the type {str(error.name)[:200]}") from None
            _parsed(other, named, (*needed_by, name))
        except Exception as error:  # the library follows whatever stands in a schema
            raise Unusable(f"schema {schema.name} is no Avro schema: {str(error)[:200]}") from None
    raise Unusable(f"schema {schema.name} refers to more than {MAX_REFERENCES} others")


def _definition(schema: Schema) -> Any:
    text = schema.text.decode("utf-8", "replace") if isinstance(schema.text, bytes) else schema.text
    if text.strip() in _PRIMITIVES:
        return text.strip()
    return parse_schema_text(schema.name, text)
