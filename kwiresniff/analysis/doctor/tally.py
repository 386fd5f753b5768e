"""Counting things by whom they concern, with a few packets to look at, within bounds."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.clients import host_of
from kwiresniff.model import Exchange

#: Subjects counted apart by one rule; those that come later are counted together.
MAX_SUBJECTS = 2_000
#: Occurrences kept as evidence of each.
MAX_EVIDENCE = 5
OTHERS = "(others)"


class Case:
    """One subject: how often, where first, and numbers of the rule's own."""

    __slots__ = ("count", "evidence", "first_ns", "last_ns", "most", "names", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.most = 0
        self.first_ns = -1
        self.last_ns = -1
        self.evidence: list[tuple[int, int]] = []
        self.names: dict[str, None] = {}

    def add(self, packet: int, ns: int, amount: int = 0) -> None:
        """One occurrence; ``amount`` is what the rule adds up."""
        self.count += 1
        self.total += amount
        self.most = max(self.most, amount)
        if self.first_ns < 0:
            self.first_ns = ns
        self.last_ns = max(self.last_ns, ns)
        if len(self.evidence) < MAX_EVIDENCE and packet:
            self.evidence.append((packet, ns))

    def name(self, name: str) -> None:
        """Something to be named with the case: an API, a topic. A few are enough."""
        if len(self.names) < MAX_EVIDENCE:
            self.names[name] = None

    @property
    def seconds(self) -> float:
        """From the first to the last occurrence, never zero."""
        return max((self.last_ns - self.first_ns) / 1e9, 1e-3)


class Tally:
    """Cases by subject and by what it is that is counted of it, which comes from a short list (an API, a code)."""

    def __init__(self) -> None:
        self._cases: dict[tuple[str, str], Case] = {}

    def case(self, subject: str, what: str = "") -> Case:
        """The case of that subject, a new one if need be."""
        found = self._cases.get((subject, what))
        if found is None:
            if len(self._cases) >= MAX_SUBJECTS:
                subject = OTHERS
                found = self._cases.get((subject, what))
            if found is None:
                found = self._cases[subject, what] = Case()
        return found

    def __iter__(self) -> Iterator[tuple[str, str, Case]]:
        return ((subject, what, case) for (subject, what), case in self._cases.items())


def client_of(exchange: Exchange) -> str:
    """Whom an exchange concerns: the client's id and address."""
    return f"{exchange.client_id or '(no client id)'} {host_of(exchange.connection.client)}"


def place_of(exchange: Exchange) -> tuple[int, int]:
    """Where it is in the capture: the packet in which the answer begins, else the one of the request, and its time."""
    message = exchange.response or exchange.request
    assert message is not None
    return message.first_packet, message.first_ns
