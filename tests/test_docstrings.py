"""A docstring begins with what the thing is: nobody reads the docstrings of a module from top to bottom."""

from __future__ import annotations

import ast
import re

from tests.support.paths import ROOT

FOLDERS = ("kwiresniff", "pyspark_kwiresniff", "plugins", "captures", "tests")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
#: Words that point back to something said before.
POINTS_BACK = re.compile(r"(The same|Those|These|They|That|It|Such|Also|And|But|Others|As)\b")
#: One of them at the beginning of any text, without which a source need not be parsed.
IN_QUOTES = re.compile(rf"[\"']\s*{POINTS_BACK.pattern}")


def pointing_back(source: str) -> list[str]:
    """The docstrings of a source that begin with such a word."""
    if not IN_QUOTES.search(source):
        return []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [text for text in texts if POINTS_BACK.match(text)]


def test_a_docstring_begins_with_what_the_thing_is() -> None:
    """No docstring begins with "The same", "Those" or another word that needs the docstring before it."""
    assert len(FILES) > 500
    found = {str(path.relative_to(ROOT)): pointing_back(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: texts for path, texts in found.items() if texts} == {}


def test_a_docstring_that_points_back_is_found() -> None:
    """Docstrings of modules, classes, functions and methods are all looked at."""
    source = '"""Those."""\nclass A:\n    """The same."""\n    def f(self):\n        """It is.\n\n        More."""\n'
    source += 'def g():\n    """Thoseness is fine."""\n'
    assert pointing_back(source) == ["Those.", "The same.", "It is.\n\nMore."]
