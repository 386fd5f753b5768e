"""The judgement: chooses the causes that become findings, orders them, and puts symptoms beneath their causes.

Of the explanations of an observation the one becomes a finding that explains the most harm with the fewest assumptions.
An explanation without a reason (of the rank ``SYMPTOM``) goes beneath the cause that explains the same, and a cause
that explains only what others explain better is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import islice
from typing import NamedTuple, TypeAlias

from kwiresniff.analysis.doctor.cause import SEVERITIES, SYMPTOM, WASTE, Cause, Explanation
from kwiresniff.analysis.doctor.evidence import MAX_EVIDENCE
from kwiresniff.analysis.doctor.observation import HARMLESS, Observation, Observed, grouped
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.results.findings import Finding

#: A symptom may begin so long before its cause is seen, and so long after it is over.
BEFORE_NS = 20_000_000_000
AFTER_NS = 20_000_000_000
#: Findings of one code and severity that stay apart; more are joined.
MAX_ALIKE = 5
#: Causes of a symptom that are compared.
MAX_CAUSES = 20
#: Symptoms listed beneath a cause.
MAX_SYMPTOMS = 20
#: Observations listed in a finding.
MAX_OBSERVED = 20
#: Kinds of entities, the first of which that an observation has is its subject.
_SUBJECTS = ("group", "client", "broker", "topic", "user", "producer", "host", "connection")
#: The remedy where no cause explains an observation.
_UNEXPLAINED = (
    "None of the known causes explains this. See the packets, and the logs of the clients and brokers named here, at "
    "that time."
)
#: The less, the better is an explanation: negated harm, assumptions, negated number of observations.
_Merit: TypeAlias = tuple[tuple[float, ...], int, int]


class Judgement(NamedTuple):
    """The findings in order, and the causes that were weighed and rejected, in the form of findings."""

    findings: list[Finding]
    rejected: list[Finding]


def judged(causes: Iterable[Cause], observations: Iterable[Observation]) -> Judgement:
    """Weighs causes against what was observed."""
    observed = Observed(observations)
    weighed = [one for cause in causes for one in cause.weigh(observed) if one.explained]
    standing = [one for one in weighed if one.stands]
    winner_of = _winners(standing)
    explained = {one for explanation in standing for one in explanation.explained}
    beaten = [one for one in standing if winner_of[one] is not one and one.rank != SYMPTOM]
    standing = [one for one in standing if winner_of[one] is one or one.rank == SYMPTOM]
    places = {one: place for place, one in enumerate(standing)}
    beneath = {place: places[winner_of[one]] for one, place in places.items() if winner_of[one] is not one}
    unexplained = [one for one in observed if one not in explained and one.harm.weight() > HARMLESS.weight()]
    left = [_left_over(alike) for alike in grouped(unexplained, lambda one: one.kind).values()]
    own = [_finding_of(one) for one in standing]
    rejected = [_finding_of(one) for one in weighed if not one.stands]
    rejected += [_beaten(one, winner_of[one]) for one in beaten]
    return Judgement(arranged([*own, *left], beneath), rejected)


def _winners(explanations: Sequence[Explanation]) -> dict[Explanation, Explanation]:
    """Each explanation with its winner: itself, or the one that takes most of its observations.

    The best is taken first, and its observations count for no other. The merit of the others can only shrink, so that
    one whose merit has not changed since it was queued is the best of all that are left.
    """
    takers: dict[Observation, Explanation] = {}
    winner_of: dict[Explanation, Explanation] = {}
    queue = [(_merit(one, takers), place) for place, one in enumerate(explanations)]
    heapify(queue)
    while queue:
        before, place = heappop(queue)
        explanation = explanations[place]
        left = [one for one in explanation.explained if one not in takers]
        if not left:
            others = [takers[one] for one in explanation.explained]
            winner_of[explanation] = max(others, key=others.count)
            continue
        now = _merit(explanation, takers)
        if now != before:
            heappush(queue, (now, place))
            continue
        winner_of[explanation] = explanation
        takers.update(dict.fromkeys(left, explanation))
    return winner_of


def _merit(explanation: Explanation, takers: dict[Observation, Explanation]) -> _Merit:
    left = [one for one in explanation.explained if one not in takers]
    harm = sum((one.harm for one in left), HARMLESS)
    symptom = explanation.rank == SYMPTOM  # names no reason
    return tuple(-one for one in harm.weight()), explanation.assumptions() + symptom, -len(left)


def _finding_of(explanation: Explanation) -> Finding:
    explained, harm = explanation.explained, explanation.harm()
    places = {place for one in explained for place in one.evidence}
    return Finding(
        code=explanation.code,
        severity=explanation.severity or harm.severity(),
        subject=explanation.subject,
        title=explanation.title,
        remedy=explanation.remedy,
        count=explanation.count,
        evidence=tuple(sorted(places, key=lambda place: place[1])[:MAX_EVIDENCE]),
        numbers=explanation.numbers,
        first_ns=min((one.first_ns for one in explained if one.first_ns), default=0),
        last_ns=max(one.last_ns for one in explained),
        details=(*explanation.details, *([explanation.doubt] if explanation.doubt else [])),
        scope=frozenset[str]().union(explanation.scope, *[one.about for one in explained]),
        explains=explanation.explains,
        rank=explanation.rank,
        weight=harm.weight(),
        observed=tuple(one.sentence for one in explained)[:MAX_OBSERVED],
        supports=explanation.supports,
        contradicts=explanation.contradicts,
    )


def _beaten(explanation: Explanation, winner: Explanation) -> Finding:
    """A cause that is rejected because another explains the same and more, or assumes less."""
    finding = _finding_of(explanation)
    better = f"{winner.code} explains the same: {winner.title}"
    return finding._replace(contradicts=(*finding.contradicts, better))


def _left_over(alike: list[Observation]) -> Finding:
    """Observations of a kind that no cause explains, as one finding."""
    worst, *others = sorted(alike, key=lambda one: one.harm.weight(), reverse=True)
    kind = next((kind for kind in _SUBJECTS if any(one.named(kind) for one in alike)), "")
    explanation = Explanation(
        code=worst.kind,
        subject=listed(list(dict.fromkeys(name for one in alike for name in one.named(kind)))),
        title=worst.sentence,
        remedy=_UNEXPLAINED,
        explained=tuple(alike),
        numbers=worst.numbers,
        details=tuple(one.sentence for one in others[:MAX_ALIKE]),
        rank=SYMPTOM,
    )
    return _finding_of(explanation)._replace(observed=())


def arranged(findings: list[Finding], beneath: dict[int, int] | None = None) -> list[Finding]:
    """The worst first, then incidents before errors, symptoms and waste, then those with the greatest harm.

    ``beneath`` says which finding, by its place in the list, is a symptom of which other.
    """
    return in_order(merged_alike(merged_episodes(with_symptoms(findings, beneath))))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first, incidents before what follows from them, then what cost most."""
    return sorted(_waste_below(list(findings)), key=_order)


