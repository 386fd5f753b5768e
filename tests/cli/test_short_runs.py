"""What commands do without: modules that a capture without anything unusual does not need."""

from __future__ import annotations

import ast
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
if sys.version_info >= (3, 14):
    HEAVY = tuple(name for name in HEAVY if name != "ast")  # typing needs it there for any named tuple
#: Modules that only trees need, and what is wrong with a message.
CAREFUL = ("threading", "datetime", "kwiresniff.codec.dissector", "kwiresniff.codec.folding")


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


@pytest.mark.parametrize("command", ["doctor", "clients", "groups", "topics", "producers"])
def test_an_analysis_does_without_what_makes_classes_and_without_click(tmp_path: Path, command: str) -> None:
    """``dataclasses`` imports the parser of Python, and each class that it makes takes half a millisecond."""
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    _, names = imported(HEAVY, command, "-q", capture)
    assert names == []


def test_no_named_tuple_has_annotations_that_are_text() -> None:
    """Each is compiled when the class is made, and the first call of ``compile`` makes all classes of syntax trees: two
    milliseconds. So modules with named tuples are without ``from __future__ import annotations``, and quote no type of
    a field. What runs on Spark takes seconds to begin; what mypyc compiles has types, not texts.
    """
    modules = [path for path in (ROOT / "kwiresniff").rglob("*.py") if path.parent.name != "pipeline"]
    found = [path for path in modules if path.name != "model.py" and _texts_of_named_tuples(path)]
    assert found == []
    assert _texts_of_named_tuples(ROOT / "kwiresniff" / "model.py")


def _texts_of_named_tuples(path: Path) -> list[str]:
    """The fields of a module's named tuples whose annotations are left as text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    future = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    return [
        ast.unparse(field)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and (future or isinstance(field.annotation, ast.Constant))
    ]
