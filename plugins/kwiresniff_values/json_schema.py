"""JSON Schema: JSON texts checked by jsonschema, which is kept from fetching, backtracking and counting without end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from kwiresniff.analysis.filter.linear_search import MAX_SEARCHED_CHARS, search_function
from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values import json_text
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
_COSTS = dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if"), 5)


def reader(schema: Schema) -> Callable[[bytes], Any]:
    """What reads a JSON text and checks it. It raises Misfit and TooMuch, ``reader`` itself Unusable."""
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
        base, {name: _counted(one, _COSTS.get(name, 1), left) for name, one in _keywords(base).items()}
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


def _keywords(base: Any) -> dict[str, Any]:
    """The library's keywords, with our own for those that search with patterns or compare each item with each.

    ``unevaluatedProperties`` and ``unevaluatedItems`` are not checked: the library searches with patterns for them.
    """
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "unevaluatedProperties": _believed,
        "unevaluatedItems": _believed,
    }
    return {**base.VALIDATORS, **{name: keyword for name, keyword in own.items() if name in base.VALIDATORS}}


def _counted(keyword: Any, cost: int, left: list[int]) -> Any:
    def evaluate(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        left[0] -= cost + (len(value) // _CHEAP_ITEMS if isinstance(value, list | dict) else 0)
        if left[0] < 0:
            raise TooMuch(f"that takes more than {MAX_KEYWORDS} keywords of its schema to check")
        return keyword(validator, value, instance, schema)

    return evaluate


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches; of longer texts and of patterns that only backtracking can search, it is believed."""
    if len(text) > MAX_SEARCHED_CHARS:
        return True
    try:
        return search_function(pattern)(text)
    except re.error:
        return True


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, below in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, below, path=name, schema_path=pattern)


def _additional_properties(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, dict):
        return
    patterns, known = schema.get("patternProperties") or (), schema.get("properties") or ()
    for name, value in instance.items():
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if below is False:
            yield ValidationError("is not allowed")
        elif isinstance(below, dict):
            yield from validator.descend(value, below, path=name)


def _believed(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """In the time of sorting; the library's own compares each with each."""
    from jsonschema.exceptions import ValidationError

    if unique and isinstance(instance, list):
        texts = {json.dumps(one, sort_keys=True) for one in instance}
        if len(texts) < len(instance):
            yield ValidationError("has an item twice")
