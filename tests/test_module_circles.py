"""No module needs, over however many others, itself: what a module is about can be read without what is above it."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.imports import import_statements

PACKAGE = Path(__file__).resolve().parent.parent / "kwiresniff"
FILES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imported(text: str) -> set[str]:
    """The modules of ours that a source imports, inside functions and for type checking included."""
    found: set[str] = set()
    for node in import_statements(text):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            # From a package comes a module or what the package itself holds.
            found |= names if names <= MODULES.keys() else {*names, node.module}
    return found & MODULES.keys()


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Every largest set of modules of which each needs all others (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        open_modules.append(module)
        for other in sorted(imports[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in open_modules:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            at = open_modules.index(module)
            circle = set(open_modules[at:])
            del open_modules[at:]
            if len(circle) > 1:
                found.append(circle)

    for module in sorted(imports):
        if module not in order:
            visit(module)
    return found


def described(circle: set[str], imports: dict[str, set[str]]) -> str:
    lines = [f"  {name} imports {', '.join(sorted(imports[name] & circle))}" for name in sorted(circle)]
    return "modules that need each other:\n" + "\n".join(lines)


def test_no_modules_need_each_other() -> None:
    """Imports inside functions count, and so do those for type checking."""
    imports = {name: imported(path.read_text(encoding="utf-8")) - {name} for name, path in MODULES.items()}
    found = circles(imports)
    assert not found, "\n".join(described(circle, imports) for circle in found)


def test_a_circle_is_found_wherever_it_begins() -> None:
    """Two circles and a module beside them, by hand."""
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(map(sorted, circles(imports))) == [["a", "b", "c"], ["d", "e"]]


def test_imports_inside_functions_and_for_type_checking_are_seen() -> None:
    """Both tie two modules together as much as any other import does."""
    source = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from kwiresniff.codec import headers\n"
        "def late():\n    from kwiresniff.model import Node\n"
    )
    assert imported(source) == {"kwiresniff.codec.headers", "kwiresniff.model"}
