"""Keywords of JSON Schema in the place of the library's: those that search with patterns, compare each item with each,
or ask which members and items nothing else has looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kwiresniff.analysis.filter.linear_search import MAX_SEARCHED_CHARS, search_function


def keywords_of(base: Any) -> dict[str, Any]:
    """The keywords of a validator of the library, as far as it has them, with our own among them."""
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "unevaluatedProperties": _unevaluated_properties,
        "unevaluatedItems": _unevaluated_items,
    }
    return {**base.VALIDATORS, **{name: keyword for name, keyword in own.items() if name in base.VALIDATORS}}


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


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """In the time of sorting; the library's own compares each with each."""
    from jsonschema.exceptions import ValidationError

    if unique and isinstance(instance, list):
        texts = {json.dumps(one, sort_keys=True) for one in instance}
        if len(texts) < len(instance):
            yield ValidationError("has an item twice")


def _unevaluated_properties(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        yield from _unevaluated(validator, "unevaluatedProperties", instance, instance.items(), schema)


def _unevaluated_items(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, list):
        yield from _unevaluated(validator, "unevaluatedItems", instance, enumerate(instance), schema)


def _unevaluated(
    validator: Any, keyword: str, instance: Any, parts: Iterable[tuple[str | int, Any]], schema: Any
) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    below = schema[keyword]
    if below is True:
        return
    known = _evaluated(validator, {name: one for name, one in schema.items() if name != keyword}, instance)
    for place, value in parts:
        if place not in known:
            if below is False:
                yield ValidationError("is not allowed")
            else:
                yield from validator.descend(value, below, path=place)


def _evaluated(validator: Any, schema: Any, instance: Any) -> set[str | int]:
    """The members or items evaluated by a schema and its in-place applicators (2020-12, Core, 11.2 and 11.3)."""
    if not isinstance(schema, dict):
        return set()
    if "$recursiveRef" in schema:  # of one draft alone: what it leads to is believed to look at everything
        return set(instance) if isinstance(instance, dict) else set(range(len(instance)))
    found = _members(schema, instance) if isinstance(instance, dict) else _items(validator, schema, instance)
    for one, applied in _applied(validator, schema, instance):
        found |= _evaluated(one, applied, instance)
    return found


def _members(schema: dict[str, Any], instance: dict[str, Any]) -> set[str | int]:
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    found: set[str | int] = set(schema.get("properties") or ()).intersection(instance)
    for pattern in schema.get("patternProperties") or ():
        found.update(name for name in instance if _matches(pattern, name))
    return found


def _items(validator: Any, schema: dict[str, Any], instance: list[Any]) -> set[str | int]:
    items = schema.get("items")  # a list before 2020-12
    if "unevaluatedItems" in schema or "additionalItems" in schema or isinstance(items, dict | bool):
        return set(range(len(instance)))
    found: set[str | int] = set(range(max(len(schema.get("prefixItems") or ()), len(items or ()))))
    if "contains" in schema:
        found.update(at for at, value in enumerate(instance) if _fits(validator, schema["contains"], value))
    return found


def _applied(validator: Any, schema: dict[str, Any], instance: Any) -> Iterator[tuple[Any, Any]]:
    """The schemas that one applies to the same value and that this fits, each with what validates by them."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            resolved = validator._resolver.lookup(schema[keyword])
            yield validator.evolve(schema=resolved.contents, _resolver=resolved.resolver), resolved.contents
    subschemas = [one for keyword in ("allOf", "anyOf", "oneOf") for one in schema.get(keyword) or ()]
    if isinstance(instance, dict):
        subschemas += [one for name, one in (schema.get("dependentSchemas") or {}).items() if name in instance]
    if "if" in schema:
        fits = _fits(validator, schema["if"], instance)
        subschemas += [schema["if"], schema.get("then", True)] if fits else [schema.get("else", True)]
    yield from ((validator, one) for one in subschemas if _fits(validator, one, instance))


def _fits(validator: Any, schema: Any, instance: Any) -> bool:
    return next(validator.descend(instance, schema), None) is None
