"""Which versions of each API the brokers of each release offer, trial versions not counted.

``data/releases.txt`` names the releases from the oldest to the newest and has one line an API: its key, then
``RELEASE:VERSIONS`` wherever a release changed them. A patch release is listed only if it changed versions, as 4.0.1
alone did.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import read_data
from kwiresniff.schema.definition_language import parse_versions

FILE = "releases.txt"
#: Longer texts are no names of releases.
_MAX_NAME_CHARS = 40

Range = tuple[int, int]
#: A release and the versions it offers from then on; None when it dropped the API.
Change = tuple[str, Range | None]


Table = tuple[tuple[str, ...], dict[int, tuple[Change, ...]]]


@lru_cache(maxsize=1)
def _table() -> Table:
    return _parse(read_data(FILE))


def _parse(text: str) -> Table:
    names: tuple[str, ...] = ()
    changes: dict[int, tuple[Change, ...]] = {}
    for line in text.splitlines():
        first, *words = line.split()
        if first == "releases":
            names = tuple(words)
        elif first != "#":
            changes[int(first)] = tuple(_change(word) for word in words)
    return names, changes


def _change(word: str) -> Change:
    release, _, text = word.partition(":")
    versions = parse_versions(text)
    return release, (versions.low, versions.high) if versions else None


def releases() -> tuple[str, ...]:
    """Kafka's releases from ``0.8.2`` to the newest known, as ``4.0``."""
    return _table()[0]


def find_release(name: str) -> str:
    """The release of a version such as ``4.0.1``. Raises SchemaError naming the known ones."""
    wanted = _numbers(name)
    known = _known_numbers()
    same = [one for one, numbers in known.items() if wanted[: _minor(wanted)] == numbers[: _minor(wanted)]]
    found = [one for one in same if known[one] <= wanted]
    if wanted and found:
        return found[-1]
    raise SchemaError(f"no Kafka release {name[:_MAX_NAME_CHARS]!r} is known; known are {', '.join(known)}")


@lru_cache(maxsize=1)
def _known_numbers() -> dict[str, list[int]]:
    return {name: _numbers(name) for name in releases()}


def _numbers(name: str) -> list[int]:
    """The numbers of a release's name; none of what is no such name, which clients may say of themselves."""
    parts = name.strip().split(".") if len(name) <= _MAX_NAME_CHARS else [""]
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else []


def _minor(numbers: list[int]) -> int:
    """The number of parts that name a release without its patches: ``0.10.2``, ``4.0``."""
    return 3 if numbers[:1] == [0] else 2


def release_history(api_key: int) -> tuple[Change, ...]:
    """The releases that changed an API's versions, oldest first; empty for an API no release offers."""
    return _table()[1].get(api_key, ())


def versions_in(release: str) -> dict[int, Range]:
    """The versions that a release's brokers offer, by API key; raises SchemaError for an unknown release."""
    return dict(_offered_in(find_release(release)))


@cache  # there are some forty
def _offered_in(known: str) -> dict[int, Range]:
    return _until(_table(), known)


def _until(table: Table, release: str) -> dict[int, Range]:
    names, changes = table
    until = names.index(release)
    found: dict[int, Range] = {}
    for key, history in changes.items():
        past = [versions for name, versions in history if names.index(name) <= until]
        if past and past[-1] is not None:
            found[key] = past[-1]
    return found


def with_release(text: str, release: str, offered: Mapping[int, Range]) -> str:
    """The table with one more release, or unchanged if it has that. Raises SchemaError for an old one."""
    table = _parse(text)
    names, numbers = table[0], _numbers(release)
    name = ".".join(map(str, numbers[: _minor(numbers)]))
    if name in names:
        return text
    if numbers < _numbers(names[-1]):
        raise SchemaError(f"{FILE} has {names[-1]} and not {name}; add older releases by hand")
    before = _until(table, names[-1])
    changed = {
        key: f" {name}:" + (f"{offered[key][0]}-{offered[key][1]}" if key in offered else "none")
        for key in before.keys() | offered.keys()
        if before.get(key) != offered.get(key)
    }
    lines = []
    for line in text.splitlines():
        first = line.split()[0]
        if first == "releases":
            line += f" {name}"
        elif first.isdigit():
            line += changed.pop(int(first), "")
        lines.append(line)
    return "\n".join([*lines, *(f"{key}{changed[key]}" for key in sorted(changed))]) + "\n"
