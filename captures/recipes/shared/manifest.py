"""The manifest: a row per capture, written when it is recorded.

Every number in a row comes from the broker's request log, from tshark or from capinfos, none from kwiresniff.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import subprocess
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from captures.recipes.shared import oracle
from captures.recipes.shared.scenario import Scenario

HEADER = """\
# One row per capture. Written by recipes/codec/record.py; tests/captures demands that files and rows agree.
#
# requests        what the broker's request log counted, by API and version
# answered        how many of them it answered (a Produce with acks=0 is not answered)
# unanswered      which of them it did not
# not_logged      requests that tshark counted beyond the broker's log, which leaves out what is asked before a
#                 connection has authenticated, envelopes, and what is in flight when the broker stops
# keylog          the keys of the TLS sessions in it
# exceptions      what is wrong with the bytes all the same, and why; without them nothing is
# expected        the broker's request log for this capture: header, connection and both bodies of each request
"""

CAPTURES = Path(__file__).parents[2]

#: What the broker's log never has, or not always; a quorum's last words are not answered.
NAMES_NOT_LOGGED = {
    17: "SASL_HANDSHAKE",
    18: "API_VERSIONS",
    36: "SASL_AUTHENTICATE",
    52: "VOTE",
    54: "END_QUORUM_EPOCH",
    58: "ENVELOPE",
}


def row_of(capture: Path, scenario: Scenario, rows: list[oracle.Row]) -> dict[str, Any]:
    """What a row says about the inside of a capture, before it is compressed."""
    form, link, packets = capinfos(capture)
    requests = count_requests(rows)
    unanswered = count_requests([row for row in rows if row["response"] is None])
    return {
        "format": form,
        "link_type": link,
        "packets": packets,
        "requests": dict(sorted(requests.items())),
        "answered": len(rows) - sum(unanswered.values()),
        "unanswered": dict(sorted(unanswered.items())),
        "not_logged": not_logged(capture, scenario, rows),
    }


def count_requests(rows: list[oracle.Row]) -> Counter[str]:
    """How many requests there are of each API and version."""
    return Counter(f"{row['api']} v{row['api_version']}" for row in rows)


def update(scenario: Scenario, seen: dict[str, Any], files: list[str]) -> None:
    """Put the row of a capture that was just recorded into the manifest, whose rows are in the order of ``files``."""
    path = CAPTURES / "MANIFEST.toml"
    expected = oracle.path_for(CAPTURES / scenario.file)
    row = {
        "file": scenario.file,
        "shows": scenario.shows,
        "broker": scenario.broker.described,
        "client": scenario.clients,
        "recipe": f"recipes/codec/record.py {scenario.name}",
        "sha256": hashlib.sha256((CAPTURES / scenario.file).read_bytes()).hexdigest(),
        "expected": str(expected.relative_to(CAPTURES)),
        "expected_sha256": hashlib.sha256(expected.read_bytes()).hexdigest(),
    }
    if scenario.tls:
        row["keylog"] = str(keylog_for(CAPTURES / scenario.file).relative_to(CAPTURES))
    if scenario.exceptions:
        row["exceptions"] = dict(scenario.exceptions)
    known = tomllib.loads(path.read_text())["capture"] if path.exists() else []
    by_file = {r["file"]: r for r in known} | {scenario.file: row | seen}
    ordered = [by_file[file] for file in files if file in by_file]
    path.write_text(HEADER + "".join("\n[[capture]]\n" + table(r) for r in ordered))


def keylog_for(capture: Path) -> Path:
    return CAPTURES / "keys" / f"{capture.stem}.log"


def not_logged(capture: Path, scenario: Scenario, rows: list[oracle.Row]) -> dict[str, int]:
    """Requests beyond the broker's log: tshark's count of request headers less the broker's."""
    ports = scenario.broker.ports
    options = [word for port in ports for word in ("-d", f"tcp.port=={port},kafka")]
    if scenario.tls:
        options = ["-o", f"tls.keylog_file:{keylog_for(Path(scenario.file))}"]
        options += [word for port in ports for word in ("-d", f"tcp.port=={port},tls", "-d", f"tls.port=={port},kafka")]
    to_broker = " or ".join(f"tcp.dstport == {port}" for port in ports)
    seen = Counter[tuple[int, int]]()
    for keys, versions in oracle.tshark_fields(
        capture, f"kafka.api_key and ({to_broker})", "kafka.api_key", "kafka.api_version", options=options
    ):
        seen.update(zip(map(int, keys.split(",")), map(int, versions.split(",")), strict=True))
    logged = Counter((row["api_key"], row["api_version"]) for row in rows)
    names = {row["api_key"]: row["api"] for row in rows} | NAMES_NOT_LOGGED
    # A key without a name is a bare SASL token that tshark took for a request.
    beyond = [(names[key], version, count) for (key, version), count in sorted((seen - logged).items()) if key in names]
    return {f"{name} v{version}": count for name, version, count in beyond}


def keep_taps(folder: Path, scratch: Path, header: str, facts: dict[str, dict[str, Any]]) -> None:
    """Keep what several taps recorded at once, compressed, with a manifest of its own.

    ``scratch`` has NAME.pcap for every name in ``facts``, which are what its row says besides what the file shows.
    """
    text = header
    for name, said in facts.items():
        recorded, kept = scratch / f"{name}.pcap", folder / f"{name}.pcap.xz"
        content = lzma.compress(recorded.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
        kept.write_bytes(content)
        form, link, packets = capinfos(recorded)
        digest = hashlib.sha256(content).hexdigest()
        row = {"file": kept.name, **said, "sha256": digest, "format": form, "link_type": link, "packets": packets}
        text += "\n[[capture]]\n" + table(row)
    (folder / "MANIFEST.toml").write_text(text)


def capinfos(capture: Path) -> tuple[str, str, int]:
    """File format, link type and packet count, as Wireshark's capinfos has them."""
    done = subprocess.run(
        ["capinfos", "-T", "-r", "-t", "-E", "-c", "-M", str(capture)], check=True, capture_output=True, text=True
    )
    _, form, link, packets = done.stdout.rstrip("\n").split("\t")[:4]
    return form, link, int(packets)


def table(row: dict[str, Any]) -> str:
    """The members of one row as TOML."""
    return "".join(f"{name} = {value(what)}\n" for name, what in row.items())


def value(what: Any) -> str:
    if isinstance(what, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {value(v)}" for k, v in what.items()) + "}"
    return json.dumps(what, ensure_ascii=False)
