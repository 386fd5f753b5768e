"""The number of problems in what a command reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kwiresniff.model import Problem


class ProblemCount:
    """Counts problems, and how many of the capture's own were passed on."""

    def __init__(self, of_captures: Sequence[Problem]) -> None:
        self.found = 0
        self.unreadable = False
        self._of_captures = of_captures
        self.given = 0

    @property
    def waiting(self) -> bool:
        """Whether captures have had problems since they were last passed on."""
        return len(self._of_captures) > self.given

    def new(self) -> Iterator[Problem]:
        """The problems of the capture files that were not passed on yet."""
        found = self._of_captures[self.given :]
        self.given += len(found)
        return self.counted(found)

    def counted(self, problems: Sequence[Problem]) -> Iterator[Problem]:
        """``problems``, which are counted as they pass."""
        self.found += len(problems)
        self.unreadable = self.unreadable or any(problem.code == "capture_unreadable" for problem in problems)
        return iter(problems)
