"""Problems in one line each: in the middle of a tree, on standard error, in a list."""

from __future__ import annotations

from kwiresniff.model import Problem, packet_number
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk


def problem_place(problem: Problem) -> str:
    """Where the problem is, as exactly as it is known: ``file x.pcap, packet 12, byte 4096, topics[0].name``."""
    parts = []
    if problem.details and isinstance(name := problem.details.get("file"), str):
        parts.append(escape(name))
    if problem.packet is not None:
        parts.append(f"packet {packet_number(problem.packet)}")
    if problem.offset is not None:
        parts.append(f"byte {problem.offset:,}")
    if problem.path:
        parts.append(escape(problem.path))
    return ", ".join(parts)


def problem_line(problem: Problem) -> str:
    """``what is wrong (where)``: one line without colours, safe to print."""
    _, message, offset, path, packet, _, details = problem
    if packet is not None and offset is None and not path and not (details and "file" in details):
        return f"{escape(message)} (packet {packet_number(packet)})"  # gaps, by the hundred thousand
    place = problem_place(problem)
    return f"{escape(message)} ({place})" if place else escape(message)


def problem_chunk(problem: Problem) -> Chunk:
    """A problem for a tree: marked, with the place dim behind it."""
    chunk: Chunk = [("warn", f"! {escape(problem.message)}")]
    place = problem_place(problem)
    if place:
        chunk.append(("dim", f" ({place})"))
    return chunk
