"""What the vectors cover: every message at every version, and in each of them every field with every sort of value.

``python -m tests.oracle.coverage`` prints it as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kwiresniff import schema
from kwiresniff.codec.field_layout import single
from kwiresniff.schema.apis import data_index
from kwiresniff.schema.registry import EARLIER, definitions
from kwiresniff.schema.types import WireField
from kwiresniff.schema.wire_types import FIXED, INTEGER_RANGES
from tests.support.kafka_vectors import UNKNOWN_TAGS, Entry, entries

#: A string or bytes of this length and more has a compact length of two bytes.
LONG = 127


#: Messages that Kafka has no generated class with JSON for, so that none of its classes can vouch for them here.
NOT_GENERATED = {
    "StickyAssignorUserData": "StickyAssignor has a schema in its code",
    "CooperativeStickyAssignorUserData": "CooperativeStickyAssignor has a schema in its code",
    "ConnectWorkerState": "ConnectProtocol and IncrementalCooperativeConnectProtocol have schemas in their code",
    "AssignmentInfo": "AssignmentInfo of Kafka Streams writes field by field",
    "SubscriptionInfoData": "Kafka Streams generates its class without JSON",
    "ConnectAssignment": "ConnectProtocol and IncrementalCooperativeConnectProtocol have schemas in their code",
}


def known() -> set[tuple[str, int]]:
    """Title and version of every message that our definitions have and Kafka generates.

    Shapes from a message's time on trial are left out: their releases are not among those whose classes are asked.
    """
    files = ["headers", *(api.name for api in schema.apis()), *data_index().files.values()]
    return {
        (message.title, version)
        for file in files
        for message in definitions(file)
        if message.name not in NOT_GENERATED and EARLIER not in message.name
        for version in range(message.versions.low, message.versions.high + 1)
    }


def missing(entry: Entry) -> Iterator[str]:
    """The values that no instance of ``entry`` has, each with the path of the field that should have it."""
    message = entry.message()
    bodies = [entry.body(vector.document) for vector in entry.vectors]
    yield from _structure(message.fields, bodies, "", message.flexible)


def _structure(fields: tuple[WireField, ...], bodies: list[dict[str, Any]], path: str, flexible: bool) -> Iterator[str]:
    tags = [body.get(UNKNOWN_TAGS, {}) for body in bodies]
    if flexible != any(tags) or (flexible and all(tags)):
        yield f"{path or 'message'}: with and without unknown tags"
    for field in fields:
        place = f"{path}.{field.name}" if path else field.name
        yield from _field(field, [body[field.name] for body in bodies], place, flexible)


def _field(field: WireField, values: list[Any], path: str, flexible: bool) -> Iterator[str]:
    if (field.nullable or "NULLABLE" in field.type) and None not in values:
        yield f"{path}: null"
    present = [value for value in values if value is not None]
    if field.array:
        sizes = {min(len(value), 2) for value in present}
        if sizes != {0, 1, 2}:
            yield f"{path}: none, one and several entries"
        yield from _field(single(field), [entry for value in present for entry in value], path + "[]", flexible)
    elif field.type == "STRUCT":
        yield from _structure(field.fields, present, path, flexible)
    else:
        yield from (f"{path}: {what}" for what in _leaf(field.type, present))


def _leaf(wire_type: str, values: list[Any]) -> Iterator[str]:
    if wire_type in INTEGER_RANGES:
        low, high = INTEGER_RANGES[wire_type]
        if not {low, high, 0} < set(values):
            yield "least, most, zero and others"
    elif wire_type == "BOOLEAN":
        if set(values) != {True, False}:
            yield "true and false"
    elif wire_type in FIXED:
        if len(set(values)) < 4:
            yield "four different values"
    elif wire_type.endswith("RECORDS"):
        if len({len(value) for value in values}) < 3:
            yield "no, one and two batches"
    else:
        if not any(len(value) == 0 for value in values):
            yield "empty"
        if not any(len(value) >= LONG for value in values):
            yield "long"
        if wire_type.endswith("STRING") and not any(not value.isascii() for value in values):
            yield "beyond ASCII"


def table() -> Iterator[str]:
    """A line for every message: how many instances of which versions come from which release."""
    yield f"{'key':>3}  {'message':<46}  {'versions of our definitions':<28} {'vectors':>7}  {'KiB':>5}  from release"
    ours: dict[str, set[int]] = {}
    for title, version in known():
        ours.setdefault(title, set()).add(version)
    theirs: dict[str, list[Entry]] = {}
    for entry in entries():
        theirs.setdefault(entry.title, []).append(entry)
    for title in sorted(ours | theirs.keys(), key=lambda title: (_key(theirs.get(title)), title)):
        found = theirs.get(title, [])
        versions = ours.get(title, set())
        covered = len(versions & {entry.version for entry in found})
        vectors = [vector for entry in found for vector in entry.vectors]
        size = sum(len(vector.raw) for vector in vectors)
        yield (
            f"{_key(found) if found and found[0].api_key >= 0 else '':>3}  {title:<46}  "
            f"{_range(versions):<12} {covered:>3} of {len(versions):<5} {len(vectors):>9}  {size / 1024:>5.0f}  "
            f"{_releases(found)}"
        )
    all_covered = len(known() & {(entry.title, entry.version) for entry in entries()})
    total = sum(len(entry.vectors) for entry in entries())
    yield f"{all_covered} of {len(known())} messages at a version, {total} vectors"


def _key(found: list[Entry] | None) -> int:
    return found[0].api_key if found and found[0].api_key >= 0 else 1 << 16


def _range(versions: Iterable[int]) -> str:
    ordered = sorted(versions)
    return f"{ordered[0]}-{ordered[-1]}" if ordered else "-"


def _releases(found: list[Entry]) -> str:
    by_release: dict[str, list[int]] = {}
    for entry in found:
        by_release.setdefault(entry.release, []).append(entry.version)
    return ", ".join(f"{release}: {_range(versions)}" for release, versions in sorted(by_release.items()))


if __name__ == "__main__":
    print("\n".join(table()))
