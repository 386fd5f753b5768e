"""Both sides compared, the worst change first."""

from __future__ import annotations

import re
from typing import Final

from kwiresniff.analysis.comparison.client_changes import client_changes
from kwiresniff.analysis.comparison.count_changes import error_changes, rate_changes
from kwiresniff.analysis.comparison.group_changes import group_changes
from kwiresniff.analysis.comparison.latency_changes import latency_changes
from kwiresniff.analysis.comparison.survey import Found
from kwiresniff.analysis.doctor import SEVERITIES
from kwiresniff.results.comparison import SECTIONS, Change, Comparison, Side
from kwiresniff.results.findings import Finding

#: Ports that clients are given by their systems, which are others with each connection (RFC 6335: from 49152 on;
#: Linux: from 32768).
_PASSING_PORT: Final = re.compile(r"(?<=[\d\]]):(?:3276[89]|327[7-9]\d|32[89]\d\d|3[3-9]\d{3}|[4-6]\d{4})\b")


def compare(before: Found, after: Found, names: tuple[str, str], files: tuple[list[str], list[str]]) -> Comparison:
    """Compares both sides; ``names`` are those of the sides, ``files`` their capture files."""
    latency, slow_doubts, kinds = latency_changes(before.latencies, after.latencies)
    errors, error_doubts, pairs = error_changes(before, after)
    rates, rates_compared = rate_changes(before, after)
    clients, client_doubts, clients_compared = client_changes(before, after)
    groups, groups_compared = group_changes(before, after)
    findings, findings_compared = finding_changes(before, after)
    changes = [*latency, *errors, *rates, *clients, *groups, *findings]
    order = {severity: at for at, severity in enumerate(SEVERITIES)}
    changes.sort(key=lambda one: (order[one.severity], SECTIONS.index(one.section)))
    sides = [
        Side(name, tuple(paths), side.exchanges, side.first_ns, side.last_ns)
        for name, paths, side in zip(names, files, (before, after), strict=True)
    ]
    return Comparison(
        before=sides[0],
        after=sides[1],
        changes=tuple(changes),
        doubtful=(*slow_doubts, *error_doubts, *client_doubts),
        compared={
            "latency": kinds,
            "errors": pairs,
            "throughput": rates_compared,
            "clients": clients_compared,
            "groups": groups_compared,
            "findings": findings_compared,
        },
        left_out=before.left_out + after.left_out,
    )


#: A finding about how packets were captured, which says nothing of the traffic; and what a capture that has packets
#: twice cannot show.
_OF_CAPTURE: Final = "captured_twice"
_NOT_IN_COPIES: Final = "retransmits"


def finding_changes(before: Found, after: Found) -> tuple[list[Change], int]:
    """Findings of the doctor that are new or gone, and how many there are in all."""
    earlier = {_key(one): one for one in before.findings}
    later = {_key(one): one for one in after.findings}
    left_out = {_OF_CAPTURE} & {code for code, _ in (*earlier, *later)} and {_OF_CAPTURE, _NOT_IN_COPIES}
    earlier, later = ({key: one for key, one in side.items() if key[0] not in left_out} for side in (earlier, later))
    found = [
        Change("findings", one.severity, "new", one.subject, one.code, None, one.title)
        for key, one in later.items()
        if key not in earlier
    ]
    found += [
        Change("findings", "info", "gone", one.subject, one.code, one.title, None)
        for key, one in earlier.items()
        if key not in later
    ]
    return found, len({*earlier, *later})


def _key(finding: Finding) -> tuple[str, str]:
    return finding.code, _PASSING_PORT.sub("", finding.subject)
