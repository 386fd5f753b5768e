"""Putting findings in order: symptoms beneath the cause that explains them, what is alike together, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice

from kwiresniff.analysis.doctor.evidence import MAX_EVIDENCE
from kwiresniff.analysis.doctor.rule import SEVERITIES
from kwiresniff.results.findings import Finding

#: A symptom may show so long before its cause is seen, and last so long after it is over.
BEFORE_NS = 20_000_000_000
AFTER_NS = 20_000_000_000
#: Findings of one code and severity that stay apart; more are one incident that concerns many.
MAX_ALIKE = 5
#: Causes of which the nearest is chosen.
MAX_CAUSES = 20
#: Symptoms listed beneath a cause.
MAX_SYMPTOMS = 20


def arranged(findings: list[Finding]) -> list[Finding]:
    """The worst first, then incidents before errors, symptoms and waste, then the most frequent."""
    return sorted(merged_alike(merged_episodes(with_symptoms(findings))), key=_order)


def _order(finding: Finding) -> tuple[int, int, int, str, str]:
    return SEVERITIES.index(finding.severity), finding.rank, -finding.count, finding.code, finding.subject


def with_symptoms(findings: list[Finding]) -> list[Finding]:
    """Causes with their symptoms; a finding that is explained is listed beneath its cause only.

    A symptom goes beneath the worst cause that explains it, of several the nearest in time; a cause that is itself
    explained takes its symptoms along.
    """
    order = sorted(range(len(findings)), key=lambda index: _order(findings[index]))
    causes = _Causes([findings[index] for index in order])
    cause_of: dict[int, int] = {}
    for index in order:
        symptom, others = findings[index], (order[place] for place in causes.of(findings[index]))
        fitting = (
            other
            for other in others
            if other != index and explains(findings[other], symptom) and not _leads_to(cause_of, other, index)
        )
        some = list(dict.fromkeys(islice(fitting, MAX_CAUSES)))
        if some:
            cause_of[index] = min(some, key=lambda other: _nearness(findings[other], symptom))
    beneath: dict[int, list[int]] = {}
    for index, cause in cause_of.items():
        beneath.setdefault(_root(cause_of, cause), []).append(index)
    roots: list[Finding] = []
    for index in order:
        if index not in cause_of:
            symptoms = [findings[one] for one in beneath.get(index, ())]
            severity = findings[index].severity
            if severity == "info" and any(_is_failure(one) for one in symptoms):
                severity = "warning"  # what made something fail is more than good to know
            symptoms = sorted(merged_episodes(symptoms), key=_order)
            roots.append(findings[index]._replace(severity=severity, symptoms=tuple(symptoms)))
    return roots


def _nearness(cause: Finding, symptom: Finding) -> tuple[int, int, int]:
    """How good a cause is for a symptom, the best first: how grave it is, and how far from it in time."""
    apart_ns = max(cause.first_ns - symptom.last_ns, symptom.first_ns - cause.last_ns, 0)
    return SEVERITIES.index(cause.severity), cause.rank, apart_ns if cause.first_ns and symptom.first_ns else 0


def _is_failure(symptom: Finding) -> bool:
    """Whether somebody's request failed; that a broker which was stopped refuses connections is no more than that."""
    return symptom.severity == "error" and symptom.code != "broker_unreachable"


class _Causes:
    """Where the findings that may explain another stand in a list, by what they explain and of whom.

    Trying each with each would take time by the square of their number, and there may be thousands.
    """

    def __init__(self, findings: list[Finding]) -> None:
        self._places: dict[tuple[str, str], list[int]] = {}
        for place, finding in enumerate(findings):
            for code, whom in finding.explains.items():
                for one in whom:
                    self._places.setdefault((code, one), []).append(place)

    def of(self, symptom: Finding) -> Iterator[int]:
        """The places of those that explain such findings of someone whom this one is about, in order."""
        return merge(*[self._places.get((symptom.code, one), ()) for one in symptom.scope])


