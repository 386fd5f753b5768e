"""What commands do without: modules that a capture without anything unusual does not need."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.capture_files import heartbeats, save
from tests.support.paths import ROOT

#: Modules that take a millisecond or more, and that none of these commands uses.
HEAVY = (
    "click", "inspect", "ast", "uuid", "platform", "locale", "difflib", "dataclasses", "rich",
    "google_crc32c", "cramjam",
)  # fmt: skip
#: What says how many threads OpenBLAS starts.
THREADS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
#: Modules that only trees need, and what is wrong with a message.
CAREFUL = (
    "threading",
    "datetime",
    "typing",
    "re",
    "enum",
    "signal",
    "unicodedata",
    "kwiresniff.codec.dissector",
    "kwiresniff.codec.folding",
)


def imported(heavy: tuple[str, ...], *command: str) -> tuple[str, list[str]]:
    """What a command prints, run in a process of its own, and which of these modules it has imported."""
    script = (
        "import sys\n"
        f"sys.argv, heavy = ['kwiresniff', *{command!r}], {heavy!r}\n"
        "from kwiresniff.__main__ import main\n"
        "import kwiresniff.__main__ as start\n"
        "start._leave = lambda code: print(code, *(name for name in heavy if name in sys.modules), file=sys.stderr)\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    code, *names = done.stderr.split()
    assert (done.returncode, code) == (0, "0")
    return done.stdout, names


@pytest.mark.parametrize("command", [["stats"], ["read"], ["read", "-o", "summary"]], ids=" ".join)
def test_a_short_run_imports_nothing_that_it_does_not_use(tmp_path: Path, command: list[str]) -> None:
    """In a process of its own, on a capture without records."""
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    printed, names = imported(HEAVY if command == ["read"] else HEAVY + CAREFUL, *command, capture)
    assert names == []
    assert "Heartbeat" in printed


@pytest.mark.parametrize("command", [["read", "-o", "jsonl"], ["stats", "-o", "json"]], ids=" ".join)
def test_little_json_is_written_without_orjson(tmp_path: Path, command: list[str]) -> None:
    """orjson loads modules of all that it could be given: a quarter of a short run."""
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    printed, names = imported((*HEAVY, "orjson", "json", "re", "enum", "gzip"), *command, capture)
    assert names == []
    assert "Heartbeat" in printed


@pytest.mark.parametrize("command", ["doctor", "clients", "groups", "topics", "producers"])
def test_an_analysis_does_without_what_makes_classes_and_without_click(tmp_path: Path, command: str) -> None:
    """``dataclasses`` imports the parser of Python, and each class that it makes takes half a millisecond."""
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    _, names = imported(HEAVY, command, "-q", capture)
    assert names == []


def test_a_doctor_with_nothing_to_say_does_without_what_its_findings_need(tmp_path: Path) -> None:
    """Times of day, addresses and patterns stand in findings; what imports them takes a tenth of a short run."""
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    _, names = imported(("typing", "re", "enum", "datetime", "ipaddress"), "doctor", "-q", capture)
    assert names == []


def test_only_the_pipeline_imports_typing() -> None:
    """``kwiresniff.base.light_typing`` has its names; what runs on Spark takes seconds to begin."""
    modules = [path for path in (ROOT / "kwiresniff").rglob("*.py") if path.parent.name != "pipeline"]
    allowed = ROOT / "kwiresniff" / "base" / "light_typing.py"
    found = [
        path
        for path in modules
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom)) and "typing" in _names(node) and path != allowed
    ]
    assert found == []
    assert "typing" in [name for node in ast.walk(ast.parse(allowed.read_text())) for name in _names(node)]


def test_modules_with_named_tuples_leave_annotations_as_text() -> None:
    """From Python 3.14 on a class without ``from __future__ import annotations`` does not know its fields at once."""
    modules = {path: path.read_text(encoding="utf-8") for path in (ROOT / "kwiresniff").rglob("*.py")}
    light = [text for text in modules.values() if "light_typing import" in text and "(NamedTuple)" in text]
    assert len(light) > 30
    assert [text for text in light if "from __future__ import annotations" not in text] == []


def _names(node: ast.AST) -> list[str]:
    """The modules that an import names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted under /proc, which is Linux's")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="OpenBLAS starts no more threads than there are processors: one")
def test_parquet_has_no_threads_that_wait_for_matrices(tmp_path: Path) -> None:
    """What numpy's OpenBLAS would start for each processor, unless whoever runs the command asks for that."""

    def threads(name: str, **environment: str) -> int:
        script = (
            "import os, sys\n"
            f"sys.argv = ['kwiresniff', 'export', '-O', {str(tmp_path / name)!r}, {capture!r}]\n"
            "import kwiresniff.__main__ as start\n"
            "start._leave = lambda code: print('numpy' in sys.modules, len(os.listdir('/proc/self/task')))\n"
            "start.main()\n"
        )
        inherited = {name: value for name, value in os.environ.items() if name not in THREADS}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env=inherited | environment, capture_output=True, check=True
        )
        imported, count = done.stdout.split()
        assert imported == b"True"
        return int(count)

    capture = save(tmp_path / "a.pcap", heartbeats(2))
    one = threads("one.parquet", OPENBLAS_NUM_THREADS="1")
    assert threads("two.parquet", OPENBLAS_NUM_THREADS="2") == one + 1
    assert threads("usual.parquet") == one
