"""The installed command in a folder full of modules, programs and settings that are not its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import pytest

from kwiresniff.cli.main import COMMANDS
from tests.support.environment import REQUIRE_SPARK
from tests.support.package import HOME
from tests.support.paths import CAPTURES

CAPTURE = str(CAPTURES / "first-look.pcap")
ENCRYPTED = str(CAPTURES / "kcat-tls.pcap")
#: What pip writes as the program (the entry point of pyproject.toml).
_SCRIPT = "import sys\nfrom kwiresniff.__main__ import main\nsys.exit(main())\n"
_MODULE = """import os
with open({ran!r}, "a") as file:
    print(__file__, file=file)
"""
_PROGRAM = """#!/bin/sh
echo "$0 $*" >> '{ran}'
exit 1
"""
#: Modules that the command and Spark's workers import.
_MODULES = frozenset({
    *sys.stdlib_module_names, "cbor2", "click", "cramjam", "duckdb", "fastavro", "google", "google_crc32c",
    "grpc_tools", "jinja2", "jsonschema", "kwiresniff", "kwiresniff_values", "librt", "lz4", "msgpack", "numpy",
    "opentelemetry", "orjson", "pandas", "py4j", "pyarrow", "pyshark", "pyspark", "pyspark_kwiresniff",
    "pyspark_planted", "rich", "scapy", "zstandard",
})  # fmt: skip
#: Programs that some command may look for on the path, and those that Spark's scripts and Hadoop use.
_PROGRAMS = ("tshark", "dumpcap", "tcpdump", "less", "java", "bash", "dirname", "setsid", "ps")
#: Arguments of each command; {out} is a folder outside.
_SPARKLESS = {
    "read": ["read", CAPTURE],
    "sniff": ["sniff", "-i", "no-such-interface", "--duration", "1s"],
    "stats": ["stats", "-o", "json", CAPTURE],
    "export": ["export", CAPTURE, "-O", "{out}/exported.parquet"],
    "clients": ["clients", CAPTURE],
    "audit": ["audit", CAPTURE, "--target", "4.0"],
    "topics": ["topics", CAPTURE],
    "flows": ["flows", CAPTURE],
    "follow": ["follow", "connection=1", CAPTURE],
    "query": ["query", "SELECT 1 FROM exchanges", CAPTURE],
    "browse": ["browse", CAPTURE],
    "groups": ["groups", CAPTURE],
    "doctor": ["doctor", CAPTURE],
    "diff": ["diff", CAPTURE, CAPTURE],
    "producers": ["producers", CAPTURE],
    "report": ["report", CAPTURE, "-O", "{out}/report.html"],
    "decode": ["decode", "--help"],
    "schema": ["schema", "show", "Metadata"],
    "plugins": ["plugins", "--value-format", "packed=msgpack", "--value-format", "concise=cbor"],
}
_PIPELINE = (
    ["pipeline", "run", CAPTURE, "--out", "{out}/run"],
    ["pipeline", "query", "{out}/run", "SELECT percentile_ns(collect_list(latency), 0.5) FROM latency"],
    ["pipeline", "watch", "{out}/in", "--out", "{out}/watched", "--finish"],
)


class Planted:
    """``here`` is a folder in which everything that runs leaves its name in ``ran``."""

    def __init__(self, path: Path, modules: Collection[str] = _MODULES) -> None:
        self.here, self.out, self.ran = path / "planted" / "here", path / "out", path / "ran"
        self.here.mkdir(parents=True)
        (self.out / "in").mkdir(parents=True)
        (self.out / "in" / "first-look.pcap").write_bytes(Path(CAPTURE).read_bytes())
        self.script = path / "installed" / "command"
        self.script.parent.mkdir()
        self.script.write_text(_SCRIPT)
        for name in modules:
            (self.here / f"{name}.py").write_text(_MODULE.format(ran=str(self.ran)))
        (self.here / "config.ini").write_text(f"[tshark]\ntshark_path = {self.here}/tshark\n")
        (self.here / "spark-defaults.conf").write_text("spark.master nonsense\n")
        (self.here / "hadoop-metrics2.properties").write_text("*.sink.file.class=nonsense\n")
        (self.here / "bin").mkdir()
        for folder in (self.here, self.here / "bin", self.here.parent / "bin"):
            folder.mkdir(exist_ok=True)
            for name in (*_PROGRAMS, "spark-submit"):
                (folder / name).write_text(_PROGRAM.format(ran=self.ran))
                (folder / name).chmod(0o755)
        for folder in (self.here, self.here.parent):
            (folder / "jars").mkdir()
        self.planted = self.files()

    def files(self) -> set[Path]:
        return set(self.here.rglob("*"))

    def run(
        self, arguments: list[str], folder: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK_"))}
        return subprocess.run(
            [sys.executable, str(self.script), *(one.format(out=self.out) for one in arguments)],
            check=False, cwd=folder or self.here, capture_output=True, text=True, timeout=300,
            env=given | {"PYTHONPATH": str(HOME), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        )  # fmt: skip

    def check(self) -> None:
        """Raises AssertionError where something of the folder has run, or was written to it."""
        assert not self.ran.exists(), self.ran.read_text()
        assert self.files() == self.planted


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def test_every_command_is_tried() -> None:
    """A command that is added to the program is added to these tests."""
    assert {*_SPARKLESS, "pipeline"} == set(COMMANDS)


@pytest.mark.parametrize("command", _SPARKLESS)
def test_a_command_runs_nothing_of_the_current_folder(command: str, planted: Planted) -> None:
    """Neither modules, nor programs where PATH has the current folder first, and writes nothing there."""
    planted.run(_SPARKLESS[command], PATH=os.pathsep.join([".", "", os.environ["PATH"]]))
    planted.check()


@pytest.mark.parametrize("entry", ["", "."])
def test_an_entry_of_the_search_path_that_is_not_absolute_is_left_out(entry: str, tmp_path: Path) -> None:
    """Python itself loads some modules before the command begins; the others are not taken from there."""
    planted = Planted(tmp_path, ("click", "rich", "orjson", "zstandard"))
    done = planted.run(["read", "-o", "jsonl", CAPTURE], PYTHONPATH=os.pathsep.join([entry, str(HOME)]))
    assert done.returncode == 0, done.stderr
    planted.check()


@pytest.mark.skipif(find_spec("pyshark") is None, reason="pyshark is not installed")
def test_tshark_is_not_taken_from_the_current_folder(planted: Planted) -> None:
    """Neither from PATH nor from the config.ini that pyshark reads."""
    keys = str(CAPTURES / "keys" / "kcat-tls.log")
    planted.run(
        ["read", ENCRYPTED, "--keylog", keys, "--tls-engine", "tshark"], PATH=os.pathsep.join([".", os.environ["PATH"]])
    )
    planted.check()


def test_a_report_is_the_same_in_every_folder(planted: Planted) -> None:
    """What lies there changes nothing of it."""
    pytest.importorskip("jinja2")
    pages = []
    for folder in (planted.here, planted.out):
        done = planted.run(["report", CAPTURE, "-O", "{out}/report.html"], folder)
        assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
        pages.append((planted.out / "report.html").read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_spark_and_its_workers_use_nothing_of_the_current_folder(planted: Planted) -> None:
    """In processes of their own, whose workers import modules; beside it the Spark of the folder above is planted."""
    if find_spec("pyspark") is None and not os.environ.get(REQUIRE_SPARK):
        pytest.skip("pyspark is not installed; pip install '.[spark]'")
    for arguments in _PIPELINE:
        done = planted.run(arguments, PATH=os.pathsep.join([".", os.environ["PATH"]]))
        assert done.returncode == 0, done.stderr
        planted.check()
    totals = [json.loads((planted.out / name / "manifest.json").read_text())["total"] for name in ("run", "watched")]
    assert totals[0]["rows"]["exchanges"] == totals[1]["rows"]["exchanges"] > 0
