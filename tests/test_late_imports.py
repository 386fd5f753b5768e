"""Packages that import some of their names on use hide none of their mistakes from mypy."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.paths import ROOT

ROOMS = sorted(
    path.parent.name for path in (ROOT / "kwiresniff").glob("*/__init__.py") if "__getattr__" in path.read_text("utf-8")
)


def test_there_are_packages_that_import_late() -> None:
    assert "schema" in ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_mypy_does_not_see_the_late_import(room: str) -> None:
    """A ``__getattr__`` that mypy sees gives every name the type Any, misspelled ones, too."""
    tree = ast.parse((ROOT / "kwiresniff" / room / "__init__.py").read_text(encoding="utf-8"))
    hidden = [
        ast.unparse(target)
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING"
        for part in node.body
        if isinstance(part, ast.Assign)
        for target in part.targets
    ]
    assert hidden == ["__getattr__"]
    assert not [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_that_is_declared_is_there(room: str) -> None:
    """Names that mypy believes in because they are declared are found when the program runs."""
    package = import_module(f"kwiresniff.{room}")
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018


@pytest.mark.slow
def test_mypy_finds_a_name_that_is_not_there(tmp_path: Path) -> None:
    """A misspelled name is an error in each of the packages; the right ones beside it are not."""
    wrong = tmp_path / "wrong.py"
    lines = [f"from kwiresniff.{room} import no_such_name as {room}_name\n" for room in ROOMS]
    wrong.write_text("".join(lines) + "from kwiresniff.schema import find_release\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", str(tmp_path), "--follow-imports=silent"]
    done = subprocess.run([*command, str(wrong)], capture_output=True, text=True, cwd=ROOT, check=False)
    found = [line for line in done.stdout.splitlines() if "[attr-defined]" in line]
    assert [line.split('"')[1] for line in found] == [f"kwiresniff.{room}" for room in ROOMS]
    assert f"{len(ROOMS)} errors" in done.stdout
