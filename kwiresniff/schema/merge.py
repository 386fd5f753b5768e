"""One definition out of many releases: every version keeps the shape it had in the newest release that has it.

A release drops old versions, and now and then a version that was offered early has another shape later, so ranges
cannot be merged as text. Instead each version's shape is taken from the newest release that has it, and one
definition is folded out of all the shapes again, newest version first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition import (
    NO_VERSIONS,
    Field,
    FieldAtVersion,
    Message,
    Versions,
    zero,
)

Shapes = tuple[FieldAtVersion, ...]
#: Where a field stands, by names from the outside in.
Path = tuple[str, ...]
#: The newer name of a field that stands, in older names, there.
Renames = dict[Path, str]
#: The older names of a field that stands, in newer names, there.
Aliases = dict[Path, set[str]]


def merge(releases: Sequence[Message]) -> Message:
    """The definition of all versions of a message, oldest release first. Raises SchemaError for a hole."""
    newest = releases[-1]
    found: dict[int, tuple[bool, Shapes]] = {}
    aliases: Aliases = {}
    for release in reversed(releases):
        of_release = {
            version: (version in release.flexible, release.at(version))
            for version in range(release.versions.low, release.versions.high + 1)
        }
        renames: Renames = {}
        for version, (_, shapes) in of_release.items():
            if version in found:
                _find_renames(shapes, found[version][1], (), (), renames, aliases)
        for version, (is_flexible, shapes) in of_release.items():
            if version not in found:
                found[version] = is_flexible, _rename(shapes, (), renames)
        _keep_aliases(release.fields, (), (), renames, aliases)
    versions = _range(found, newest.title)
    flexible = _range([version for version, (is_flexible, _) in found.items() if is_flexible], newest.title)
    listeners = next((release.listeners for release in reversed(releases) if release.listeners), ())
    fields = fold({version: shapes for version, (_, shapes) in found.items()}, flexible, aliases)
    names = {name for release in releases for name in (release.name, *release.aliases)} - {newest.name}
    merged = Message(
        newest.name,
        newest.kind,
        versions,
        flexible,
        fields,
        newest.api_key,
        listeners,
        tuple(sorted(names)),
        newest.record,
    )
    for version, (_, shapes) in found.items():
        if not _same_wire(merged.at(version), shapes):
            raise SchemaError(f"{newest.title} version {version} does not survive the merging of its releases")
    return merged


def _range(versions: Iterable[int], title: str) -> Versions:
    ordered = sorted(versions)
    if not ordered:
        return NO_VERSIONS
    if ordered[-1] - ordered[0] + 1 != len(ordered):
        raise SchemaError(f"{title}: versions with a hole between them: {ordered}; a release is missing")
    return Versions(ordered[0], ordered[-1])


def _find_renames(old: Shapes, new: Shapes, before: Path, after: Path, renames: Renames, aliases: Aliases) -> None:
    """Adds fields that were renamed without a change on the wire; ``before`` and ``after`` are paths."""
    if [_wire(shape) for shape in old] != [_wire(shape) for shape in new]:
        return
    for was, now in zip(old, new, strict=True):
        old_place, new_place = (*before, was.name), (*after, now.name)
        if was.name != now.name:
            renames[old_place] = now.name
            aliases.setdefault(new_place, set()).add(was.name)
        _find_renames(was.fields, now.fields, old_place, new_place, renames, aliases)


def _keep_aliases(fields: tuple[Field, ...], before: Path, after: Path, renames: Renames, aliases: Aliases) -> None:
    """Add the older names that a release's definition knew already."""
    for field in fields:
        old_place = (*before, field.name)
        new_place = (*after, renames.get(old_place, field.name))
        if field.aliases:
            aliases.setdefault(new_place, set()).update(field.aliases)
        _keep_aliases(field.fields, old_place, new_place, renames, aliases)


def _same_wire(some: Shapes, others: Shapes) -> bool:
    return len(some) == len(others) and all(
        (one.compact, one.nullable, *_identity(one)) == (other.compact, other.nullable, *_identity(other))
        and _same_wire(one.fields, other.fields)
        for one, other in zip(some, others, strict=True)
    )


def _wire(shape: FieldAtVersion) -> tuple[object, ...]:
    # RECORDS were BYTES in the definitions of 2.2 to 2.7; on the wire they are the same.
    return "bytes" if shape.type == "records" else shape.type, shape.array, shape.tag


def _rename(shapes: Shapes, path: Path, renames: Renames) -> Shapes:
    if not renames:
        return shapes
    renamed = []
    for shape in shapes:
        here = (*path, shape.name)
        fields = _rename(shape.fields, here, renames)
        default = shape.default
        if shape.type == "struct" and isinstance(default, dict):
            default = zero("struct", False, fields)
        renamed.append(shape._replace(name=renames.get(here, shape.name), fields=fields, default=default))
    return tuple(renamed)


def fold(by_version: Mapping[int, Shapes], flexible: Versions, aliases: Aliases | None = None) -> tuple[Field, ...]:
    """The fields, with ranges of versions, that have these shapes at these versions."""
    return _fold(by_version, flexible, aliases or {}, (), max(by_version))


def _fold(
    by_version: Mapping[int, Shapes],
    flexible: Versions,
    aliases: Aliases,
    path: Path,
    top: int,
) -> tuple[Field, ...]:
    rows: list[tuple[tuple[object, ...], dict[int, FieldAtVersion]]] = []
    for version in sorted(by_version, reverse=True):
        at = 0
        for shape in by_version[version]:
            identity = _identity(shape)
            match = next((row for row in range(at, len(rows)) if rows[row][0] == identity), None)
            if match is None:
                rows.insert(at, (identity, {version: shape}))
                at += 1
            else:
                rows[match][1][version] = shape
                at = match + 1
    fields = []
    for _, row in rows:
        for run in _runs(row):
            fields.append(_field({version: row[version] for version in run}, flexible, aliases, path, top))
    return tuple(fields)


def _identity(shape: FieldAtVersion) -> tuple[object, ...]:
    """The facts that two versions of a field share on one line of a definition; defaults of tagged fields only."""
    filled_in = shape.tag is not None and not isinstance(shape.default, dict)
    return shape.name, shape.type, shape.array, shape.tag, repr(shape.default) if filled_in else ""


def _runs(versions: Iterable[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return runs


def _field(
    row: dict[int, FieldAtVersion],
    flexible: Versions,
    aliases: Aliases,
    path: Path,
    top: int,
) -> Field:
    shape = row[max(row)]
    here = (*path, shape.name)
    versions = _range(row, shape.name)
    children = {version: found.fields for version, found in row.items()}
    default = shape.default
    explicit = not isinstance(default, dict) and default != zero(shape.type, shape.array, shape.fields)
    odd = any(found.compact != (version in flexible) for version, found in row.items())
    return Field(
        name=shape.name,
        type=shape.type,
        versions=versions,
        array=shape.array,
        nullable=_range([version for version, found in row.items() if found.nullable], shape.name),
        tag=shape.tag,
        tagged=NO_VERSIONS if shape.tag is None else versions,
        default=default if explicit else None,
        explicit_default=explicit,
        flexible=_range([version for version, found in row.items() if found.compact], shape.name) if odd else None,
        entity=shape.entity,
        map_key=shape.map_key,
        fields=_fold(children, flexible, aliases, here, top) if shape.type == "struct" else (),
        aliases=tuple(sorted(aliases.get(here, ()))),
    )
