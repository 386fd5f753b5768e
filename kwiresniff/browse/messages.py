"""What reading processes send to the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from kwiresniff.capture.packet_places import Place
from kwiresniff.index import IndexPart
from kwiresniff.results.report import Report
from kwiresniff.session.topic_ids import SavedTopics


class Indexed(NamedTuple):
    """A part of the index, and what has been read so far: the ``fraction`` of all bytes."""

    part: IndexPart
    places: list[Place]
    topics: SavedTopics | None
    fraction: float
    problems: tuple[str, ...]
    problem_count: int
    done: bool


class Matches(NamedTuple):
    """Further rows (32 bits each) of what a filter lets through, of the first ``seen`` ones."""

    rows: bytes
    seen: int
    done: bool


class Reported(NamedTuple):
    """What the tabs show."""

    report: Report


class Saved(NamedTuple):
    """What was written to a file, in words."""

    path: str
    what: str


class Jobs(NamedTuple):
    """The work of reading processes. Each gets ``send`` and what the screen gives it: a filter, or rows and a path."""

    read_index: Callable[..., None]
    find_matches: Callable[..., None]
    make_report: Callable[..., None]
    save_rows: Callable[..., None]
    save_packets: Callable[..., None]
    #: What all of them get behind ``send``.
    arguments: tuple[Any, ...]


Message: TypeAlias = Indexed | Matches | Reported | Saved
