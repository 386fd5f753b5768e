"""Findings of the doctor, the worst first: title, scope, evidence, remedy, symptoms, and on demand the reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TextIO

from kwiresniff.render import format_units
from kwiresniff.render.blocks import BlockWriter, cluster_name
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk, pad
from kwiresniff.render.theme import SEVERITY_KINDS, Span
from kwiresniff.results.findings import Finding

#: Names of a list that are printed; JSON has all.
_MAX_LISTED: Final = 12
_MARK: Final = 8
_LABEL: Final = 9

#: Numbers worth a place in the text, and how each is said; JSON has all of them.
_SAID: Final[dict[str, tuple[str, Callable[[int], str]]]] = {
    "of": ("of", str),
    "p50_ns": ("p50", format_units.duration),
    "p99_ns": ("p99", format_units.duration),
    "worst_ns": ("worst", format_units.duration),
    "longest_ms": ("longest", lambda value: format_units.duration(value * 1_000_000)),
    "total_ms": ("in all", lambda value: format_units.duration(value * 1_000_000)),
    "lost_ns": ("lost", format_units.duration),
    "longest_ns": ("longest", format_units.duration),
    "largest_request_bytes": ("largest request", format_units.size),
}
#: Lists worth a line, and what stands before it.
_LISTS: Final = {"clients": "clients", "concerns": "concerns", "reasons": "reasons", "users": "users"}


class FindingWriter(BlockWriter):
    """Writes findings, with ``reasons`` also what was observed, and what spoke for and against a cause."""

    def __init__(
        self, out: TextIO, width: int | None, color: bool, files: Sequence[str] = (), *, reasons: bool = False
    ) -> None:
        super().__init__(out, width, color, files)
        self._reasons = reasons

    def write(self, findings: Iterable[Finding]) -> None:
        """One block for each, an empty line between two."""
        for index, finding in enumerate(findings):
            self._between(index)
            lead: list[Span] = [
                (SEVERITY_KINDS[finding.severity], finding.severity),
                ("", " " * (_MARK - len(finding.severity))),
            ]
            head: list[Chunk] = [
                [("ident", escape(finding.subject))],
                [("value", escape(finding.title))],
                [("dim", f"{finding.count:,} {self._paint.glyphs.times}")],
            ]
            self._line(head, lead)
            self._facts(finding)
            for symptom in finding.symptoms:
                self._symptom(symptom)

    def _facts(self, finding: Finding) -> None:
        if finding.cluster:
            self._fact("", [[("dim", f"in the {cluster_name(finding.cluster)}")]])
        for detail in finding.details:
            self._fact("", [[("value", escape(detail))]])
        if numbers := self._numbers(finding.numbers):
            self._fact("measured", numbers)
        for name, label in _LISTS.items():
            named = finding.numbers.get(name)
            if isinstance(named, list) and named and not (name == "reasons" and finding.details):
                self._fact(label, [[("value", escape(str(one)))] for one in named[:_MAX_LISTED]])
        if finding.last_ns > finding.first_ns > 0:
            seen = (
                [("value", format_units.clock(finding.first_ns, 3))],
                [("dim", f"to {format_units.clock(finding.last_ns, 3)}")],
            )
            self._fact("seen", list(seen))
        if finding.evidence:
            self._fact("evidence", [self._evidence(*one) for one in finding.evidence])
        self._fact("remedy", [[("meaning", escape(finding.remedy))]])
        if self._reasons:
            self._why(finding)

    def _why(self, finding: Finding) -> None:
        for label, name in (("observed", "observed"), ("for", "supports"), ("against", "contradicts")):
            for sentence in getattr(finding, name):
                self._fact(label, [[("dim", escape(sentence))]])

    def write_rejected(self, rejected: Iterable[Finding]) -> None:
        """Causes that were weighed and refuted, with what refuted them."""
        for one in rejected:
            chunks: list[Chunk] = [[("ident", escape(one.subject))], [("value", escape(one.title))]]
            self._out.write("\n")
            self._line(chunks, [("dim", pad("no", _MARK))])
            self._why(one)

    def _symptom(self, symptom: Finding) -> None:
        """A symptom of a finding in one line, with its first evidence."""
        chunks: list[Chunk] = [
            [("ident", escape(symptom.subject))],
            [("value", escape(symptom.title))],
            [("dim", f"{symptom.count:,} {self._paint.glyphs.times}")],
        ]
        if symptom.evidence:
            chunks.append(self._evidence(*symptom.evidence[0]))
        self._fact("symptom", chunks)

    def _numbers(self, numbers: dict[str, Any]) -> list[Chunk]:
        return [
            [("name", f"{name} "), ("ident", say(numbers[key]))]
            for key, (name, say) in _SAID.items()
            if isinstance(numbers.get(key), int) and numbers[key]
        ]

    def _evidence(self, packet: int, ns: int) -> Chunk:
        return [("value", self._packet_of(packet)), ("dim", f" {format_units.clock(ns, 3)}")]

    def _fact(self, label: str, chunks: list[Chunk]) -> None:
        self._line(chunks, [("", " " * _MARK), ("name", pad(label, _LABEL))])
