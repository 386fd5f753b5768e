"""Record values in the formats that applications use: ``python3 -m captures.recipes.values.values [NAME...]``.

The registry is Apicurio's, which has Confluent's API; it runs beside the clients, and what they say to it is not
recorded. ``serdes`` comes with the truth: what each record was made from, and the schemas of its registry.
Needs what record.py needs.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from captures.recipes.shared import manifest, programs, rig
from captures.recipes.shared.scenario import topics
from captures.recipes.shared.work import CLIENT_TIMEOUT_S, DEFAULT_WORK

FOLDER = Path(__file__).parents[2] / "values"
APICURIO = "io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all"
PORT = 8080
CONFLUENT_API = f"http://127.0.0.1:{PORT}/apis/ccompat/v7"
APICURIO_API = f"http://127.0.0.1:{PORT}/apis/registry/v3"
CLIENTS = "confluent-kafka 2.16.1, msgpack 1.2.4, cbor2 6.3.0, cloudevents 2.2.0"
SERDES_TOPICS = ("_schemas", "orders", "parcels", "payments", "guided", "glued", "azure", "bare", "packed", "concise",
                 "events", "traced")  # fmt: skip
BROKER = rig.BrokerSetup(settings={"auto.create.topics.enable": "true"})
HEADER = """\
# One row per capture. Written by recipes/values/values.py; tests/values demands that files and rows agree.
# serdes/truth.jsonl has what each record of serdes.pcap.xz was made from, in the order in which they were produced.
"""
#: Name -> what it shows, the clients, topics, the program with its arguments.
RECORDINGS = {
    "serdes": (
        "Avro, Protobuf and JSON Schema with their ids, GUIDs and misfits; MessagePack, CBOR, CloudEvents, trace ids.",
        CLIENTS,
        SERDES_TOPICS,
        ("values_serdes.py", "{bootstrap}", CONFLUENT_API, "{scratch}"),
    ),
    "apicurio": (
        "Avro and Protobuf by Apicurio's serializers: a content id in front, a global id in front and in a header.",
        "kafka-clients (Java) 4.4.0, Apicurio Registry's serializers 3.1.7",
        ("by-content-id", "by-global-id", "by-header", "in-json", "meters", "meters-by-header"),
        ("ValuesApicurio", "{bootstrap}", APICURIO_API),
    ),
    "connect": (
        "A change event of Debezium by Kafka Connect's JsonConverter, with its schema and without.",
        "kafka-clients (Java) 4.4.0, connect-json 4.4.0, Debezium 3.0.8",
        ("shop.public.orders",),
        ("ValuesConnect", "{bootstrap}"),
    ),
    "windows": (
        "Kafka Streams counts in windows of a minute and in sessions: repartition and changelog topics.",
        "Kafka Streams 4.4.0",
        ("visits",),
        ("ValuesWindows", "{bootstrap}"),
    ),
}


@contextmanager
def registry(work: Path, scratch: Path) -> Iterator[None]:
    """Apicurio Registry on the clients' machine, with nothing in it, up."""
    name = "-".join(APICURIO.split(":")[1:3])
    home = work / name
    if not home.exists():
        rig.run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={APICURIO}", f"-DoutputDirectory={scratch}")
        (archive,) = scratch.glob(f"{name}*.tar.gz")
        shutil.unpack_archive(archive, home)
    (jar,) = home.glob("*-runner.jar")
    command = ["java", "-Xmx512m", f"-Dquarkus.http.port={PORT}", "-jar", str(jar)]
    with (scratch / "registry.log").open("wb") as log:
        process = subprocess.Popen(rig.inside(rig.CLIENT_SPACE, *command), stdout=log, stderr=log, cwd=home)
    ask = rig.inside(rig.CLIENT_SPACE, "curl", "-sf", "-o", "/dev/null", f"{CONFLUENT_API}/subjects")
    try:
        end = time.monotonic() + rig.START_TIMEOUT_S
        while subprocess.run(ask, check=False).returncode:
            if time.monotonic() > end:
                raise RuntimeError(f"the registry did not come up, see {scratch / 'registry.log'}")
            time.sleep(1)
        yield
    finally:
        rig.stop(process)


def start(program: str, arguments: tuple[str, ...], work: Path) -> list[str]:
    """The command line of a client program, after what it needs has been fetched."""
    if program.endswith(".py"):
        python = programs.python("requirements-values.txt", work)
        return [str(python), str(programs.CLIENTS / "python" / program), *arguments]
    jars = rig.maven(rig.HERE / "kafka" / "values-pom.xml", work / "values-4.4.0", "4.4.0")
    return [*programs.java_source(jars, program), *arguments]


def record(name: str, work: Path) -> None:
    """Make one recording, with its truth."""
    _, _, names, (program, *arguments) = RECORDINGS[name]
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        places = {"scratch": temporary}
        with rig.network(), ExitStack() as stack:
            running = stack.enter_context(BROKER.start(work, scratch))
            stack.enter_context(registry(work, scratch))
            words = tuple(word.format(bootstrap=running.bootstrap, **places) for word in arguments)
            (prepare,) = topics(*names)
            prepared = programs.command_line(
                prepare[0], tuple(w.format(bootstrap=running.bootstrap) for w in prepare[1:]), work
            )
            command = start(program, words, work)
            subprocess.run(rig.inside(rig.CLIENT_SPACE, *prepared), check=True, timeout=CLIENT_TIMEOUT_S)
            stack.enter_context(rig.recording(rig.Tap(filter="tcp port 9092"), scratch / f"{name}.pcap"))
            inside = rig.inside(rig.CLIENT_SPACE, *command)
            subprocess.run(inside, check=True, cwd=scratch, timeout=CLIENT_TIMEOUT_S, stdout=sys.stderr)
        FOLDER.mkdir(exist_ok=True)
        content = (scratch / f"{name}.pcap").read_bytes()
        (FOLDER / f"{name}.pcap.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        if (scratch / "truth.jsonl").exists():
            target = FOLDER / name
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            shutil.copy(scratch / "truth.jsonl", target)
            shutil.copytree(scratch / "schemas", target / "schemas")


def write_manifest() -> None:
    """A row for each recording that is there."""
    text = HEADER
    for name, (shows, client, _, _) in RECORDINGS.items():
        file = FOLDER / f"{name}.pcap.xz"
        if not file.exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            capture = Path(temporary) / f"{name}.pcap"
            capture.write_bytes(lzma.decompress(file.read_bytes()))
            form, link, packets = manifest.capinfos(capture)
        row = {
            "file": file.name,
            "shows": shows,
            "broker": BROKER.described,
            "client": client,
            "recipe": f"recipes/values/values.py {name}",
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "format": form,
            "link_type": link,
            "packets": packets,
        }
        text += "\n[[capture]]\n" + manifest.table(row)
    (FOLDER / "MANIFEST.toml").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECORDINGS)}; all without")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="where downloads are kept")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for name in options.names or RECORDINGS:
        record(name, options.work)
    write_manifest()


if __name__ == "__main__":
    main()
