"""What tests share lies in ``tests/support``: no test module knows another."""

from __future__ import annotations

import ast

import pytest

from tests.support.imports import import_statements
from tests.support.paths import TESTS

MODULES = sorted(path.relative_to(TESTS) for path in TESTS.rglob("*.py"))


def imported(source: str) -> list[str]:
    """Every module that a source imports, and what it takes out of packages: that may be a module as well."""
    found = []
    for node in import_statements(source):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def is_test(name: str) -> bool:
    """Whether what is imported is, or is in, a test module or a conftest."""
    room, *rest = name.split(".")
    return room == "tests" and any(part.startswith("test_") or part == "conftest" for part in rest)


def test_no_module_imports_tests() -> None:
    """Neither a test module nor a conftest is imported: fixtures are found by their names, helpers in their place."""
    assert len(MODULES) > 250
    texts = {str(path): (TESTS / str(path)).read_text(encoding="utf-8") for path in MODULES}
    assert [(path, name) for path, text in texts.items() for name in imported(text) if is_test(name)] == []


@pytest.mark.parametrize(
    "line", ["from tests.cli.test_read import read", "import tests.cli.test_read", "from tests.cli import test_read"]
)
def test_an_import_is_seen_in_each_of_its_forms(line: str) -> None:
    """Each of the three statements would bring in the test module ``tests.cli.test_read``."""
    assert "tests.cli.test_read" in filter(is_test, imported(line))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f():\n    from a.b import (\n        c,  # one\n        d,\n    )\n", ["a.b", "a.b.c", "a.b.d"]),
        ("if TYPE_CHECKING:\n    import a, b.c as d\n", ["a", "b.c"]),
        ("from a import b; import c\n", ["a", "a.b", "c"]),
        ("from a import \\\n    b\n", ["a", "a.b"]),
        ("from a import (  # (so)\n    b,\n)\n", ["a", "a.b"]),
        ('"""Those that\nimport nothing else."""\nimport a\n', ["a"]),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, names: list[str]) -> None:
    """Over several lines, with comments between, and beside a text with a line that only begins like one."""
    assert imported(source) == names
