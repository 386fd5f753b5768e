"""What is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or will be, and what to do about it.

    ``severity`` is ``error``, ``warning`` or ``info``; ``subject`` is whom it concerns (a client, group, topic, broker
    or connection). ``evidence`` are ``(packet reference, timestamp_ns)`` of the first occurrences; ``numbers`` is
    JSON-ready.
    """

    code: str
    severity: str
    subject: str
    title: str
    remedy: str
    count: int
    evidence: tuple[tuple[int, int], ...]
    numbers: dict[str, Any]
