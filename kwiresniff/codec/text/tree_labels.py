"""Names and meanings that the writer of tree rows puts into a plan for itself.

The plans that it follows, and what it keeps of version ranges.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, final

from kwiresniff import schema
from kwiresniff.base.api_keys import JOIN_GROUP, SYNC_GROUP
from kwiresniff.base.tree_sizes import ELEMENTS_SHOWN
from kwiresniff.codec.field_layout import regular, tagged
from kwiresniff.codec.text.plan import (
    BOOLEAN,
    BYTES,
    CLOSED,
    ERROR_CODE,
    OPENED,
    RECORDS,
    STRING,
    STRUCTURE,
    TOPIC,
    TOPIC_ID,
    UUID,
    Step,
    plan,
)
from kwiresniff.codec.text.tree_wording import Words
from kwiresniff.codec.value_labels import has_meaning, meaning_of
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction
from kwiresniff.schema.types import WireField

#: Version ranges whose text is kept.
KEPT: Final = 4096
#: What consumers put into bytes, by API and field (``kwiresniff.codec.embedded.groups``).
_CONTENTS: Final = {
    JOIN_GROUP: {"metadata": "ConsumerProtocolSubscription"},
    SYNC_GROUP: {"assignment": "ConsumerProtocolAssignment"},
}
#: What an assignor adds, whose form depends on the assignor.
_OF_ASSIGNORS: Final = "user_data"


def label(steps: list[Step], words: Words, level: int = 0) -> None:
    """Fills in what is shown of each step. At the top ``level`` (-1 in its tag section) no field identifies its
    structure.
    """
    if level == 0 and not _holds(steps, RECORDS):
        _open_nothing(steps)
    for step in steps:
        field = step.field
        if field is None:
            label(step.steps, words, level or -1)
            continue
        structures = step.kind == STRUCTURE
        step.label = words.gap + words.label(field.name, 0)
        step.identifies = level > 0 and not step.array and words.identifies(field.name)
        step.is_error = step.kind == ERROR_CODE or (field.name.endswith("error_code") and not structures)
        step.meant = step.kind == BOOLEAN or (step.kind not in (UUID, TOPIC_ID) and has_meaning(field))
        if structures:
            names = [child.name for child in (*regular(field.fields), *tagged(field.fields))]
            step.is_range = step.array and words.is_range(names)
            shown = range(ELEMENTS_SHOWN)
            step.labels = [words.key(f"{field.name}[{i}]") for i in shown] if step.array else [words.key(field.name)]
            label(step.steps, words, max(level, 0) + 1)


def _holds(steps: list[Step], kind: int) -> bool:
    return any(step.kind == kind or _holds(step.steps, kind) for step in steps)


def _open_nothing(steps: list[Step]) -> None:
    """Where there are no records, topics of Kafka's own are like any other."""
    for step in steps:
        if step.kind == TOPIC:
            step.kind = STRING
        elif step.kind == TOPIC_ID:
            step.kind = UUID
        _open_nothing(step.steps)


@final
class TreePlans:
    """The labelled plans of messages and of what is inside their bytes."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._plans: dict[tuple[int, int, Direction, bool], list[Step] | None] = {}
        self._contents: dict[tuple[str, int], list[Step] | None] = {}

    def steps(self, api_key: int, version: int, direction: Direction) -> list[Step] | None:
        """How a message is written; None for one that cannot be."""
        return self._steps(api_key, version, direction, False)

    def opened_steps(self, api_key: int, version: int, direction: Direction) -> list[Step] | None:
        """How a message is written that has something to open; None for one that cannot be."""
        return self._steps(api_key, version, direction, True) if api_key in _CONTENTS else None

    def _steps(self, api_key: int, version: int, direction: Direction, opened: bool) -> list[Step] | None:
        key = (api_key, version, direction, opened)
        if key not in self._plans:
            steps: list[Step] | None = None
            with suppress(SchemaError):
                steps = plan(schema.message(api_key, version, direction))
                label(steps, self._words)
                if opened:
                    _mark_contents(steps, api_key)
            self._plans[key] = steps
        return self._plans[key]

    def content_steps(self, content: str, version: int) -> list[Step] | None:
        """The plan of what consumers send each other; None for a version that is unknown."""
        low, high = schema.data_versions(content)
        if not low <= version <= high:
            return None
        key = (content, version)
        if key not in self._contents:
            steps = plan(schema.data_message(content, version))
            label(steps, self._words, 1)
            for step in steps:
                if step.name == _OF_ASSIGNORS:
                    step.kind = CLOSED
            self._contents[key] = steps
        return self._contents[key]


def _mark_contents(steps: list[Step], api_key: int) -> None:
    """Mark the fields of a message that hold what consumers say to each other, and the one that tells who does."""
    for step in steps:
        content = _CONTENTS[api_key].get(step.name) if step.kind == BYTES else None
        if content is not None:
            step.kind = OPENED
            step.content = content
        step.tells_protocol = step.name == "protocol_type"
        _mark_contents(step.steps, api_key)


@final
class RangeTexts:
    """The texts of version ranges, kept because every broker sends nearly the same ones."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._names: dict[int, str] = {}  # by API key, of which there are no more than 65,536
        self._texts: dict[tuple[str, int, int], bytes] = {}

    def name(self, field: WireField, number: int) -> str:
        """What a number at the beginning of a range is called."""
        name = self._names.get(number)
        if name is None:
            name = self._names[number] = meaning_of(field, number) or str(number)
        return name

    def text(self, name: str, low: int, high: int) -> bytes:
        """The versions from ``low`` to ``high`` of what has this name, as they read in a row."""
        key = (name, low, high)
        text = self._texts.get(key)
        if text is None:
            if len(self._texts) >= KEPT:
                self._texts.clear()
            text = self._texts[key] = self._words.version_range(name, low, high)
        return text