def explains(cause: Finding, symptom: Finding) -> bool:
    """Whether one finding is the reason for another: by what they are, whom they concern, and when."""
    whom = cause.explains.get(symptom.code)
    if whom is None or whom.isdisjoint(symptom.scope):
        return False
    if not (cause.first_ns and symptom.first_ns):
        return True
    return symptom.first_ns <= cause.last_ns + AFTER_NS and symptom.last_ns >= cause.first_ns - BEFORE_NS


def _leads_to(cause_of: dict[int, int], start: int, target: int) -> bool:
    """Whether ``target`` is above ``start`` already: nothing explains itself."""
    while start in cause_of:
        start = cause_of[start]
        if start == target:
            return True
    return False


def _root(cause_of: dict[int, int], index: int) -> int:
    while index in cause_of:
        index = cause_of[index]
    return index


def merged_episodes(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of one code, subject and title as one: episodes that have no cause of their own."""
    kept: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = finding.code, finding.subject, finding.title
        known = kept.get(key)
        kept[key] = finding if known is None else _joined(known, finding, finding.subject, finding.title)
    return list(kept.values())


def merged_alike(findings: list[Finding]) -> list[Finding]:
    """Where more than a few have the same code, severity and remedy, one finding that names whom it concerns."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.severity, finding.remedy), []).append(finding)
    merged: list[Finding] = []
    for alike in groups.values():
        if len(alike) <= MAX_ALIKE:
            merged += alike
            continue
        alike.sort(key=_order)
        scope = frozenset[str]().union(*[finding.scope for finding in alike])
        # Joined one by one, scopes would be copied by the thousand.
        whole, *rest = [finding._replace(scope=frozenset()) for finding in alike]
        for finding in rest:
            whole = _joined(whole, finding, whole.subject, whole.title)
        whole = whole._replace(scope=scope)
        subjects = list(dict.fromkeys(one.subject for one in alike))
        if len(subjects) == 1:
            titles = tuple(dict.fromkeys(f"also: {one.title}" for one in alike[1:]))
            merged.append(whole._replace(details=(*whole.details, *titles)[:MAX_SYMPTOMS]))
            continue
        others = f"{len(subjects) - 1} {'other' if len(subjects) == 2 else 'others'}"
        numbers = {**whole.numbers, "subjects": subjects[:100], "subject_count": len(subjects)}
        details = (*whole.details, f"and {others} in the same way")
        merged.append(whole._replace(subject=f"{subjects[0]} and {others}", numbers=numbers, details=details))
    return merged


def _joined(one: Finding, other: Finding, subject: str, title: str) -> Finding:
    starts = [ns for ns in (one.first_ns, other.first_ns) if ns]
    return one._replace(
        subject=subject,
        title=title,
        severity=min(one.severity, other.severity, key=SEVERITIES.index),
        count=one.count + other.count,
        evidence=tuple(sorted({*one.evidence, *other.evidence}, key=lambda place: place[1])[:MAX_EVIDENCE]),
        numbers=_joined_numbers(one.numbers, other.numbers),
        first_ns=min(starts, default=0),
        last_ns=max(one.last_ns, other.last_ns),
        details=tuple(dict.fromkeys((*one.details, *other.details)))[:10],
        symptoms=(*one.symptoms, *other.symptoms)[:MAX_SYMPTOMS],
        scope=one.scope | other.scope,
        explains={**other.explains, **one.explains},
    )


def _joined_numbers(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Lists together, worst times the worst, the rest as the first has it."""
    numbers = dict(one)
    for name, value in other.items():
        mine = numbers.get(name)
        if isinstance(mine, list) and isinstance(value, list):
            numbers[name] = [*mine, *(item for item in value if item not in mine)][:100]
        elif name in ("worst_ns", "longest_ns", "longest_ms", "largest_request_bytes") and isinstance(value, int):
            numbers[name] = max(mine, value) if isinstance(mine, int) else value
        elif name not in numbers:
            numbers[name] = value
    return numbers