def _waste_below(findings: list[Finding]) -> list[Finding]:
    """The findings, those of waste with no graver severity than the worst of harm."""
    harms = [one.severity for one in findings if one.rank != WASTE and any(one.weight[:-1])]
    worst = min(map(SEVERITIES.index, harms), default=0)
    graver = SEVERITIES[:worst]
    return [
        one._replace(severity=SEVERITIES[worst]) if one.rank == WASTE and one.severity in graver else one
        for one in findings
    ]


def _order(finding: Finding) -> tuple[int, int, tuple[float, ...], int, str, str]:
    weight = tuple(-one for one in finding.weight)
    return (
        SEVERITIES.index(finding.severity), finding.rank, weight, -finding.count, finding.code, finding.subject,
    )  # fmt: skip


def with_symptoms(findings: list[Finding], known: dict[int, int] | None = None) -> list[Finding]:
    """Causes with their symptoms; a finding that is explained is listed beneath its cause only. ``known`` are places of
    findings whose cause has been found already, with that of the cause.

    A symptom goes beneath the worst cause that explains it, of several the nearest in time; a cause that is itself
    explained takes its symptoms along.
    """
    order = sorted(range(len(findings)), key=lambda index: _order(findings[index]))
    causes = _Causes([findings[index] for index in order])
    cause_of = dict(known or {})
    for index in order:
        if index in cause_of:
            continue
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
                severity = "warning"
            symptoms = sorted(merged_episodes(symptoms), key=_order)
            roots.append(findings[index]._replace(severity=severity, symptoms=tuple(symptoms)))
    return roots


def _nearness(cause: Finding, symptom: Finding) -> tuple[int, int, int]:
    """Orders the causes of a symptom: by severity, rank and the distance in time."""
    apart_ns = max(cause.first_ns - symptom.last_ns, symptom.first_ns - cause.last_ns, 0)
    return SEVERITIES.index(cause.severity), cause.rank, apart_ns if cause.first_ns and symptom.first_ns else 0


def _is_failure(symptom: Finding) -> bool:
    """Whether a request failed; a broker that was stopped refuses connections without more harm, and what was in flight
    behind a refused batch is sent again with it."""
    return symptom.severity == "error" and symptom.code not in ("broker_unreachable", "out_of_order_sequence_number")


class _Causes:
    """The places of findings in a list by the codes that they explain, and the entities of these.

    Comparing each with each would take quadratic time, and there may be thousands.
    """

    def __init__(self, findings: list[Finding]) -> None:
        self._places: dict[tuple[str, str], list[int]] = {}
        for place, finding in enumerate(findings):
            for code, whom in finding.explains.items():
                for one in whom:
                    self._places.setdefault((code, one), []).append(place)

    def of(self, symptom: Finding) -> Iterator[int]:
        """The places of those that explain findings with this code about one of its entities, in order."""
        return merge(*[self._places.get((symptom.code, one), ()) for one in symptom.scope])


def explains(cause: Finding, symptom: Finding) -> bool:
    """Whether one finding is the reason for another, by codes, entities and time."""
    whom = cause.explains.get(symptom.code)
    if whom is None or whom.isdisjoint(symptom.scope):
        return False
    if not (cause.first_ns and symptom.first_ns):
        return True
    return symptom.first_ns <= cause.last_ns + AFTER_NS and symptom.last_ns >= cause.first_ns - BEFORE_NS


def _leads_to(cause_of: dict[int, int], start: int, target: int) -> bool:
    """Whether ``target`` is above ``start`` already."""
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
    """Joins more than ``MAX_ALIKE`` findings with the same code, severity and remedy, with their subjects."""
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
    """Lists joined, the greater of worst and longest times, the rest as the first has it."""
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
