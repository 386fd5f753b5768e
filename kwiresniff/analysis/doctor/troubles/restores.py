"""Kafka Streams restoring its state: changelog topics that are read from their beginning.

A task without a checkpoint, because its state directory is new or lost, reads the whole changelog (Streams
architecture, "Fault Tolerance"). Changelogs are named ``APPLICATION_ID-STORE-changelog``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, grouped
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.base.api_keys import FETCH
from kwiresniff.model import Exchange

CHANGELOG: Final = "-changelog"
#: Partitions that are remembered.
MAX_PARTITIONS = 5_000


class Restores(CountingObserver):
    """``changelog_restored``: partitions of a Streams changelog that a consumer reads from offset 0.

    Numbers: ``topic``, ``records``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("changelog_restored",)
    entities: ClassVar[tuple[str, str]] = ("client", "topic")
    apis: ClassVar[frozenset[int] | None] = frozenset({FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        #: Client, topic and partition.
        self._restored: set[tuple[str, str, int]] = set()

    def exchange(self, exchange: Exchange) -> None:
        response = exchange.response
        if response is None:
            return
        for topic, part in self.context.brought(exchange):
            if not topic.endswith(CHANGELOG):
                continue
            client = client_of(exchange)
            key = client, topic, part.index
            if key not in self._restored:
                asked = [(name, one.index, one.offset) for name, one in self.context.parts(exchange.request)]
                begins = (topic, part.index, 0) in asked
                if not begins or not self.context.has_room(self._restored, MAX_PARTITIONS, client, topic):
                    continue
                self._restored.add(key)
            case = self.cases.case(client, topic)
            case.add(response.first_packet, response.first_ns, part.records, until_ns=response.last_ns)

    def observations(self) -> Iterator[Observation]:
        for client, topic, case in self.cases:
            yield self.observed(client, topic, case, topic=topic, records=case.total)


class StateRestored(Cause):
    """`state_restored` (info): Kafka Streams reads changelog topics from offset 0, as it does where the state directory
    is new or lost. Until it has reached their end the task does no other work; that it stops there is no lag.
    """

    codes = ("state_restored",)
    explains = ("changelog_restored",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for client, restored in grouped(observed.of("changelog_restored"), lambda one: one.name("client")).items():
            records = sum(one.numbers["records"] for one in restored)
            first_ns, last_ns = min(one.first_ns for one in restored), max(one.last_ns for one in restored)
            topics = sorted(one.numbers["topic"] for one in restored)
            yield Explanation(
                code="state_restored",
                subject=client,
                title=f"read {counted(len(topics), 'changelog topic')} from offset 0 ({counted(records, 'record')} in "
                f"{duration(last_ns - first_ns)}: {listed(topics)}): its state directory was new or lost",
                remedy="Nothing is wrong. Where restoring takes long, keep state.dir on a disk that outlives restarts, "
                "or run standby replicas (num.standby.replicas).",
                explained=tuple(restored),
                numbers={"topics": topics[:100], "records": records},
                severity="info",
            )
