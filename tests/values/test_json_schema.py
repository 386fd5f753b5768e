"""JSON Schema: values are checked, and schemas neither fetch nor take all time there is."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

pytest.importorskip("jsonschema")

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values import json_schema
from kwiresniff_values.limits import MAX_DEPTH, MAX_KEYWORDS
from kwiresniff_values.problems import Misfit, Unusable
from tests.values.schemas import schema

NEWEST = "https://json-schema.org/draft/2020-12/schema"
PARCEL = {
    "type": "object",
    "properties": {"weight": {"type": "number", "minimum": 0}, "codes": {"type": "array", "uniqueItems": True}},
    "patternProperties": {"^x-": {"type": "string"}},
    "required": ["weight"],
}


def reads(definition: Any, value: Any) -> Any:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return json_schema.reader(schema("JSON", definition))(data)


def test_what_fits_is_returned_as_it_is() -> None:
    """With members that the schema does not name."""
    value = {"weight": 2.5, "codes": [1, 2], "more": None, "x-by": "bike"}
    assert reads(PARCEL, value) == value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"weight": -1}, r"\$\.weight: minimum 0"),
        ({}, r'\$: required \["weight"\]'),
        ({"weight": 1, "codes": [{"a": 1}, {"a": 1}]}, r"\$\.codes: uniqueItems true"),
        ({"weight": 1, "x-by": 5}, r"x-by.*: type \"string\""),
        (b"{", "no JSON"),
        (b'{"weight": NaN}', "NaN is not JSON"),
    ],
)
def test_what_does_not_fit_says_where_and_not_with_what(value: Any, why: str) -> None:
    """The value itself may be a secret."""
    with pytest.raises(Misfit, match=why):
        reads(PARCEL, value)


def test_a_reference_is_resolved_by_name_and_is_not_fetched() -> None:
    """A listening port, named by a schema, is not called."""
    town = schema("JSON", {"type": "object", "required": ["town"]})
    read = json_schema.reader(schema("JSON", {"$ref": "town.json"}, {"town.json": town}))
    assert read(b'{"town": "Bergen"}') == {"town": "Bergen"}
    with pytest.raises(Misfit):
        read(b"{}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for definition in ({"$ref": url}, {"$schema": url, "$ref": url}):
            with pytest.raises(Unusable, match="cannot be followed"):
                reads(definition, {})
        with pytest.raises(TimeoutError):
            server.accept()


def test_references_that_double_are_counted() -> None:
    """Thirty levels of two references each are a billion evaluations."""
    levels = {f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(30)}
    bomb = {"definitions": {**levels, "d30": {}}, "$ref": "#/definitions/d0"}
    with pytest.raises(TooMuch, match=f"{MAX_KEYWORDS} keywords"):
        reads(bomb, {})
    with pytest.raises(Unusable, match="cannot be followed"):
        reads({"$ref": "#"}, {})


def test_a_pattern_that_backtracks_and_items_that_compare_take_no_time() -> None:
    """``(a+)+$`` on forty letters, and twenty thousand objects that have to be unique."""
    begin = time.process_time()
    with pytest.raises(Misfit, match="pattern"):
        reads({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!")
    slow = {"^(a+)+$": True}
    for below in (False, {"pattern": "^b"}):
        with pytest.raises(Misfit, match=r"additionalProperties|pattern"):
            reads({"patternProperties": slow, "additionalProperties": below}, {"a" * 40 + "!": "c"})
    with pytest.raises(Misfit, match="unevaluatedProperties"):
        reads({"$schema": NEWEST, "patternProperties": slow, "unevaluatedProperties": False}, {"a" * 40 + "!": "c"})
    reads({"uniqueItems": True}, [{"n": n} for n in range(5_000)])
    assert time.process_time() - begin < 2


#: The address of "Understanding JSON Schema", and one rule for each keyword that looks at members or items.
_ADDRESS = {"properties": {"street": True, "city": True}, "required": ["street"]}
_OPEN = {"properties": {"kind": {"const": "a"}}, "required": ["kind"]}
_CLOSED = {"unevaluatedProperties": False}
_BRANCHES = {"if": _OPEN, "then": {"properties": {"b": True}}, "else": {"properties": {"c": True}}}
_DEPENDENT = {"dependentSchemas": {"a": {"properties": {"a": True, "b": True}}}}
UNEVALUATED: list[tuple[dict[str, Any], list[Any]]] = [
    ({**_CLOSED, "properties": {"a": True}}, [{}, {"a": 1}, {"b": 1}]),
    ({**_CLOSED, "allOf": [_ADDRESS], "properties": {"type": True}}, [{"street": 1, "type": 2}, {"street": 1, "b": 2}]),
    ({**_CLOSED, "anyOf": [_ADDRESS, _OPEN]}, [{"street": 1}, {"kind": "a"}, {"kind": "b"}]),
    ({"oneOf": [_ADDRESS, _OPEN], "unevaluatedProperties": {"type": "number"}}, [{"street": 1, "n": 2}, {"kind": "a"}]),
    ({**_CLOSED, "patternProperties": {"^x": True}}, [{"xa": 1}, {"a": 1}]),
    ({**_CLOSED, "allOf": [{"additionalProperties": True}]}, [{"a": 1}]),
    ({**_CLOSED, "$ref": "#/$defs/o", "$defs": {"o": _OPEN}}, [{"kind": "a"}, {"kind": "a", "b": 1}]),
    ({**_CLOSED, **_BRANCHES}, [{"kind": "a", "b": 1}, {"c": 1}, {"kind": "a", "c": 1}, {"b": 1}]),
    ({**_CLOSED, **_DEPENDENT}, [{"a": 1, "b": 1}, {"b": 1}]),
    ({**_CLOSED, "not": {"not": _OPEN}}, [{"kind": "a"}, {}]),
    ({"prefixItems": [True], "unevaluatedItems": False}, [[1], [1, 2], {"a": 1}]),
    ({"contains": {"type": "number"}, "unevaluatedItems": {"type": "string"}}, [[1, "a"], [1, None]]),
    ({"allOf": [{"items": True}], "unevaluatedItems": False}, [[1, 2]]),
]


@pytest.mark.parametrize(("definition", "values"), UNEVALUATED)
def test_members_and_items_that_nothing_else_looks_at_are_judged_as_the_library_does(
    definition: dict[str, Any], values: list[Any]
) -> None:
    """``unevaluatedProperties`` and ``unevaluatedItems``, behind references and conditions, too."""
    from jsonschema import Draft202012Validator

    for value in values:
        try:
            fits = reads({"$schema": NEWEST, **definition}, value) == value
        except Misfit:
            fits = False
        assert fits == Draft202012Validator(definition).is_valid(value), value


def test_a_keyword_with_many_items_counts_for_more() -> None:
    """Eighteen thousand numbers, each held against a thousand."""
    with pytest.raises(TooMuch, match=f"{MAX_KEYWORDS} keywords"):
        reads({"items": {"enum": list(range(1_000))}}, [999] * 18_000)


def test_levels_are_bounded() -> None:
    """Of what is shown, and of what the parser follows."""
    with pytest.raises(TooMuch):
        reads({}, b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2))
    with pytest.raises(Misfit, match="too deep"):
        reads({}, b"[" * 100_000)


def test_a_schema_that_is_referred_to_is_checked_as_well() -> None:
    """It is one line, as everything that is wrong with schemas."""
    other = schema("JSON", {"type": "strisg"})
    with pytest.raises(Unusable, match="is no JSON Schema"):
        json_schema.reader(schema("JSON", {"$ref": "other"}, {"other": other}))


@pytest.mark.parametrize("text", ["{", '{"type": 5}', '{"$ref": 5}', '{"properties": []}'])
def test_what_is_no_schema_is_unusable(text: str) -> None:
    """By JSON's rules or by JSON Schema's."""
    with pytest.raises(Unusable):
        json_schema.reader(schema("JSON", text))
