"""What the writer of trees puts into a plan for itself: names as they are shown, and which values have a meaning."""

from __future__ import annotations

from kwiresniff.base.tree_sizes import ELEMENTS_SHOWN
from kwiresniff.codec.field_layout import regular, tagged
from kwiresniff.codec.text.plan import BOOLEAN, ERROR_CODE, RECORDS, STRING, STRUCTURE, TOPIC, TOPIC_ID, UUID, Step
from kwiresniff.codec.text.tree_wording import Words
from kwiresniff.codec.value_labels import has_meaning


def label(steps: list[Step], words: Words, level: int = 0) -> None:
    """Fill in what is shown; nothing at the top ``level`` (-1 in its tag section) identifies its message."""
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
