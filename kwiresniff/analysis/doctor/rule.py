"""The base of all rules: a rule gets events, keeps little of them, and gives its findings in the end.

A rule is a class of its own, so that it can be read, tested and documented alone, and so that plugins can bring others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from kwiresniff.analysis.doctor.cause import ERROR
from kwiresniff.analysis.doctor.evidence import Case
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.results.findings import Explains, Finding, scope_of


@mypyc_attr(allow_interpreted_subclasses=True)
class Rule(Observer):
    """An observer that gives findings itself: observation, cause and verdict in one. ``codes`` are those of its
    findings.
    """

    codes: ClassVar[tuple[str, ...]] = ()

    def findings(self) -> Iterator[Finding]:
        """The findings so far; a later call gives all of them anew."""
        return iter(())


def found(
    code: str,
    severity: str,
    subject: str,
    title: str,
    remedy: str,
    case: Case,
    numbers: dict[str, Any] | None = None,
    *,
    details: Iterable[str] = (),
    clients: Iterable[str] = (),
    brokers: Iterable[str] = (),
    topics: Iterable[str] = (),
    groups: Iterable[str] = (),
    scope: Iterable[str] = (),
    explains: Explains | None = None,
    rank: int = ERROR,
) -> Finding:
    """A finding from a case; its scope is what is given here and the names that the case has of those kinds."""
    return Finding(
        code=code,
        severity=severity,
        subject=subject,
        title=title,
        remedy=remedy,
        count=case.count,
        evidence=tuple(case.evidence),
        numbers=numbers or {},
        first_ns=max(case.first_ns, 0),
        last_ns=max(case.last_ns, 0),
        details=tuple(details),
        scope=frozenset(scope)
        | scope_of("client", [*clients, *case.noted("clients")])
        | scope_of("broker", [*brokers, *case.noted("brokers")])
        | scope_of("topic", [*topics, *case.noted("topics")])
        | scope_of("group", [*groups, *case.noted("groups")]),
        explains=explains or {},
        rank=rank,
    )


def as_clients(*names: str) -> frozenset[str]:
    """Clients, as a scope holds them."""
    return scope_of("client", names)


def as_brokers(*addresses: str) -> frozenset[str]:
    """Brokers by address, as a scope holds them."""
    return scope_of("broker", addresses)
