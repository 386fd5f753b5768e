"""How often clients ask for Metadata, how regularly, on which connections, and what the answers are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kwiresniff.analysis.doctor.bodies import response_body
from kwiresniff.analysis.doctor.cause import WASTE, Cause, Explanation, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.opened_connections import lasts
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.analysis.memory_budget import NUMBER_BYTES
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange

#: Times between two requests, and connections, remembered of each client.
MAX_GAPS = 200
MAX_CONNECTIONS = 1_000
#: Fewer requests of a client are not judged.
ENOUGH_REQUESTS = 20
#: Answers so large and so many, for so long and one in so short a time, are a load by themselves; clients need what
#: concerns their own topics, every 5 minutes (``metadata.max.age.ms``).
LARGE_BYTES: Final = 10_000
FEW_LARGE: Final = 10
OFTEN_NS: Final = 5_000_000_000
#: Intervals are the same up to this factor.
ALIKE: Final = 1.25
#: More Metadata requests of a client in a second are waste.
METADATA_PER_SECOND: Final = 5.0
#: The names of ``metadata.max.age.ms`` in libraries.
_MAX_AGE: Final = (
    "metadata.max.age.ms (librdkafka: topic.metadata.refresh.interval.ms; kafkajs: metadataMaxAge; kafka-python and "
    "aiokafka: metadata_max_age_ms; sarama: Metadata.RefreshFrequency)"
)


@dataclass(slots=True, eq=False)
class _Client:
    """The Metadata requests of a client."""

    case: Case
    gaps_ns: list[int] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)
    first_on: int = 0
    last_ns: int = 0
    with_errors: int = 0
    after_failures: int = 0
    has_failed: bool = False
    answered: int = 0
    size_bytes: int = 0
    topics: int = 0

    def is_load(self) -> bool:
        """Whether it asks for large answers again and again."""
        enough = self.answered >= FEW_LARGE and self.size_bytes >= LARGE_BYTES * self.answered
        return enough and OFTEN_NS <= self.case.last_ns - self.case.first_ns <= OFTEN_NS * self.answered

    def interval_ns(self) -> int:
        """The median time between two requests, 0 where they are not regular."""
        gaps = sorted(self.gaps_ns)
        if len(gaps) < ENOUGH_REQUESTS - 1:
            return 0
        early, middle = gaps[len(gaps) // 8], gaps[len(gaps) // 2]
        # Behind a long poll a request comes late, never early.
        is_regular = middle <= early * ALIKE and middle * len(gaps) * 2 >= sum(gaps)
        return middle if is_regular else 0


class MetadataRequests(Observer):
    """``metadata_requests``: a client asks for Metadata again and again.

    Numbers: ``bytes`` of the answers and ``topics`` in one of them at most, where these are large; ``per_second``,
    ``interval_ns`` where it is always about the same, ``connections``, how many were
    ``answered``, how many answers came ``with_errors`` and how many requests ``after_failures`` of others, with the
    names of both.
    """

    kinds = ("metadata_requests",)
    apis = frozenset({METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Client] = context.subjects(lambda: _Client(context.case()), 8)

    def exchange(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None:
            return
        client = client_of(exchange)
        known = self._clients.of(client)
        if known is None:
            return
        known.case.add(request.first_packet, request.first_ns)
        if known.last_ns and len(known.gaps_ns) < MAX_GAPS and self.context.budget.admit(NUMBER_BYTES):
            known.gaps_ns.append(max(request.first_ns - known.last_ns, 0))
        known.last_ns = request.first_ns
        number = exchange.connection.id
        if number not in known.connections:
            known.first_on += 1
            if self.context.has_room(known.connections, MAX_CONNECTIONS):
                known.connections.add(number)
        if exchange.response is not None:
            known.answered += 1
            known.size_bytes += exchange.response.size_bytes
            known.topics = max(known.topics, len(response_body(exchange).get("topics") or ()))
        if exchange.errors:
            known.with_errors += 1
            known.case.note("errors", [name for _, _, name, _ in exchange.errors])
        elif known.has_failed:
            known.after_failures += 1
        known.has_failed = False

    def failure(self, exchange: Exchange) -> None:
        """A failed request makes a client ask for the leader or the coordinator."""
        if exchange.api_key == METADATA or not exchange.errors or exchange.is_negotiation:
            return
        known = self._clients.get(client_of(exchange))
        if known is not None:
            known.has_failed = True
            known.case.note("failures", [name for _, _, name, _ in exchange.errors])

    def observations(self) -> Iterator[Observation]:
        for client, known in self._clients.items():
            case = known.case
            if case.count < ENOUGH_REQUESTS and not known.is_load():
                continue
            numbers = {
                "bytes": known.size_bytes if known.is_load() else 0,
                "topics": known.topics,
                "per_second": round(case.count / case.seconds, 1),
                "interval_ns": known.interval_ns(),
                "connections": known.first_on,
                "answered": known.answered,
                "with_errors": known.with_errors,
                "after_failures": known.after_failures,
                "errors": case.noted("errors"),
                "failures": case.noted("failures"),
            }
            yield observation_of("metadata_requests", case, {f"client:{client}"}, numbers)


class MetadataStorm(Cause):
    """`metadata_storm` (warning): a client, or those that ask at the same interval together, ask for metadata more than
    5 times a second. Why is told by when they do, on which connections, and by the answers: at regular intervals on
    connections that stand with good answers it is `metadata.max.age.ms`; with errors in the answers a topic or a leader
    is missing; after failed requests they look for a leader or a coordinator; otherwise the application asks. What is
    asked on new connections each time is a symptom of those (`connection_churn`).

    `metadata_load` (warning): a client asks more seldom, but more than once in 5 s, for answers of 10 kB and more: for
    all topics, mostly. A program that shows or watches a cluster does so, and may mean to.
    """

    codes = ("metadata_storm", "metadata_load")
    explains = ("metadata_requests",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By why they ask; clients with the same interval together."""
        regular: list[Observation] = []
        for one in observed.of("metadata_requests"):
            numbers = one.numbers
            few_connections = numbers["connections"] * 2 < one.count
            told = numbers["with_errors"] + numbers["after_failures"]
            is_often = numbers["per_second"] > METADATA_PER_SECOND or not numbers["bytes"]
            if is_often and numbers["interval_ns"] and few_connections and told * 10 < one.count:
                regular.append(one)
            elif numbers["per_second"] > METADATA_PER_SECOND and (few_connections or lasts(one)):
                yield self._other(one, on_new=not few_connections)
            elif numbers["bytes"]:
                yield self._load(one)
        regular.sort(key=lambda one: int(one.numbers["interval_ns"]))
        while regular:
            limit_ns = regular[0].numbers["interval_ns"] * ALIKE
            count = sum(one.numbers["interval_ns"] <= limit_ns for one in regular)
            alike, regular = regular[:count], regular[count:]
            if sum(one.numbers["per_second"] for one in alike) > METADATA_PER_SECOND:
                yield self._regular(alike)

    def _regular(self, alike: list[Observation]) -> Explanation:
        clients = sorted(name for one in alike for name in one.named("client"))
        interval_ns = alike[len(alike) // 2].numbers["interval_ns"]
        many = len(clients) > 1
        good = ", with good answers" if any(one.numbers["answered"] for one in alike) else ""
        asking = f"{len(clients)} clients ask" if many else "asks"
        return Explanation(
            code="metadata_storm",
            subject=f"{clients[0]} and {counted(len(clients) - 1, 'other')}" if many else clients[0],
            title=f"{asking} for metadata about every {duration(interval_ns)}, at regular intervals on connections "
            f"that stand{good}: {sum(one.count for one in alike):,} requests in all",
            remedy=f"That is their setting: raise {_MAX_AGE}; the default is 5 minutes. Clients learn of a new leader "
            "by the error of the old one, at once.",
            explained=tuple(alike),
            numbers={
                "per_second": round(sum(one.numbers["per_second"] for one in alike), 1),
                "interval_ns": interval_ns,
                "subjects": clients[:100],
                "subject_count": len(clients),
            },
            details=(f"clients: {listed(clients)}",) if many else (),
            severity="warning",
            rank=WASTE,
        )

    def _load(self, one: Observation) -> Explanation:
        numbers = one.numbers
        interval_ns = (one.last_ns - one.first_ns) // max(one.count - 1, 1)
        return told(
            one,
            f"asks for metadata of {counted(numbers['topics'], 'topic')} every "
            f"{duration(interval_ns)}: {one.count:,} answers of {numbers['bytes'] // one.count:,} bytes",
            "Ask for the topics that it needs, and seldom: a list of all topics is made anew by the broker for each "
            "request, and grows with topics, partitions and clients. Keep one client, and what was answered.",
            code="metadata_load",
            numbers={"bytes": numbers["bytes"], "topics": numbers["topics"]},
            severity="warning",
            rank=WASTE,
        )

    def _other(self, one: Observation, *, on_new: bool) -> Explanation:
        numbers = one.numbers
        if numbers["with_errors"] * 2 > one.count:
            why = f", and is answered with {listed(numbers['errors'])}"
            remedy = "It waits for a topic or a leader that is not there: create the topic, or mend its name."
        elif numbers["after_failures"] * 2 > one.count:
            why = f", because its requests fail with {listed(numbers['failures'])}"
            remedy = "It looks for a leader or a coordinator that serves it: mend what those errors say."
        elif on_new:
            why = f", on {counted(numbers['connections'], 'connection')}: a new client each time"
            remedy = "Keep one client for the life of the process: each new one asks for metadata first."
        else:
            why = ", at no regular interval, and is answered without errors"
            remedy = (
                "Its application asks: an admin client in a loop, partitionsFor or a list of topics for each message. "
                "Ask seldom, and keep what was answered."
            )
        return told(
            one,
            f"asks for metadata {numbers['per_second']:.0f} times a second, {one.count:,} times in all{why}",
            remedy,
            code="metadata_storm",
            numbers={"per_second": numbers["per_second"]},
            severity="warning",
            rank=WASTE,
        )
