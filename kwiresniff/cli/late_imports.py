"""click, imported without the modules that it asks only for what is seldom wanted: a fifth of the time of a short run.

``inspect`` brings the parser and the compiler of Python, ``uuid`` asks what machine this is, ``gettext`` compiles a
grammar, ``threading`` and ``datetime`` are large. While click is imported, something stands in for each of them that
imports it when click uses it. Something stands in for references to types, too: they compile names, for which Python
makes the classes of all syntax trees.
"""

from __future__ import annotations

import sys
import typing
from _thread import _local
from importlib import import_module
from types import ModuleType
from typing import Any


class _Late(ModuleType):
    """What stands in for a module of the same name; an annotation that names something of it may have anything."""

    importing = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by the import system
            raise AttributeError(name)
        return object if self.importing else getattr(import_module(self.__name__), name)


class _LateInspect(_Late):
    """What stands in for ``inspect``; click has the help text of every option cleaned by it."""

    def cleandoc(self, text: str) -> str:
        """The text without the indentation of a docstring; one line without any has nothing to be cleaned."""
        if "\n" not in text and "\t" not in text and not text.startswith(" "):
            return text
        cleaned: str = import_module("inspect").cleandoc(text)
        return cleaned


class _LateGettext(_Late):
    """What stands in for ``gettext``, of which click takes these functions for its messages."""

    def gettext(self, message: str) -> str:
        """The message in the user's language."""
        translated: str = import_module("gettext").gettext(message)
        return translated

    def ngettext(self, singular: str, plural: str, n: int) -> str:
        """The message about so many things in the user's language."""
        translated: str = import_module("gettext").ngettext(singular, plural, n)
        return translated


class _LateThreading(_Late):
    """What stands in for ``threading``, of which click takes this class for its context."""

    local = _local


class _LateType(type):
    """What stands in for the class ``datetime``, of which click makes a type of options that none of ours is of."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(import_module("datetime").datetime, name)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, import_module("datetime").datetime)


class _LateDatetime(_Late):
    """What stands in for the module ``datetime``."""

    datetime = _LateType("datetime", (), {})


class _Reference:
    """What stands in for a reference to a type by its name: Python compiles each, and nobody follows any in click."""

    def __init__(self, name: str, **where: Any) -> None:
        self.__forward_arg__ = name


class LongNames(dict[str, Any]):
    """The options of a command by their long names, for click's parser, which looks for every name here first.

    A ``short`` one is found here, too, but is none of them. One that is not is none that somebody has spelt wrong: were
    this not empty then, click would look for names that are spelt like it, which takes longer than all other parsing.
    """

    def __init__(self, long: dict[str, Any], short: dict[str, Any]) -> None:
        super().__init__(long)
        self._short = short
        self._looked_up = ""

    def __contains__(self, name: object) -> bool:
        self._looked_up = str(name)
        return super().__contains__(name) or name in self._short

    def __missing__(self, name: str) -> Any:
        return self._short[name]

    def __bool__(self) -> bool:
        return len(self) > 0 and self._looked_up.startswith("--")


def import_click() -> None:
    """Import click, if nobody has yet."""
    if "click" in sys.modules:
        return
    stand_ins = (
        _LateInspect("inspect"),
        _Late("uuid"),
        _LateGettext("gettext"),
        _LateThreading("threading"),
        _LateDatetime("datetime"),
    )
    late = [one for one in stand_ins if one.__name__ not in sys.modules]
    sys.modules.update((one.__name__, one) for one in late)
    reference = typing.ForwardRef
    typing.ForwardRef = _Reference  # type: ignore[misc, assignment]
    try:
        import_module("click")
    finally:
        typing.ForwardRef = reference  # type: ignore[misc]
        for one in late:
            one.importing = False
            if sys.modules.get(one.__name__) is one:
                del sys.modules[one.__name__]
