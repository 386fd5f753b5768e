"""Client programs: how each kind is built, once, and started.

A program is named by its kind: ``java:4.4.0:Group`` is the single-file program ``clients/java/Group.java`` with that
version of the Java client, ``java-tls:`` the same over TLS, ``java-keylog:`` with a log of its keys too, ``streams:``
the same with Kafka Streams, ``broker:`` with all that the broker of that version brings, ``go:franz`` and
``node:kafkajs.js`` are what their folders hold, and a name ending in ``.py`` is a Python program, run with the old
clients when the name says so.
"""

from __future__ import annotations

import shutil
import venv
from pathlib import Path

from captures.recipes.shared import rig, zookeeper

CLIENTS = rig.HERE / "clients"
KEYLOG_AGENT = "name.neykov:extract-tls-secrets:4.0.0"


def command_line(program: str, arguments: tuple[str, ...], work: Path) -> list[str]:
    """The command line that starts a program, after whatever has to be fetched and built into ``work`` for it."""
    kind, _, name = program.rpartition(":")
    if kind.startswith(("java:", "streams:")):
        start = java(*kind.split(":"), name, work)
    elif kind.startswith(("java-tls:", "java-keylog:")):
        start = java_tls(*kind.split(":"), name, work)
    elif kind.startswith("broker:"):
        start = java_source(zookeeper.jars(kind.removeprefix("broker:"), work), name)
    elif kind == "go":
        start = [str(go(name, work))]
    elif kind == "node":
        start = ["node", str(node(name, work))]
    else:
        requirements = "requirements-old.txt" if name.startswith("old_") else "requirements.txt"
        start = [str(python(requirements, work)), str(CLIENTS / "python" / name)]
    return [*start, *arguments]


def java(kind: str, version: str, name: str, work: Path) -> list[str]:
    library = {"java": "client", "streams": "streams"}[kind]
    jars = rig.maven(rig.HERE / "kafka" / f"{library}-pom.xml", work / f"{library}-{version}", version)
    return java_source(jars, name)


def java_tls(kind: str, version: str, name: str, work: Path) -> list[str]:
    """A Java client that trusts the recipes' certificate; an agent may log its keys to ``keys.log`` where it runs."""
    command, *rest = java("java", version, name, work)
    options = [f"-Drecipe.certificate={rig.HERE / 'kafka' / 'tls.pem'}"]
    if kind == "java-keylog":
        agent = work / f"{KEYLOG_AGENT.replace(':', '-').removeprefix('name.neykov-')}.jar"
        if not agent.exists():
            rig.run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={KEYLOG_AGENT}", f"-DoutputDirectory={work}")
        options.append(f"-javaagent:{agent}=keys.log")
    return [command, *options, *rest]


def java_source(jars: Path, name: str) -> list[str]:
    return ["java", "-Xmx256m", "-cp", f"{jars}/*", str(CLIENTS / "java" / f"{name}.java")]


def go(name: str, work: Path) -> Path:
    binary = work / "go" / name
    if not binary.exists():
        rig.run("go", "build", "-C", str(CLIENTS / "go"), "-o", str(binary), f"./{name}")
    return binary


def node(name: str, work: Path) -> Path:
    home = work / "node"
    if not (home / "node_modules").exists():
        home.mkdir(exist_ok=True)
        shutil.copy(CLIENTS / "node" / "package.json", home)
        rig.run("npm", "install", "--silent", "--no-package-lock", "--prefix", str(home))
    return Path(shutil.copy(CLIENTS / "node" / name, home))


def python(requirements: str, work: Path) -> Path:
    home = work / requirements.replace("requirements", "python").removesuffix(".txt")
    if not home.exists():
        venv.create(home, with_pip=True)
        rig.run(str(home / "bin" / "pip"), "install", "-q", "-r", str(CLIENTS / "python" / requirements))
    return home / "bin" / "python"
