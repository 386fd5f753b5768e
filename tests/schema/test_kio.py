"""Names, order, types, nullability and tags against kio, whose classes other people generated from Kafka's definitions.

kio differs on purpose in a few names: it leaves the unit out of times (``throttle_time``), and splits some words
otherwise.
"""

from __future__ import annotations

import dataclasses
import pkgutil
import types
import typing
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.schema.apis import data_index
from kwiresniff.schema.definition import FieldAtVersion
from kwiresniff.schema.registry import definitions

KIO_TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
#: What kio, which knows a release before the newest, still calls otherwise.
OLDER_NAMES = {
    "acceptable_recovery_lag_legacy": "acceptable_recovery_lag",
    "generation_id_or_member_epoch": "generation_id",
}


def inside(name: str) -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.iter_modules(import_module(name).__path__, f"{name}."))


def modules(*, all_versions: bool) -> Iterator[pkgutil.ModuleInfo]:
    """The modules of every message of kio, at all versions or at the oldest and the newest."""
    for package in filter(attrgetter("ispkg"), inside("kio.schema")):
        versions = sorted((one.name for one in inside(package.name) if one.ispkg), key=lambda name: (len(name), name))
        for name in versions if all_versions else dict.fromkeys((*versions[:1], *versions[-1:])):
            yield from inside(name)


def entities(*, all_versions: bool) -> Iterator[tuple[str, type]]:
    """Every such module that holds a message, and the message's class."""
    for module in modules(all_versions=all_versions):
        parts = module.name.split(".")
        if not module.ispkg and len(parts) == 5:
            classes = [
                value
                for value in vars(import_module(module.name)).values()
                if dataclasses.is_dataclass(value) and isinstance(value, type) and value.__module__ == module.name
            ]
            yield module.name, next(found for found in classes if hasattr(found, "__type__") and is_top(found, classes))


def is_top(candidate: type, classes: list[type]) -> bool:
    """Whether no other class of the module has a field of this class."""
    hints = [hint for other in classes for hint in typing.get_type_hints(other).values()]
    return not any(candidate in parts_of(hint) for hint in hints)


def parts_of(hint: Any) -> set[Any]:
    return {hint} | {part for inner in typing.get_args(hint) for part in parts_of(inner)}


def ours(name: str, entity: Any) -> tuple[tuple[FieldAtVersion, ...], bool] | None:
    _, _, package, version_text, kind = name.split(".")
    version = int(version_text[1:])
    if kind in ("request", "response"):
        found = next(one for one in definitions(schema.API_NAMES[entity.__api_key__]) if one.kind == kind)
    elif kind == "header":
        found = next(one for one in definitions("headers") if one.name == package.removesuffix("_header"))
    else:
        file = data_index().files.get(entity.__name__)
        if file is None:
            return None
        found = definitions(file)[0]
    return found.at(version), version in found.flexible


def assert_same(entity: Any, shapes: tuple[FieldAtVersion, ...], where: str) -> None:
    hints = typing.get_type_hints(entity)
    fields = list(dataclasses.fields(entity))
    regular = [field for field in fields if "tag" not in field.metadata]
    tagged = sorted((field for field in fields if "tag" in field.metadata), key=lambda field: field.metadata["tag"])
    theirs = [*regular, *tagged]
    assert len(shapes) == len(theirs), where
    for shape, field in zip(shapes, theirs, strict=True):
        here = f"{where}.{shape.name}"
        assert squeezed(field.name) in (squeezed(shape.name), squeezed(OLDER_NAMES.get(shape.name, ""))), here
        hint, nullable = without_none(hints[field.name])
        assert nullable == shape.nullable or is_optional_id(field), here
        assert field.metadata.get("tag") == shape.tag, here
        array = typing.get_origin(hint) is tuple
        assert array == shape.array, here
        kafka_type = field.metadata.get("kafka_type")
        if kafka_type is None:
            inner = typing.get_args(hint)[0] if array else hint
            assert shape.type == "struct", here
            assert_same(inner, shape.fields, here)
        else:
            assert KIO_TYPES.get(kafka_type, kafka_type) == shape.type, here


def without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        rest = [part for part in typing.get_args(hint) if part is not type(None)]
        return rest[0], len(rest) < len(typing.get_args(hint))
    return hint, False


def is_optional_id(field: dataclasses.Field[Any]) -> bool:
    """kio shows an all-zero UUID and a time of -1 as None; on the wire they are not null."""
    return field.metadata.get("kafka_type") in ("uuid", "datetime_i64", "timedelta_i64", "timedelta_i32")


def squeezed(name: str) -> str:
    return name.removesuffix("_ms").replace("_", "")


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])
def messages(request: pytest.FixtureRequest) -> list[tuple[str, Any]]:
    """Modules of kio with their messages: the oldest and the newest versions, or all."""
    found = list(entities(all_versions=request.param))
    assert len(found) > (600 if request.param else 200)
    return found


def test_every_message_of_kio_has_the_same_fields_here(messages: list[tuple[str, Any]]) -> None:
    compared = 0
    for name, entity in messages:
        found = ours(name, entity)
        if found is not None:
            shapes, flexible = found
            assert flexible == entity.__flexible__, name
            assert_same(entity, shapes, name)
            compared += 1
    assert compared > len(messages) * 0.9


def test_every_message_of_kio_has_the_same_header_here(messages: list[tuple[str, Any]]) -> None:
    for name, entity in messages:
        if name.endswith((".request", ".response")):
            kind = name.rpartition(".")[2]
            version = schema.message(entity.__api_key__, int(entity.__version__), kind).header_version
            assert version == entity.__header_schema__.__version__, name


def test_error_codes_have_the_names_kio_gives_them_and_are_retriable_where_it_says_so() -> None:
    from kio.schema.errors import ErrorCode

    for code in ErrorCode:
        known = schema.error(code.value)
        assert (known.name.lower(), known.retriable) == (code.name, code.retriable)
