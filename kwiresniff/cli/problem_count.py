"""How much was wrong with what a command reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kwiresniff.model import Problem


class ProblemCount:
    """How much was wrong, and how many of a capture's own problems were given on."""

    def __init__(self, of_captures: Sequence[Problem]) -> None:
        self.found = 0
        self.unreadable = False
        self._of_captures = of_captures
        self.given = 0

    @property
    def waiting(self) -> bool:
        """Whether captures have had problems since they were last given on."""
        return len(self._of_captures) > self.given

    def new(self) -> Iterator[Problem]:
        """Problems of the capture files that have not been given yet."""
        found = self._of_captures[self.given :]
        self.given += len(found)
        return self.counted(found)

    def counted(self, problems: Sequence[Problem]) -> Iterator[Problem]:
        """``problems``, which count from now on."""
        self.found += len(problems)
        self.unreadable = self.unreadable or any(problem.code == "capture_unreadable" for problem in problems)
        return iter(problems)
