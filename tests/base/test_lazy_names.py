"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from kwiresniff.base import lazy_names


def test_a_name_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From then on it is the package's own, and a line like ``from json import loads`` costs no search."""
    package = ModuleType("xml")
    monkeypatch.setitem(sys.modules, "xml", package)
    find = lazy_names.lazy_names("xml", {"escape": "sax.saxutils"})
    sought: list[str] = []

    def home(name: str) -> ModuleType:
        sought.append(name)
        module = ModuleType(name)
        module.escape = str.upper  # type: ignore[attr-defined]
        return module

    monkeypatch.setattr(lazy_names, "import_module", home)
    package.__getattr__ = find  # type: ignore[method-assign]
    assert package.escape("a") == package.escape("a") == "A"
    assert sought == ["xml.sax.saxutils"]
    with pytest.raises(AttributeError):
        package.unescape("a")
