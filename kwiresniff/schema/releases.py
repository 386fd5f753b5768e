"""Which versions of each API the brokers of each release offer, trial versions not counted.

``data/releases.txt`` names the releases from the oldest to the newest and has one line an API: its key, then
``RELEASE:VERSIONS`` wherever a release changed them. Patch releases do not change versions and are not listed.
"""

from __future__ import annotations

from functools import lru_cache

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import DATA
from kwiresniff.schema.language import parse_versions

Range = tuple[int, int]
#: A release and the versions it offers from then on; None when it dropped the API.
Change = tuple[str, Range | None]


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[str, ...], dict[int, tuple[Change, ...]]]:
    names: tuple[str, ...] = ()
    changes: dict[int, tuple[Change, ...]] = {}
    for line in (DATA / "releases.txt").read_text("utf-8").splitlines():
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
    """The release that ``4.0``, ``4.0.1`` or ``0.10.2.2`` is part of; raises SchemaError naming the known ones."""
    names = releases()
    parts = name.strip().split(".")
    for length in range(len(parts), 0, -1):
        candidate = ".".join(parts[:length])
        if candidate in names:
            return candidate
    raise SchemaError(f"no Kafka release {name!r} is known; known are {', '.join(names)}")


def release_history(api_key: int) -> tuple[Change, ...]:
    """The releases that changed an API's versions, oldest first; empty for an API no release offers."""
    return _table()[1].get(api_key, ())


def versions_in(release: str) -> dict[int, Range]:
    """The versions that a release's brokers offer, by API key; raises SchemaError for an unknown release."""
    names, changes = _table()
    until = names.index(find_release(release))
    found: dict[int, Range] = {}
    for key, history in changes.items():
        past = [versions for name, versions in history if names.index(name) <= until]
        if past and past[-1] is not None:
            found[key] = past[-1]
    return found
