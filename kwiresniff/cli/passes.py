"""One pass over the captures for commands that collect everything before they show it, and their JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kwiresniff.cli.interrupts import for_each
from kwiresniff.cli.messages import Messages
from kwiresniff.cli.reading import Reading
from kwiresniff.model import Event, Problem

FORMS = ("table", "json", "jsonl")


def read_through(reading: Reading, take: Callable[[Event], None]) -> tuple[bool, Messages]:
    """Gives every event to ``take`` and tells problems on stderr; False when the user interrupted it."""
    messages = Messages(reading)

    def use(event: Event) -> None:
        take(event)
        if isinstance(event, Problem):
            messages.problem(event)

    return for_each(reading.events(), use), messages


def print_json(objects: Sequence[dict[str, Any]], form: str) -> None:
    """One array, or one object a line."""
    from kwiresniff.export import JsonEncoder, Output

    line = JsonEncoder().line
    with Output("-") as out:
        if form == "jsonl":
            out.stream.writelines(map(line, objects))
        else:
            out.stream.write(line(list(objects)))
