"""What reading processes send to the screen."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from kwiresniff.index import Indexed
from kwiresniff.index.background import Work
from kwiresniff.model import Problem
from kwiresniff.results.findings import Finding
from kwiresniff.results.groups import GroupEvent
from kwiresniff.results.stats import StatRow
from kwiresniff.results.topics import Topic


class Matches(NamedTuple):
    """Further exchanges that a filter lets through, of the first ``seen`` ones: their numbers of 64 bits (see
    ``CapturesModel.rows_of``).
    """

    numbers: bytes
    seen: int
    done: bool


class Reported(NamedTuple):
    """What the tabs show: statistics (a table for each dimension, like ``api`` or ``api+client``), topics and groups of
    the exchanges that ``expression`` lets through, findings of all. ``done`` says that no more follow.
    """

    expression: str
    files: tuple[str, ...]
    findings: tuple[Finding, ...]
    stats: dict[str, tuple[StatRow, ...]]
    topics: tuple[Topic, ...]
    group_events: tuple[GroupEvent, ...]
    problems: tuple[Problem, ...]
    done: bool


class Saved(NamedTuple):
    """What was written to a file, in words."""

    path: str
    what: str


class Jobs(NamedTuple):
    """The work of reading processes, beside that of the index. Each gets what the screen gives it: a filter, or numbers
    of exchanges and a path.
    """

    find_matches: Work
    make_report: Work
    save_rows: Work
    save_packets: Work
    #: What all of them get first.
    arguments: tuple[Any, ...]


Message: TypeAlias = Indexed | Matches | Reported | Saved
