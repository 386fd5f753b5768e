"""Our definitions against a release of Kafka: every message, version by version, field by field.

Only what the release has is compared, so versions it dropped and APIs it does not know yet are no difference. Names
that a field or an API had in that release and that our definitions list as older names are none either. What a later
release changed without a new version number is known, and comes with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import api_by_key, api_by_name, data_index
from kwiresniff.schema.definition import Field, FieldAtVersion, Message
from kwiresniff.schema.index import fold_name
from kwiresniff.schema.known_changes import CHANGED_IN_PLACE, TAGGED_LATER, known_change
from kwiresniff.schema.registry import definitions, earlier_shapes

#: Where a field stands, by names from the outside in.
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in one line; ``reason`` says why it is right, or is empty."""

    text: str
    reason: str = ""


def differences(messages: Iterable[Message]) -> Iterator[Difference]:
    """Everything that is different in a release's ``messages``; nothing when all is equal."""
    for theirs in messages:
        if not theirs.versions:
            continue
        ours = _ours(theirs)
        if ours is None:
            yield Difference(f"{theirs.title}: not in our definitions")
            continue
        aliases = dict(_aliases(ours.fields, ()))
        for version in range(theirs.versions.low, theirs.versions.high + 1):
            found = list(_at_version(ours, theirs, version, aliases))
            reason = CHANGED_IN_PLACE.get((ours.name, ours.kind, version), "")
            if not reason and any(not one.reason for one in found):
                reason = _as_earlier(theirs, version)
            for one in found:
                yield Difference(f"{theirs.title} version {version}{one.text}", one.reason or reason)


def _as_earlier(theirs: Message, version: int) -> str:
    """Which earlier shape of a stored message the release has, in words; empty when it is none that is known."""
    shapes = earlier_shapes(theirs.name) if theirs.kind == "data" else ()
    for name in shapes:
        (ours,) = definitions(data_index().files[name])
        if all(one.reason for one in _at_version(ours, theirs, version, {})):
            return f"it is {name}, from when it was on trial"
    return ""


def _at_version(
    ours: Message, theirs: Message, version: int, aliases: dict[Path, tuple[str, ...]]
) -> Iterator[Difference]:
    if version not in ours.versions:
        yield Difference(": not in our definitions")
        return
    if (version in ours.flexible) != (version in theirs.flexible):
        yield Difference(f": flexible is {version in ours.flexible}, in the release {version in theirs.flexible}")
        return
    yield from _compare(ours, ours.at(version), theirs.at(version), (), aliases)


def _ours(theirs: Message) -> Message | None:
    if theirs.kind == "header":
        file = "headers"
    elif theirs.kind == "data":
        file = data_index().files.get(theirs.name, "")
    else:
        api = api_by_key(theirs.api_key)
        file = api.name if api is not None and _is_named(theirs.name, api.name) else ""
    if not file:
        return None
    name = theirs.name if theirs.kind in ("header", "data") else file
    return next((ours for ours in definitions(file) if (ours.kind, ours.name) == (theirs.kind, name)), None)


def _is_named(name: str, ours: str) -> bool:
    try:
        return fold_name(api_by_name(name).name) == fold_name(ours)
    except SchemaError:
        return False


def _aliases(fields: tuple[Field, ...], path: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    for field in fields:
        here = (*path, field.name)
        if field.aliases:
            yield here, field.aliases
        yield from _aliases(field.fields, here)


def _compare(
    message: Message,
    ours: tuple[FieldAtVersion, ...],
    theirs: tuple[FieldAtVersion, ...],
    path: Path,
    aliases: dict[Path, tuple[str, ...]],
) -> Iterator[Difference]:
    """What is different between two structures at the place ``path`` of our ``message``, each text to stand behind the
    message's name."""
    names, tags = {shape.name for shape in theirs}, {shape.tag for shape in theirs}
    later = [shape for shape in ours if not (shape.tag is None or shape.tag in tags or shape.name in names)]
    for shape in later:
        text = f", {'.'.join((*path, shape.name))}: tag {shape.tag} is not in the release"
        yield Difference(text, TAGGED_LATER.format(shape.name))
    ours = tuple(shape for shape in ours if shape not in later)
    if len(ours) != len(theirs) or any(
        one.name != other.name and other.name not in aliases.get((*path, one.name), ())
        for one, other in zip(ours, theirs, strict=True)
    ):
        place = f", {'.'.join(path)}" if path else ""
        yield Difference(f"{place}: fields are {_names(ours)}, in the release {_names(theirs)}")
        return
    for one, other in zip(ours, theirs, strict=True):
        here = (*path, one.name)
        for attribute in ("type", "array", "nullable", "tag", "default", "compact"):
            mine, its = getattr(one, attribute), getattr(other, attribute)
            # The default of a structure is made of its fields' defaults, which are compared below.
            if mine != its and not (attribute == "default" and isinstance(mine, dict) and isinstance(its, dict)):
                dotted = ".".join(here)
                reason = known_change(message.name, message.kind, dotted, attribute, its)
                yield Difference(f", {dotted}: {attribute} is {mine!r}, in the release {its!r}", reason)
        yield from _compare(message, one.fields, other.fields, here, aliases)


def _names(shapes: tuple[FieldAtVersion, ...]) -> str:
    return " ".join(shape.name for shape in shapes) or "none"
