"""What programs write beside what they read."""

from __future__ import annotations

from typing import TypeAlias

from kwiresniff.analysis.doctor.evidence import Case

#: A cluster and a topic of it.
Place: TypeAlias = tuple[str, str]


class Copying:
    """What a program writes to a topic (``records``, the latest at ``ns``), beside what it has read from another.

    It had read ``most`` records more than it had written at most, and had written as many as it had read ``rounds``
    times; ``is_more`` says that it had written more.
    """

    __slots__ = ("case", "is_more", "most", "ns", "records", "rounds")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.records = self.ns = self.most = self.rounds = 0
        self.is_more = False
