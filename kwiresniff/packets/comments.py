"""What the first packet of an exchange says of it, for Wireshark's ``frame.comment`` and for people."""

from __future__ import annotations

from kwiresniff.model import Exchange
from kwiresniff.render.escape import escape
from kwiresniff.render.format_units import duration
from kwiresniff.results.findings import Finding

#: Errors and problems that are named in a comment; a response may have thousands.
MAX_NAMED = 8


def comment_of(exchange: Exchange) -> str:
    """``Fetch v13, correlation id 42, latency 503 ms, error NOT_LEADER_OR_FOLLOWER``, of what an exchange has."""
    version = f" v{exchange.api_version}" if exchange.api_version >= 0 else ""
    words = [f"{escape(exchange.api) or 'response'}{version}", f"correlation id {exchange.correlation_id}"]
    if exchange.latency_ns is not None:
        words.append(f"latency {duration(exchange.latency_ns)}")
    if exchange.waiting:
        words.append(escape(exchange.waiting))
    names = list(dict.fromkeys(name for _, _, name, _ in exchange.errors))
    words.append(" ".join([exchange.outcome, *map(escape, names[:MAX_NAMED])]))
    words += [f"problem {escape(code)}" for code in _codes(exchange)]
    return ", ".join(words)


def finding_comment(finding: Finding, *, named: bool) -> str:
    """``finding: warning SMALL_BATCHES: billing sends batches of one record``, or its code alone."""
    title = f": {escape(finding.subject)}: {escape(finding.title)}" if named else ""
    return f"finding: {finding.severity} {finding.code}{title}"


def _codes(exchange: Exchange) -> list[str]:
    return list(dict.fromkeys(problem.code for problem in exchange.problems))[:MAX_NAMED]
