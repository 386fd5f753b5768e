"""docs/architecture.md and docs/changing.md name modules, classes and functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CHANGING = (ROOT / "docs" / "changing.md").read_text(encoding="utf-8")
#: ``session/roles.py``, ``schema/data/enums.txt``, ``tests/test_rooms.py`` between backticks.
FILES = sorted(set(re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|txt))`", PAGE + CHANGING)))
#: ``Roles`` with its room: the first column of the glossary.
CLASSES = sorted(set(re.findall(r"^\| [^|]*\(`(\w+)`\)", PAGE, re.MULTILINE)))


def test_the_page_names_files_and_classes() -> None:
    assert len(FILES) > 20
    assert len(CLASSES) > 5


def test_files_that_are_named_are_there() -> None:
    """Below the package or, of tests and tools, below the checkout."""
    assert [name for name in FILES if not (ROOT / "kwiresniff" / name).is_file() and not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_the_glossary_is_there(name: str) -> None:
    sources = (ROOT / "kwiresniff" / room for room in ("session", "stream"))
    assert any(f"class {name}" in path.read_text("utf-8") for room in sources for path in room.glob("*.py"))


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", PAGE + CHANGING))))
def test_a_page_that_is_linked_is_there(target: str) -> None:
    assert (ROOT / "docs" / target).resolve().is_file()


#: Rows that say where to change something: the file names and the other code between backticks of each.
ROWS = [
    cells[2]
    for line in CHANGING.split("## Where to change what")[1].split("## How to add")[0].splitlines()
    if line.startswith("| ") and "`" in line and (cells := re.split(r"(?<!\\)\|", line))
]


def sources_of(row: str) -> list[str]:
    """The text of every file that a row names; one named without its folder lies beside the one before it."""
    texts, folder = [], Path()
    for name in re.findall(r"`((?:\w+/)*\w+\.(?:py|txt))`", row):
        folder = Path(name).parent if "/" in name else folder
        texts.append((ROOT / "kwiresniff" / folder / Path(name).name).read_text(encoding="utf-8"))
    return texts


def missing_from(row: str) -> list[str]:
    """What a row names as code, and none of its files has."""
    names = [part for name in re.findall(r"`([A-Za-z_][\w.]*)`", row) for part in name.split(".")]
    texts = sources_of(row)
    return [
        name
        for name in names
        if (name[0] == "_" or name[0].isupper() or "_" in name)
        and not name.endswith("py")
        and not any(re.search(rf"\b{name}\b", text) for text in texts)
    ]


def test_what_a_row_names_is_in_a_file_of_that_row() -> None:
    """Functions, methods, classes and constants are named with the file that has them."""
    assert len(ROWS) > 50
    assert {row: missing for row in ROWS if (missing := missing_from(row))} == {}
