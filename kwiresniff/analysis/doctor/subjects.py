"""The state of observers by subject, in bounded number and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, MemoryBudget, text_bytes

#: The name of a subject, or its names and numbers.
Subject = TypeVar("Subject", bound=str | tuple[str | int, ...])
Value = TypeVar("Value")


class Subjects(dict[Subject, Value]):
    """Values by subject: ``most`` of them (by default ``MAX_SUBJECTS``), each charged as ``entries`` numbers and texts
    to a budget."""

    def __init__(self, budget: MemoryBudget, make: Callable[[], Value], entries: int, most: int | None = None) -> None:
        super().__init__()
        self._budget = budget
        self._make = make
        self._size = CONTAINER_BYTES + entries * ENTRY_BYTES
        self._most = most

    def of(self, subject: Subject) -> Value | None:
        """The value of a subject, made if need be; None where there is no room for it."""
        try:
            return self[subject]
        except KeyError:
            pass
        names: tuple[str | int, ...] = (subject,) if isinstance(subject, str) else subject
        size = self._size + text_bytes(*(name for name in names if isinstance(name, str)))
        most = MAX_SUBJECTS if self._most is None else self._most
        if len(self) >= most or not self._budget.admit(size):
            return None
        made = self[subject] = self._make()
        return made
