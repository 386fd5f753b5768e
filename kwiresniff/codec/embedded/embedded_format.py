"""The content of a bytes field: which message, at which version, from which byte on."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwiresniff import schema
from kwiresniff.codec.body_walker import ContentSkipper, MessageSkipper
from kwiresniff.codec.field_layout import smallest_struct

#: Most formats begin with their version as an INT16.
VERSION_BYTES = 2
#: Contents remembered, by message and version; there are a few dozen.
_KEPT = 256


class Content(NamedTuple):
    """A message inside bytes, with its fields at ``start``. ``exact``: nothing may follow it; ``sure``: not a guess, so
    that a misfit is a problem.
    """

    message: str
    version: int
    start: int
    exact: bool = True
    sure: bool = True

    @property
    def title(self) -> str:
        """The name of the content, for people."""
        return f"{self.message} v{self.version}"


def versioned(message: str, raw: bytes, *, sure: bool = True) -> Content | None:
    """A message behind its version, a big-endian INT16; a newer one is read as the newest known. None without one."""
    if len(raw) < VERSION_BYTES:
        return None
    return _of_version(message, int.from_bytes(raw[:VERSION_BYTES], "big", signed=True), sure)


@lru_cache(_KEPT)
def _of_version(message: str, version: int, sure: bool) -> Content | None:
    low, high = schema.data_versions(message)
    if version < low:
        return None
    return Content(message, min(version, high), VERSION_BYTES, exact=version <= high, sure=sure)


class Contents(NamedTuple):
    """The content of bytes in many structures; ``sure`` as in ``Content``."""

    skipper: ContentSkipper
    sure: bool


@lru_cache(_KEPT)
def contents(messages: tuple[str, ...], sure: bool) -> Contents:
    """Any of these messages, each behind its version."""
    formats: list[tuple[int, list[MessageSkipper]]] = []
    for message in messages:
        low, high = schema.data_versions(message)
        of_versions = [schema.data_message(message, version) for version in range(low, high + 1)]
        formats.append((low, [MessageSkipper(one) for one in of_versions]))
    return Contents(ContentSkipper(formats), sure)


@lru_cache(_KEPT)
def least_bytes(message: str) -> int:
    """The fewest bytes that a message takes in any of its versions, with its version before it."""
    low, high = schema.data_versions(message)
    shapes = [schema.data_message(message, version) for version in range(low, high + 1)]
    return VERSION_BYTES + min(smallest_struct(shape.fields, shape.flexible) for shape in shapes)
