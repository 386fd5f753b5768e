"""Names for topic ids in results: topics that were seen by their ids before the capture named them.

A topic id is a UUID in Kafka's URL-safe base64 form, 22 characters; a text that merely looks like one is left as it is,
because nobody knows a name for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from kwiresniff.model import TopicNames

if TYPE_CHECKING:
    import re

#: Alone, or with a partition behind it as in ``ID-3``.
_ID: Final = r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{22}(?=(?:-\d+)?(?![A-Za-z0-9_-]))"
ID_CHARS: Final = 22


def renamer(topic_name: TopicNames | None) -> Callable[[Any], Any]:
    """A function that replaces topic ids in a value by their names, as far as these are known by now.

    Takes texts, and lists, tuples, frozen sets and dicts of them; two entries of a dict that are one topic are joined.
    What holds no such id is given back as it is.
    """
    if topic_name is None:
        return lambda value: value
    known = topic_name

    def named(match: re.Match[str]) -> str:
        return known(match[0]) or match[0]

    def rename(value: Any) -> Any:
        if isinstance(value, str):
            return _in_text(value, named) if len(value) >= ID_CHARS else value
        if isinstance(value, (list, tuple, frozenset)):
            if value.__class__ is list and value and value[0].__class__ is int:
                return value  # like all arrays of the protocol it is of one kind
            parts = [rename(part) for part in value]
            return value if _same(parts, value) else type(value)(parts)
        if isinstance(value, dict):
            names, parts = [rename(name) for name in value], [rename(part) for part in value.values()]
            if _same(names, value) and _same(parts, value.values()):
                return value
            return _joined(zip(names, parts, strict=True))
        return value

    return rename


def _in_text(text: str, named: Callable[[re.Match[str]], str]) -> str:
    return re.sub(_ID, named, text)


def _same(these: Iterable[Any], those: Iterable[Any]) -> bool:
    """Whether they are the very same objects."""
    return all(map(is_, these, those))


def _joined(items: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, part in items:
        before = made.get(key)
        made[key] = [*before, *part] if isinstance(before, list) and isinstance(part, list) else part
    return made
