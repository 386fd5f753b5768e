"""Which APIs and versions the recordings hold, and from which brokers, by the manifest's account.

``python -m tests.captures.coverage`` writes docs/coverage.md and the README's sentence about it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kwiresniff import schema

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
PAGE = ROOT / "docs" / "coverage.md"
README = ROOT / "README.md"
ROWS: list[dict[str, Any]] = tomllib.loads((CAPTURES / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]

#: ``summary()`` in the README, whatever its numbers.
SUMMARY = re.compile(r"\d+ of \d+ versions of \d+ of \d+ APIs were recorded live, in \d+ captures\.")
RELEASE = re.compile(r"\d+(?:\.\d+)+")
#: What a broker answers without a line in its log. Of the rest that is not in it, nobody says whether it was answered.
ANSWERED_UNLOGGED = {"SASL_HANDSHAKE", "API_VERSIONS", "SASL_AUTHENTICATE", "ENVELOPE"}
#: Recordings named for a version; those after them are counted.
NAMED_RECORDINGS = 3

#: Why some versions can hardly be recorded.
NOT_SENT = {
    ("InitProducerId", 6): "is unstable, and no release's client asks in it",
    ("BrokerRegistration", 2): "came and was replaced within one release, 3.7",
}

#: API key, version, direction.
Message = tuple[int, int, str]


def seen_in(row: dict[str, Any]) -> Iterator[Message]:
    """The messages that a recording holds."""
    for counts in (row["requests"], row["not_logged"]):
        for name, count in counts.items():
            api, _, version = name.rpartition(" v")
            key, number = schema.find_api(api).key, int(version)
            yield key, number, "request"
            unknown = counts is row["not_logged"] and api not in ANSWERED_UNLOGGED
            if count > row["unanswered"].get(name, 0) and not unknown:
                yield key, number, "response"


def sightings() -> dict[Message, list[dict[str, Any]]]:
    """The rows of the recordings that hold each message."""
    found: dict[Message, list[dict[str, Any]]] = {}
    for row in ROWS:
        for message in dict.fromkeys(seen_in(row)):
            found.setdefault(message, []).append(row)
    return found


def releases(rows: Iterable[dict[str, Any]]) -> str:
    """The releases of the brokers in these recordings, oldest first."""
    found = {release for row in rows for release in RELEASE.findall(row["broker"].partition("(")[0])}
    return ", ".join(sorted(found, key=lambda release: [int(part) for part in release.split(".")]))


def ranges(versions: Iterable[int]) -> str:
    """``0-3, 5`` for 0, 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def versions_of(key: int) -> range:
    low, high = schema.find_api(key).versions
    return range(low, high + 1)


def summary() -> str:
    """How much was seen live, in one sentence."""
    found = sightings()
    apis = {key for key, _, _ in found}
    pairs = {(key, version) for key, version, _ in found}
    total = sum(len(versions_of(api.key)) for api in schema.apis())
    return (
        f"{len(pairs)} of {total} versions of {len(apis)} of {len(schema.apis())} APIs were recorded live, "
        f"in {len(ROWS)} captures."
    )


def page() -> str:
    """The whole of docs/coverage.md."""
    found = sightings()
    lines = [
        "# What was seen live",
        "",
        summary(),
        "",
        "Every version of every message, these and the others, is held to the bytes and values of Kafka's own",
        "classes (`python -m tests.oracle.coverage`). Beyond that, the versions under *seen live* were sent by a",
        "real client or broker to a real broker and lie in a recording under `captures/`, whose every frame is",
        "decoded to its last byte and compared with the broker's request log. This page is written from the",
        "recordings' manifest by `python -m tests.captures.coverage`.",
        "",
        "| key | API | seen live | from brokers of | by Kafka's classes alone |",
        "|---:|---|---|---|---|",
    ]
    for api in schema.apis():
        live = {version for version in versions_of(api.key) if (api.key, version, "request") in found}
        rows = [row for (key, _, _), rows in found.items() if key == api.key for row in rows]
        others = ranges(set(versions_of(api.key)) - live)
        lines.append(f"| {api.key} | {api.name} | {ranges(live)} | {releases(rows)} | {others} |")
    requests = [(key, version) for key, version, direction in sorted(found) if direction == "request"]
    unanswered = [pair for pair in requests if (*pair, "response") not in found]
    if unanswered:
        lines += [
            "",
            "Seen as a request only: "
            + ", ".join(f"{schema.find_api(key).name} {version}" for key, version in unanswered)
            + ".",
        ]
    for (name, version), reason in NOT_SENT.items():
        if (schema.find_api(name).key, version, "request") not in found:
            lines += ["", f"{name} {version} {reason}."]
    lines += ["", "## Where", "", "| API | version | brokers | recordings |", "|---|---:|---|---|"]
    lines += [where(key, version, found[key, version, "request"]) for key, version in requests]
    return "\n".join(lines) + "\n"


def where(key: int, version: int, rows: list[dict[str, Any]]) -> str:
    """A row of the second table."""
    names = [Path(row["file"]).name.partition(".pcap")[0] for row in rows]
    more = f" and {len(names) - NAMED_RECORDINGS} more" if len(names) > NAMED_RECORDINGS else ""
    shown = ", ".join(names[:NAMED_RECORDINGS])
    return f"| {schema.find_api(key).name} | {version} | {releases(rows)} | {shown}{more} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(SUMMARY.sub(summary(), README.read_text(encoding="utf-8")), encoding="utf-8")
    print(summary())
