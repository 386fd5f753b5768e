"""Records librdkafka's mock cluster with an old and a new librdkafka: messages with bytes left over behind them.

    sudo python3 -m captures.recipes.stream.leftovers

needs tcpdump, tshark and ``confluent-kafka==2.16.1`` beside Python, and gets the wheel with librdkafka 0.11.6 by pip.
Writes ``captures/leftovers/``: the recording and its row, whose counts are tshark's.
"""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from ctypes import byref, c_char_p, c_void_p, create_string_buffer
from pathlib import Path

from confluent_kafka import Producer, libversion

FOLDER = Path(__file__).parents[2] / "leftovers"
NAME = "librdkafka-mock.pcap"
SHOWS = "Four bytes behind ApiVersions v0, one behind Metadata, and a refusal of ApiVersions in an odd form."
OLD = ["confluent-kafka==0.11.6", "--python-version=3.6", "--platform=manylinux1_x86_64", "--abi=cp36m"]
RD_KAFKA_PRODUCER = 0


def old_librdkafka(folder: Path) -> ctypes.CDLL:
    """The library inside the last wheel of its release, with the libraries that it brings along."""
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
    subprocess.run([*fetch, *OLD], check=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    libraries = folder / "confluent_kafka" / ".libs"
    for name in ("libz-", "libcrypto-", "libssl-"):
        for path in libraries.glob(f"{name}*"):
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(libraries / "librdkafka.so.1"))
    library.rd_kafka_version_str.restype = c_char_p
    library.rd_kafka_conf_new.restype = library.rd_kafka_new.restype = c_void_p
    return library


def ask_as_old_client(library: ctypes.CDLL, servers: str) -> None:
    """A client of 2018 asks for the versions and the metadata."""
    said = create_string_buffer(512)
    conf = c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(conf, b"bootstrap.servers", servers.encode(), said, len(said))
    client = c_void_p(library.rd_kafka_new(RD_KAFKA_PRODUCER, conf, said, len(said)))
    metadata = c_void_p()
    assert library.rd_kafka_metadata(client, 1, None, byref(metadata), 5000) == 0
    library.rd_kafka_destroy(client)


def ask_as_new_client(servers: str) -> None:
    """A client of today does the same, and produces a record."""
    client = Producer({"bootstrap.servers": servers, "client.id": "shop"})
    client.list_topics(timeout=5)
    client.produce("orders", b"one")
    client.flush(5)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    capture = FOLDER / NAME
    mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none"})
    (port,) = [broker.port for broker in mock.list_topics(timeout=10).brokers.values()]
    with tempfile.TemporaryDirectory() as folder:
        library = old_librdkafka(Path(folder))
        dump = subprocess.Popen(["tcpdump", "-q", "-U", "-i", "lo", "-w", str(capture), f"tcp port {port}"])
        time.sleep(2)
        ask_as_old_client(library, f"127.0.0.1:{port}")
        ask_as_new_client(f"127.0.0.1:{port}")
        time.sleep(1)
        dump.terminate()
        dump.wait()
        old = library.rd_kafka_version_str().decode()
    fields = ["-T", "fields", "-e", "kafka.api_key", "-e", "kafka.api_version"]
    tshark = ["tshark", "-r", str(capture), "-d", f"tcp.port=={port},kafka", "-Y", f"kafka and tcp.dstport == {port}"]
    told = subprocess.run([*tshark, *fields], capture_output=True, text=True, check=True).stdout
    requests = Counter("API {} v{}".format(*line.split("\t")[:2]) for line in told.splitlines())
    listed = subprocess.run(["tcpdump", "-r", str(capture)], capture_output=True, text=True, check=True).stdout
    packets = listed.count("\n")
    counts = ", ".join(f'"{api}" = {count}' for api, count in sorted(requests.items()))
    (FOLDER / "MANIFEST.toml").write_text(
        "# Written by recipes/stream/leftovers.py; tests/damage demands that file and row agree.\n"
        "#\n"
        "# requests        what tshark counts, by number of the API and version\n\n"
        "[[capture]]\n"
        f'file = "{NAME}"\n'
        f'shows = "{SHOWS}"\n'
        f'broker = "mock cluster of librdkafka {libversion()[0]}"\n'
        f'client = "librdkafka {old}, librdkafka {libversion()[0]}"\n'
        'recipe = "recipes/stream/leftovers.py"\n'
        f'sha256 = "{hashlib.sha256(capture.read_bytes()).hexdigest()}"\n'
        'format = "pcap"\nlink_type = "ether"\n'
        f"port = {port}\npackets = {packets}\n"
        f"requests = {{{counts}}}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
