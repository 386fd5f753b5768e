"""Imports point one way: a room knows only the rooms below it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "kwiresniff"

BASE = {"model", "answers", "errors", "jsontext", "compiled"}
#: Room -> what it may import of ours. Everybody may import itself.
ALLOWED = {
    "model": set(),
    "answers": {"model"},
    "errors": set(),
    "jsontext": set(),
    "compiled": set(),
    "schema": BASE,
    "codec": BASE | {"schema"},
    "capture": BASE,
    "stream": BASE,
    "session": BASE | {"schema", "codec", "stream"},
    "analysis": BASE | {"schema"},
    "render": BASE,
    "export": BASE,
    "plugins": BASE,
    "pipeline": BASE | {"schema", "codec", "capture", "stream", "session", "analysis", "export", "plugins"},
    "cli": BASE
    | {"schema", "codec", "capture", "stream", "session", "analysis", "render", "export", "plugins", "pipeline"},
    "__main__": {"cli"},
    "__init__": set(),
}
#: Heavy or single-purpose packages -> the only rooms that may import them.
AT_HOME = {
    "scapy": {"capture"},
    "pyshark": {"capture"},
    "pyspark": {"pipeline"},
    "click": {"cli"},
    "rich": {"render", "cli"},
    "pyarrow": {"export", "pipeline"},
    "jinja2": {"render"},
    "matplotlib": {"render"},
    "prometheus_client": {"export"},
}

FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every absolute module name a file imports, those for type checking included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            yield module
            if module == "kwiresniff":
                yield from (f"kwiresniff.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_rooms_below_its_own(path: Path) -> None:
    """By the table above, which is the design."""
    room = room_of(path)
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "kwiresniff" and rest:
            target = rest.split(".")[0]
            assert target == room or target in ALLOWED[room] or target == "__version__", f"{path} imports {name}"
        elif top in AT_HOME:
            assert room in AT_HOME[top], f"{path} imports {name}"


def test_help_loads_nothing_heavy() -> None:
    """``--help`` stays instant because nothing of these is imported for it."""
    code = (
        "import sys; from kwiresniff.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('scapy', 'pyshark', 'pyspark', 'pyarrow', 'prometheus_client', 'rich', 'asyncio')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
