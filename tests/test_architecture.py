"""docs/architecture.md speaks of modules that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: ``session/roles.py``, ``schema/data/enums.txt``, ``tests/test_rooms.py`` between backticks.
FILES = sorted(set(re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|txt))`", PAGE)))
#: ``Roles`` with its room: the first column of the glossary.
CLASSES = sorted(set(re.findall(r"^\| [^|]*\(`(\w+)`\)", PAGE, re.MULTILINE)))


def test_the_page_names_files_and_classes() -> None:
    assert len(FILES) > 20
    assert len(CLASSES) > 5


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_named_is_there(name: str) -> None:
    assert (ROOT / "kwiresniff" / name).is_file() or (ROOT / name).is_file()


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_the_glossary_is_there(name: str) -> None:
    sources = (ROOT / "kwiresniff" / room for room in ("session", "stream"))
    assert any(f"class {name}" in path.read_text("utf-8") for room in sources for path in room.glob("*.py"))


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", PAGE))))
def test_a_page_that_is_linked_is_there(target: str) -> None:
    assert (ROOT / "docs" / target).resolve().is_file()
