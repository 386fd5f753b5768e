"""The comparison of two captures."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

#: The units of the numbers of a change: nanoseconds, bytes, rates, a share of 1, a count; or texts.
Unit: TypeAlias = Literal[
    "ns", "bytes", "per_second", "bytes_per_second", "per_minute", "share", "count", "text", "ms"
]  # fmt: skip
What: TypeAlias = Literal["slower", "faster", "more", "less", "new", "gone", "changed"]

#: In the order in which changes are listed.
SECTIONS = (
    "findings", "latency", "errors", "throughput", "clients", "versions", "settings", "groups",
)  # fmt: skip


class Change(NamedTuple):
    """One thing that is not as it was.

    ``subject`` is whom or what it is about, ``measure`` what of it. ``before`` and ``after`` are numbers of ``unit``,
    or texts; None where it was not there. ``chance`` is the probability that like captures differ so much, None for
    what is seen and not measured. ``greater`` is the share of pairs, one value before and one after, in which the later
    one is greater. ``counts`` are how many values there are on both sides. ``parts`` are changes of parts of the
    subject, ``same`` the parts that have not changed, by their names. ``note`` is a sentence more.
    """

    section: str
    severity: str
    what: What
    subject: str
    measure: str
    before: Any
    after: Any
    unit: Unit = "text"
    chance: float | None = None
    greater: float | None = None
    counts: tuple[int, int] | None = None
    parts: tuple[Change, ...] = ()
    same: tuple[str, ...] = ()
    note: str = ""


class Side(NamedTuple):
    """One side: its captures as they were given, its files, and what they span."""

    name: str
    files: tuple[str, ...]
    exchanges: int
    first_ns: int
    last_ns: int


class Comparison(NamedTuple):
    """Two sides compared. ``doubtful`` are differences with too few values to distinguish them from chance,
    ``compared`` counts what was compared by section.
    """

    before: Side
    after: Side
    changes: tuple[Change, ...]
    doubtful: tuple[Change, ...]
    compared: dict[str, int]
    left_out: int
