"""Imports point one way: a room knows only the rooms below it, and no module needs, over others, itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.imports import import_statements

PACKAGE = Path(__file__).resolve().parent.parent / "kwiresniff"

BASE = {"base", "digest", "model", "results", "errors"}
#: Room -> what it may import of ours. Everybody may import itself.
ALLOWED = {
    "base": set(),
    "digest": {"base"},
    "model": {"base", "digest"},
    "results": {"base", "model"},
    "errors": set(),
    "schema": BASE,
    "codec": BASE | {"schema"},
    "capture": BASE,
    "stream": BASE,
    "session": BASE | {"schema", "codec", "stream"},
    "identity": BASE | {"schema"},
    "analysis": BASE | {"schema", "identity"},
    "index": BASE | {"schema", "capture", "session", "identity", "analysis"},
    "render": BASE | {"schema"},
    "export": BASE,
    "plugins": BASE | {"identity", "analysis", "export"},
    "packets": BASE | {"schema", "codec", "capture", "stream", "session", "render", "export"},
    "pipeline": BASE
    | {"schema", "codec", "capture", "stream", "session", "identity", "analysis", "export", "plugins", "reading"},
    "cli": BASE
    | {"schema", "codec", "capture", "stream", "session", "identity", "analysis", "render", "export", "plugins"}
    | {"index", "browse", "packets", "pipeline", "reading"},
    "browse": BASE | {"schema", "capture", "session", "index", "render"},
    "reading": BASE | {"session", "identity", "analysis", "plugins"},
    "library": BASE | {"capture", "session", "identity", "analysis", "export", "plugins", "reading"},
    "__main__": {"base", "cli"},
    "__init__": {"library"},
}
#: Heavy or single-purpose packages -> the only rooms that may import them.
AT_HOME = {
    "scapy": {"capture"},
    "pyshark": {"capture"},
    "cryptography": {"session"},
    "pyspark": {"pipeline"},
    "duckdb": {"pipeline"},
    "click": {"cli"},
    "rich": {"render", "cli", "browse"},
    "textual": {"browse"},
    "pyarrow": {"export", "pipeline"},
    "jinja2": {"render"},
    "prometheus_client": {"export"},
}

FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every absolute module name a file imports, those for type checking included."""
    for node in import_statements(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            yield module
            if module == "kwiresniff":
                yield from (f"kwiresniff.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


def is_allowed(room: str, name: str) -> bool:
    """Whether a room may import a module or a name of one."""
    top, _, rest = name.partition(".")
    if top == "kwiresniff" and rest:
        target = rest.split(".")[0]
        return target == room or target in ALLOWED[room] or target == "__version__"
    return top not in AT_HOME or room in AT_HOME[top]


def test_modules_import_only_rooms_below_their_own() -> None:
    """By the table above, which is the design."""
    assert len(FILES) > 400
    found = [(str(path), name) for path in FILES for name in imports(path) if not is_allowed(room_of(path), name)]
    assert found == []


@pytest.mark.parametrize(
    ("room", "name"), [("stream", "kwiresniff.session"), ("codec", "kwiresniff.cli.main"), ("session", "scapy.all")]
)
def test_an_import_that_points_up_is_found(room: str, name: str) -> None:
    """Of a room of ours that lies above, and of a library away from its home."""
    assert not is_allowed(room, name)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def modules_needed(path: Path, modules: set[str]) -> set[str]:
    """The modules of ours that a file imports; from a package comes a module, or what the package itself holds."""
    found: set[str] = set()
    for node in import_statements(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= modules else {*names, node.module}
    return found & modules - {module_name(path)}


def test_no_modules_need_each_other() -> None:
    """Imports inside functions count, and so do those for type checking; a circle is raised with its modules."""
    modules = {module_name(path) for path in FILES}
    TopologicalSorter({module_name(path): modules_needed(path, modules) for path in FILES}).prepare()


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


@pytest.mark.parametrize("room", ["capture", "codec", "schema", "session"])
def test_no_module_takes_the_place_of_a_function(room: str) -> None:
    """Importing a module puts it into its package, over a function of that name which was there before."""
    code = (
        "import importlib, pkgutil, sys, types\n"
        "package = importlib.import_module(sys.argv[1])\n"
        "for _, name, _ in pkgutil.iter_modules(package.__path__): importlib.import_module(f'{sys.argv[1]}.{name}')\n"
        "print([name for name in package.__all__ if isinstance(getattr(package, name), types.ModuleType)])"
    )
    command = [sys.executable, "-c", code, f"kwiresniff.{room}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
