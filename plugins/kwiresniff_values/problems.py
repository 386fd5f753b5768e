"""What can be wrong with a payload or with what is needed to read it."""

from __future__ import annotations

from kwiresniff.errors import PluginError

EXTRA = 'pip install "kwiresniff[values]"'


class Misfit(ValueError):
    """A payload that is not of the schema or the format that it is read by; the text says where."""


class Unusable(PluginError):
    """A schema, a registry or a library that cannot be used; reported once."""


def missing(library: str) -> Unusable:
    """The error for a library that is not installed."""
    return Unusable(f"{library} is not installed: {EXTRA}")
