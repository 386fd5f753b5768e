"""docs/limits.md says what the constants are."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\|[^|]+\| (\d+) \|[^|]+\| `([\w.]+)\.(\w+)` \|$", PAGE, re.MULTILINE)


def test_the_page_has_its_tables() -> None:
    lines = PAGE.splitlines()
    assert len(ROWS) == sum(line.startswith("|") for line in lines) - 2 * sum(line.startswith("|---") for line in lines)


def test_limits_are_the_constants_that_they_name() -> None:
    for value, module, name in ROWS:
        path = module if module.startswith("kwiresniff_values.") else f"kwiresniff.{module}"
        assert getattr(import_module(path), name) == int(value), f"{module}.{name}"
