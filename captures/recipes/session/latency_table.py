"""The table of ``docs/latency.md``: ``python3 -m captures.recipes.session.latency_table [FOLDER]``.

Reads the recordings that ``latency.py`` made with the kwiresniff of this interpreter, and sets what it says of each
request beside the broker's request log. Milliseconds. ``TotalTimeMs`` runs from when the broker has read a request
until its answer has been written; where an answer is held back on purpose that is ``RemoteTimeMs`` of it.
"""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "latency"
KINDS = {"serial": "one at a time, `acks=1`", "pipelined": "60 in flight", "throttled": "beyond a quota, 6 in flight",
         "replicated": "one at a time, `acks=all`, 3 replicas", "polling": "long polls"}  # fmt: skip
#: The API that a kind of traffic is about.
APIS = {kind: "Fetch" if kind == "polling" else "Produce" for kind in KINDS}

Pair = tuple[dict[str, Any], dict[str, Any]]


def pairs(folder: Path, end: str) -> list[Pair]:
    """What kwiresniff said of each exchange, and the log."""
    log = {}
    for line in gzip.decompress((folder / "log.jsonl.gz").read_bytes()).splitlines():
        row = json.loads(line)
        log[row["client"], row["broker"], row["correlation_id"]] = row
    command = [sys.executable, "-m", "kwiresniff", "read", "-q", "-o", "jsonl", str(folder / f"{end}.pcap.xz")]
    said = [
        json.loads(line) for line in subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    ]
    exchanges = [one for one in said if one["kind"] == "exchange"]
    keys = [(one["client"], one["broker"], one["correlation_id"]) for one in exchanges]
    return [(one, log[key]) for one, key in zip(exchanges, keys, strict=True) if key in log]


def differences(found: Sequence[Pair], kind: str) -> tuple[list[float], list[float]]:
    """By how much the broker's time differs from the log's, without and with what was held back."""
    own, whole = [], []
    for one, row in found:
        timing = one["timing"]
        if one["client_id"] == kind and one["api"] == APIS[kind] and timing["broker_ns"] is not None:
            held_ms = row["remoteTimeMs"] if one["api"] == "Fetch" else 0
            own.append(timing["broker_ns"] / 1e6 - (row["totalTimeMs"] - held_ms))
            whole.append((timing["broker_ns"] + timing["held_ns"]) / 1e6 - row["totalTimeMs"])
    return own, whole


def far(found: Sequence[Pair]) -> str:
    """Of the requests of the table whose times differ by more than a millisecond: where the log is the longer one, and
    how often its ``sendTimeMs`` is the reason."""
    beyond = {True: 0, False: 0}
    sent = 0
    for one, row in found:
        timing = one["timing"]
        if one["client_id"] not in KINDS or one["api"] != APIS[one["client_id"]] or timing["broker_ns"] is None:
            continue
        held_ns = timing["held_ns"] if one["api"] == "Fetch" else 0
        difference = (timing["broker_ns"] + held_ns) / 1e6 - row["totalTimeMs"]
        if abs(difference) > 1:
            beyond[difference > 0] += 1
            sent += difference < 0 and difference + row["sendTimeMs"] >= -1
    return (
        f"{sum(beyond.values())} differ by more than 1 ms: {beyond[True]} are longer on the wire; {beyond[False]} are "
        f"longer in the log, {sent} of them by its sendTimeMs"
    )


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    print(
        "| traffic | captured at | requests | latency, median | broker | the log | difference: median | within 1 ms |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for kind, words in KINDS.items():
        for end in ("broker", "client"):
            found = pairs(folder, end)
            mine = [pair for pair in found if (pair[0]["client_id"], pair[0]["api"]) == (kind, APIS[kind])]
            waits = statistics.median(one["latency_ns"] / 1e6 for one, _ in mine)
            for held, name, values in zip(
                (False, True), ("", ", held included"), differences(found, kind), strict=True
            ):
                if held and kind != "polling":
                    continue
                parts = ("broker_ns", "held_ns") if held else ("broker_ns",)
                ours = statistics.median(sum(one["timing"][part] for part in parts) / 1e6 for one, _ in mine)
                less = "remoteTimeMs" if kind == "polling" and not held else ""
                logged = statistics.median(row["totalTimeMs"] - (row[less] if less else 0) for _, row in mine)
                near = sum(abs(value) <= 1 for value in values) / len(values)
                print(f"| {words}{name} | the {end} | {len(values)} | {waits:.2f} | {ours:.2f} | {logged:.2f} | "
                      f"{statistics.median(values):+.2f} | {near:.0%} |")  # fmt: skip
    print(f"\n{far(pairs(folder, 'broker'))}")


if __name__ == "__main__":
    main()
