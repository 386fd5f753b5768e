"""Write the vectors anew: ``python -m tests.oracle.generator``.

Needs java, javac, mvn and a Maven repository that has Kafka's releases; once those are fetched it takes a minute and a
half.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.kafka_vectors import VECTORS

HERE = Path(__file__).parent

NEWEST = (HERE.parents[1] / "newest_release.txt").read_text("utf-8").strip()

#: The newest release, and before it the last ones that had a version or a message which none of the later ones has,
#: with the artifacts to search. A message at a version is taken from the first release here that has it.
RELEASES = {
    NEWEST: (
        "kafka-clients",
        "kafka-metadata",
        "kafka-raft",
        "kafka-group-coordinator",
        "kafka-transaction-coordinator",
        "kafka-share-coordinator",
        "kafka-storage",
    ),
    # Share groups on trial, version 0 (KIP-932).
    "4.0.0": ("kafka-clients", "kafka-group-coordinator"),
    # The versions that 4.0 dropped (KIP-896), and what ZooKeeper's brokers said.
    "3.9.1": ("kafka-clients", "kafka-metadata"),
    # Records of the metadata log from the time when KRaft was on trial.
    "3.2.3": ("kafka-clients", "kafka-metadata"),
}

JACKSON = "com.fasterxml.jackson.core", "jackson-databind", "2.16.2"
SLF4J = "org.slf4j", "slf4j-nop", "1.7.36"

POM = """\
<project><modelVersion>4.0.0</modelVersion><groupId>oracle</groupId><artifactId>oracle</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
DEPENDENCY = """\
<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>
"""
#: The classes of messages need nothing but kafka-clients, whatever the rest of their artifact needs.
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def class_path(release: str, work: Path) -> list[str]:
    """The jars of a release, of Jackson for Kafka's JSON, and of the logging that Kafka cannot do without."""
    kafka = [("org.apache.kafka", artifact, release) for artifact in RELEASES[release]]
    dependencies = [DEPENDENCY.format(*each, ALONE) for each in kafka]
    dependencies += [DEPENDENCY.format(*each, "") for each in (JACKSON, SLF4J)]
    pom, path = work / "pom.xml", work / "path"
    pom.write_text(POM.format("".join(dependencies)), "utf-8")
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={path}", "-Dmdep.includeScope=runtime"]
    subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", "-f", pom, *goal], check=True)
    return path.read_text("utf-8").strip().split(":")


def lines(release: str, work: Path) -> Iterator[dict[str, Any]]:
    """One object for every message at every version that a release has."""
    jars = class_path(release, work)
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


def of_one_kind(line: dict[str, Any]) -> tuple[Any, ...]:
    """What is equal for the same message at the same version in two releases."""
    name = line["message"]
    if "api_key" in line:
        # An API may have had another name, but not another key.
        return line["api_key"], name.endswith("ResponseData"), line["version"]
    return name, line["version"]


def main() -> None:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as work:
        for release in RELEASES:
            for line in lines(release, Path(work)):
                if line["message"].endswith("Key"):
                    # Until 4.1 the version of a coordinator's key was the type of the record, which had no versions.
                    line["version"] = 0
                found.setdefault(of_one_kind(line), line)
    ordered = sorted(found.values(), key=lambda line: (line["message"], line["version"]))
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in ordered)
    VECTORS.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    vectors = sum(len(line["vectors"]) for line in ordered)
    print(f"{len(ordered)} messages at a version, {vectors} vectors, {VECTORS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
