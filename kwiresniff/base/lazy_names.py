"""Names of a package that are imported from its modules when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from kwiresniff.base.light_typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of ``package``, whose modules ``homes`` has by the names that are to be found in them.

    No module that may be imported later than its package has one of these names: it would take the name's place. Each
    package hides the function from mypy, which would take any name for one of the package's else.
    """

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, found)  # from now on nobody asks here
        return found

    return find
