"""A parameter that is a number says what it counts: by its name, or in the docstring."""

from __future__ import annotations

import ast
import re

from tests.support.paths import ROOT

PACKAGE = ROOT / "kwiresniff"
ROOMS = ("base", "capture", "codec", "model.py", "results", "session", "stream")
FILES = sorted(path for room in ROOMS for path in ([PACKAGE / room] if "." in room else (PACKAGE / room).rglob("*.py")))
NUMBERS = {"int", "i64", "float", "int | None"}
#: The names that mean the same everywhere, as docs/architecture.md explains them; a star stands for any beginning.
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Names of numbers")[1].split("\n## ")[0]
FIRST_COLUMN = re.findall(r"^\| (`[^|]*)\|", SECTION, re.MULTILINE)
NAMES = {name for cell in FIRST_COLUMN for name in re.findall(r"`([\w*]+)`", cell)}


def is_common(name: str) -> bool:
    """Whether the page explains a name, or its ending."""
    return any(name.endswith(one[1:]) if one[0] == "*" else name == one for one in NAMES)


def unexplained(source: str) -> list[str]:
    """``function(parameter)`` of public functions, and of the constructors of public classes, of a source."""
    found = []

    def look(body: list[ast.stmt], above: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                look(node.body, ast.get_docstring(node) or " ")
            elif isinstance(node, ast.FunctionDef) and (node.name[0] != "_" or node.name == "__init__"):
                said = (ast.get_docstring(node) or "") + above
                for one in [*node.args.args, *node.args.kwonlyargs]:
                    kind = ast.unparse(one.annotation) if one.annotation is not None else ""
                    if kind in NUMBERS and not is_common(one.arg) and not re.search(rf"\b{one.arg}\b", said):
                        found.append(f"{node.name}({one.arg})")

    look(ast.parse(source).body, "")
    return found


def test_numbers_say_what_they_count() -> None:
    """By a name that docs/architecture.md explains, or a word on it in the docstring of its function or class."""
    assert len(FILES) > 150
    found = {str(path.relative_to(PACKAGE)): unexplained(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_number_that_says_nothing_is_found() -> None:
    """Of functions, methods and constructors, but not of what is private."""
    source = (
        "def f(size: int, wait_ns: int, room: int) -> None: ...\n"
        'def g(room: int) -> None:\n    """Room in ``room``."""\n'
        'class A:\n    """``top``."""\n    def __init__(self, top: int, low: int) -> None: ...\n'
        "    def _h(self, room: int) -> None: ...\n    def i(self, *, room: int | None) -> None: ...\n"
    )
    assert unexplained(source) == ["f(room)", "__init__(low)", "i(room)"]
