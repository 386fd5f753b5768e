"""Lines on stderr: problems of a capture, and what it held when it held no Kafka."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kwiresniff.cli.reading import Reading
from kwiresniff.model import Problem
from kwiresniff.render import problem_line


def tell_problem(problem: Problem, reading: Reading) -> None:
    """One problem, one line, unless the user wants none."""
    if not reading.options.quiet:
        sys.stdout.flush()
        print(f"kwiresniff: {problem_line(problem)}", file=sys.stderr)


def tell_no_kafka(reading: Reading, others: Sequence[Problem]) -> None:
    """The one line for a capture without Kafka: what was there instead."""
    if reading.options.quiet:
        return
    counts: dict[str, int] = {}
    for problem in others:
        details = problem.details or {}
        name = "an unknown protocol" if details.get("protocol") == "unknown" else str(details.get("protocol"))
        counts[name] = counts.get(name, 0) + int(details.get("connections", 1))
    found = [f"{count} TCP connection{'s' if count > 1 else ''} with {name}" for name, count in counts.items()]
    found += [f"{count} packet{'s' if count > 1 else ''} {what}" for what, count in reading.other_packets.items()]
    where = ", ".join(reading.files[:3]) + (", ..." if len(reading.files) > 3 else "")
    print(f"kwiresniff: {where}: no Kafka in it; there were {', '.join(found) or 'no packets'}", file=sys.stderr)
