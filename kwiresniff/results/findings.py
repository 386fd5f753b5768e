"""Findings of the doctor: what is wrong, whom it concerns, where it shows and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

#: What a finding explains: the codes of its symptoms, and of whom or what they must be, as in ``Finding.scope``.
Explains = Mapping[str, frozenset[str]]


class Finding(NamedTuple):
    """One finding: something that is wrong, or will be, and what to do about it.

    ``severity`` is ``error``, ``warning`` or ``info``; ``subject`` is whom it concerns (a client, group, topic, broker
    or connection). ``evidence`` are ``(packet reference, timestamp_ns)`` of the first occurrences; ``numbers`` is
    JSON-ready. It was seen from ``first_ns`` to ``last_ns``. ``details`` are sentences for a person, ``symptoms`` what
    else was found and is explained by this. ``scope`` holds whom and what it is about, each as ``kind:name`` with the
    kinds ``client``, ``broker``, ``topic``, ``group`` and whatever a rule needs; ``rank`` orders those of one severity,
    the lowest first: 0 is an incident, 1 an error, 2 a symptom where no cause is seen, 3 waste; among those of one rank
    the greatest ``weight`` comes first, which says what it cost (``Harm.weight``). ``observed`` are sentences that say
    what was seen, ``supports`` and ``contradicts`` what spoke for the cause and what against it.
    """

    code: str
    severity: str
    subject: str
    title: str
    remedy: str
    count: int  # type: ignore[assignment]  # not the method of tuples
    evidence: tuple[tuple[int, int], ...]
    numbers: dict[str, Any]
    first_ns: int = 0
    last_ns: int = 0
    details: tuple[str, ...] = ()
    symptoms: tuple[Finding, ...] = ()
    scope: frozenset[str] = frozenset()
    explains: Explains = MappingProxyType({})
    rank: int = 1
    weight: tuple[float, ...] = ()
    observed: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()

    def named(self, kind: str) -> list[str]:
        """The names of one kind in the scope, in order."""
        return sorted(one[len(kind) + 1 :] for one in self.scope if one.startswith(f"{kind}:"))


def scope_of(kind: str, names: Iterable[str]) -> frozenset[str]:
    """Names of one kind, as a scope holds them."""
    return frozenset(f"{kind}:{name}" for name in names)
