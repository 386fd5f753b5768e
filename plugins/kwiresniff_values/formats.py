"""The formats that the user gives topics: rules like ``[TOPIC[/key]=]FORMAT[:SCHEMA]``."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from kwiresniff.errors import PluginError
from kwiresniff_values.primitives import READERS

#: Formats that a schema belongs to.
WITH_SCHEMA = ("avro", "protobuf", "json-schema")
WITHOUT_SCHEMA = ("auto", "json", "msgpack", "cbor", "windowed", *READERS)


class Format(NamedTuple):
    """A format, and the name of its schema where it has one: a file of a folder or a subject."""

    name: str
    schema: str | None = None


AUTO = Format("auto")


class Formats:
    """The formats of topics by rules, of which the first that applies counts. Raises PluginError for a wrong rule."""

    def __init__(self, rules: Sequence[str]) -> None:
        self._rules = [_rule(text) for text in rules]
        self._known: dict[tuple[str | None, str], Format] = {}

    def of(self, topic: str | None, part: str) -> Format:
        """The format of a topic's keys (``part`` is ``key``) or values; ``auto`` where no rule applies."""
        found = self._known.get((topic, part))
        if found is None:
            found = next((f for pattern, p, f in self._rules if p == part and fnmatchcase(topic or "", pattern)), AUTO)
            if len(self._known) < 10_000:
                self._known[topic, part] = found
        return found

    @property
    def all(self) -> list[Format]:
        """The formats that rules name."""
        return [format for _, _, format in self._rules]


def _rule(text: str) -> tuple[str, str, Format]:
    """The pattern of topics, the part and the format of a rule."""
    where, equals, what = text.rpartition("=")
    topic, slash, part = where.partition("/")
    name, colon, schema = what.partition(":")
    if (equals and not topic) or (slash and part not in ("key", "value")):
        raise PluginError(f"value format {text!r}: give [TOPIC[/key]=]FORMAT[:SCHEMA], like orders=avro:order.avsc")
    if name not in (*WITH_SCHEMA, *WITHOUT_SCHEMA):
        known = ", ".join((*WITHOUT_SCHEMA, *WITH_SCHEMA))
        raise PluginError(f"value format {text!r}: no format {name!r}; there are {known}")
    if colon and (not schema or name not in WITH_SCHEMA):
        raise PluginError(f"value format {text!r}: only {', '.join(WITH_SCHEMA)} have a schema")
    return (topic if equals else "*"), (part or "value"), Format(name, schema or None)
