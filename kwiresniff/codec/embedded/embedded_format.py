"""The content of a bytes field: which message, at which version, from which byte on."""

from __future__ import annotations

from typing import NamedTuple

from kwiresniff import schema

#: Most formats begin with their version as an INT16.
VERSION_BYTES = 2


class Content(NamedTuple):
    """A message inside bytes: ``message`` is a data message's name and ``start`` where its fields begin.

    ``exact`` asks for bytes that end with the message: a version newer than those known may have more at its end.
    ``sure`` distinguishes knowledge from a guess; a guess that does not fit exactly is no problem.
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
    """A message that its version precedes as an INT16; one newer than known is read as the newest, as Kafka does.

    None when there is no version that could be one.
    """
    version = int.from_bytes(raw[:VERSION_BYTES], "big", signed=True)
    low, high = schema.data_versions(message)
    if len(raw) < VERSION_BYTES or version < low:
        return None
    return Content(message, min(version, high), VERSION_BYTES, exact=version <= high, sure=sure)
