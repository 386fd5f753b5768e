"""Write the vectors anew: ``python -m tests.oracle.generator``.

Needs java, javac, mvn and a Maven repository that has Kafka's releases; takes a minute once those are fetched.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.oracle.vectors import VECTORS

HERE = Path(__file__).parent

#: The newest release, and before it the last one that had a version which none of the later ones has. A message at a
#: version is taken from the first release here that has it.
RELEASES = {
    "4.4.0": "everything that is not gone",
    "4.0.0": "share groups on trial, version 0 (KIP-932)",
    "3.9.1": "the versions that 4.0 dropped (KIP-896), and ZooKeeper's brokers",
}

JACKSON = "com.fasterxml.jackson.core:jackson-databind:2.16.2"
SLF4J = "org.slf4j:slf4j-nop:1.7.36"

POM = """\
<project><modelVersion>4.0.0</modelVersion><groupId>oracle</groupId><artifactId>oracle</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def class_path(coordinates: list[str], work: Path) -> list[str]:
    """Fetch artifacts and what they need."""
    pom, path = work / "pom.xml", work / "path"
    pom.write_text(POM.format("".join(DEPENDENCY.format(*each.split(":")) for each in coordinates)), "utf-8")
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={path}", "-Dmdep.includeScope=runtime"]
    subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", "-f", pom, *goal], check=True)
    return path.read_text("utf-8").strip().split(":")


def lines(release: str, work: Path) -> Iterator[dict[str, Any]]:
    """One object for every message at every version that a release has."""
    jars = class_path([f"org.apache.kafka:kafka-clients:{release}", JACKSON, SLF4J], work)
    classes, path = work / release, ":".join(jars)
    subprocess.run(
        ["javac", "-nowarn", "-encoding", "UTF-8", "-d", classes, "-cp", path, *HERE.glob("*.java")], check=True
    )
    searched = [jar for jar in jars if Path(jar).name.startswith("kafka-")]
    program = ["java", "-Xmx1g", "-cp", f"{classes}:{path}", "Oracle", release, *searched]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        yield from map(json.loads, running.stdout)
    if running.returncode:
        raise SystemExit(f"the generator failed with {release}")


def main() -> None:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as work:
        for release in RELEASES:
            for line in lines(release, Path(work)):
                # An API may have had another name, but not another key.
                name = line["message"]
                key = (line.get("api_key", -1), name.endswith("ResponseData"), line["version"])
                found.setdefault(key if key[0] >= 0 else (name, *key), line)
    ordered = sorted(found.values(), key=lambda line: (line["message"], line["version"]))
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in ordered)
    VECTORS.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    vectors = sum(len(line["vectors"]) for line in ordered)
    print(f"{len(ordered)} messages at a version, {vectors} vectors, {VECTORS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
