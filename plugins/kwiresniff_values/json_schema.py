"""JSON Schema: JSON texts checked by jsonschema, which is kept from fetching, backtracking and counting without end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values import json_text
from kwiresniff_values.json_keywords import keywords_of
from kwiresniff_values.limits import MAX_KEYWORDS
from kwiresniff_values.plain import plain
from kwiresniff_values.problems import Misfit, Unusable, missing
from kwiresniff_values.schema_json import parse_schema_text
from kwiresniff_values.schemas import Schema, with_references

FORMAT = "json-schema"
_MAX_EXPECTED = 60
#: So many items of a keyword (names that are required, values of an enum) take as long as a keyword.
_CHEAP_ITEMS = 20
#: What keywords take that lead to other schemas, beside one that looks at a value alone.
_LEADING = "$ref $dynamicRef $recursiveRef allOf anyOf oneOf not if unevaluatedProperties unevaluatedItems"
_COSTS = dict.fromkeys(_LEADING.split(), 5)


def reader(schema: Schema) -> Callable[[bytes], Any]:
    """Returns the checking reader of JSON texts, which raises Misfit and TooMuch. Raises Unusable."""
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft7Validator, extend, validator_for
        from referencing import Registry
        from referencing.jsonschema import DRAFT7
    except ImportError:
        raise missing("jsonschema") from None
    definition = parse_schema_text(schema.name, schema.text)
    others = [(name, parse_schema_text(one.name, one.text)) for name, one in with_references(schema)]
    base: Any = validator_for(definition, default=Draft7Validator)
    try:
        for one in (definition, *(other for _, other in others)):
            base.check_schema(one)
        # A registry of its own: the one that jsonschema has fetches what a schema refers to.
        registry: Any = Registry().with_resources(
            [(name, DRAFT7.create_resource(one)) for name, one in others if isinstance(one, dict | bool)]
        )
    except (SchemaError, ValueError, TypeError, LookupError, RecursionError, re.error) as error:
        raise Unusable(f"schema {schema.name} is no JSON Schema: {str(error).splitlines()[0][:200]}") from None
    left = [0]
    checked: Any = extend(
        base, {name: _counted(one, _COSTS.get(name, 1), left) for name, one in keywords_of(base).items()}
    )
    validator = checked(definition, registry=registry)

    def read(payload: bytes) -> Any:
        found = json_text.parse(payload)
        copy = plain(found)
        left[0] = MAX_KEYWORDS
        try:
            error = next(validator.iter_errors(found), None)
        except TooMuch:
            raise
        except Exception as wrong:  # what a schema refers to is not there, or is no schema in a way that nobody checked
            raise Unusable(f"schema {schema.name} cannot be followed: {' '.join(str(wrong).split())[:200]}") from None
        if error is not None:
            expected = json.dumps(error.validator_value, default=str)
            if len(expected) > _MAX_EXPECTED:
                expected = f"{expected[:_MAX_EXPECTED]}..."
            raise Misfit(f"{error.json_path}: {error.validator} {expected}")
        return copy

    return read


def _counted(keyword: Any, cost: int, left: list[int]) -> Any:
    def evaluate(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        left[0] -= cost + (len(value) // _CHEAP_ITEMS if isinstance(value, list | dict) else 0)
        if left[0] < 0:
            raise TooMuch(f"that takes more than {MAX_KEYWORDS} keywords of its schema to check")
        return keyword(validator, value, instance, schema)

    return evaluate
