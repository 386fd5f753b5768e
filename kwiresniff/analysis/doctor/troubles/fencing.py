"""Producers that are fenced: the transactional id, who had it, and who took it (KIP-98, KIP-360).

InitProducerId for a transactional id gives the next producer epoch; the holder before is refused from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import broker_says, clock, listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.producer_state import FENCED_CODES
from kwiresniff.base.api_keys import INIT_PRODUCER_ID
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange
from kwiresniff.results.findings import scope_of

#: Transactional ids whose holders are remembered.
MAX_IDS = 5_000


class _Holder(NamedTuple):
    client: str
    producer_id: int
    epoch: int
    ns: int


class FencedProducers(CountingObserver):
    """``producer_fenced``: a producer was refused because its epoch is over, by its transactional id.

    Notes: ``errors``, ``apis``, ``producers`` (ids and epochs), ``topics``, ``concerns``, ``messages``. Numbers:
    ``by``, the client that took the id, with its ``producer_id``, ``epoch`` and when (``taken_ns``), or None;
    ``overdue``, a sentence on a transaction that its coordinator aborted.
    """

    kinds = ("producer_fenced",)
    entities = ("client", "transaction")
    apis = frozenset({INIT_PRODUCER_ID})
    judges = FENCED_CODES

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._holders: Subjects[str, list[_Holder]] = context.subjects(list, 8, MAX_IDS)
        self._ids: dict[int, str] = {}

    def exchange(self, exchange: Exchange) -> None:
        request, answer = request_body(exchange), response_body(exchange)
        if not request or not answer or exchange.errors or not request.get("transactional_id"):
            return
        name = clipped(field_text(request["transactional_id"]))
        holders = self._holders.of(name)
        if holders is None:
            return
        producer_id, epoch = answer.get("producer_id", -1), answer.get("producer_epoch", -1)
        holders.append(_Holder(client_of(exchange), producer_id, epoch, place_of(exchange)[1]))
        del holders[:-3]
        if len(self._ids) < MAX_IDS:
            self._ids[producer_id] = name

    def failure(self, exchange: Exchange) -> None:
        places = error_places(exchange, self.context, FENCED_CODES)
        if not places:
            return
        body = request_body(exchange)
        producer_id, epoch = producer_of(body)
        name = clipped(field_text(body.get("transactional_id"))) or self._ids.get(producer_id, "")
        case = self.cases.case(client_of(exchange), name)
        case.add(*place_of(exchange))
        case.note("apis", [exchange.api])
        case.note("producers", [f"{producer_id} epoch {epoch}"] if producer_id >= 0 else [])
        for place in places:
            place.note(case)

    def observations(self) -> Iterator[Observation]:
        for client, name, case in self.cases:
            taker = self._taker(client, name, case)
            by: dict[str, Any] = {"by": None}
            if taker is not None:
                by = {"by": taker.client, "producer_id": taker.producer_id, "epoch": taker.epoch}
            overdue = self.context.overdue.get(client, "") if taker is None else ""
            taken_ns = taker.ns if taker is not None else 0
            yield self.observed(client, name, case, **by, taken_ns=taken_ns, overdue=overdue)

    def _taker(self, client: str, name: str, case: Case) -> _Holder | None:
        """The newest holder with a later epoch that took the id before the refusal."""
        own = [int(one.rpartition(" ")[2]) for one in case.noted("producers")]
        holders = [holder for holder in self._holders.get(name, ()) if holder.ns <= case.last_ns]
        for holder in reversed(holders):
            if (own and holder.epoch > max(own)) or (not own and holder.client != client):
                return holder
        return holders[-1] if holders and holders[-1].client != client else None


def producer_of(body: Body) -> tuple[int, int]:
    """Producer id and epoch of a request, -1 where it has none; of a Produce those of its first batch."""
    if "producer_id" in body:
        return body.get("producer_id", -1), body.get("producer_epoch", -1)
    for topic in body.get("topic_data") or ():
        for partition in topic.get("partition_data") or ():
            for batch in partition.get("records") or ():
                if isinstance(batch, dict):
                    return batch.get("producer_id", -1), batch.get("producer_epoch", -1)
    return -1, -1


@cause("producer_fenced", explains=("producer_fenced",))
def fenced_producer(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`producer_fenced` (error): a producer was fenced: its transactional id, by whom, with producer id and epochs; by
    its coordinator where its transaction lasted longer than `transaction.timeout.ms`.
    """
    client, name, numbers = one.name("client"), one.name("transaction"), one.numbers
    taker, overdue = numbers["by"], numbers["overdue"]
    errors, producers = one.noted("errors"), one.noted("producers")
    own = f" (producer {listed(producers, 3)})" if producers else ""
    if taker is not None:
        who = "a later instance of itself" if taker == client else taker
        producer = f"producer {numbers['producer_id']} epoch {numbers['epoch']}"
        by = f"was fenced by {who} at {clock(numbers['taken_ns'])} ({producer})"
    elif overdue:
        by = "was fenced by its coordinator, which aborted its transaction"
    else:
        by = "was fenced, by whom is not in the capture: another instance, or its coordinator"
    return told(
        one,
        f"{listed(errors)}: {client}{own} {by}, {times(one.count)}" + (f"; {overdue}" if overdue else ""),
        _TOO_LONG if overdue else _TWO_INSTANCES,
        subject=f"transactional id {name}" if name else client,
        severity="error",
        numbers={
            "error": errors[0] if errors else "",
            "transactional_id": name or None,
            "fenced": client,
            "by": taker,
            "concerns": [*one.noted("apis"), *one.noted("concerns")],
            "error_messages": one.noted("messages"),
        },
        details=tuple(broker_says(one.noted("messages"))),
        scope=scope_of("client", [taker] if taker is not None else []),
    )


_TWO_INSTANCES: Final = (
    "Two live instances share a transactional.id, or a paused one came back, or its transaction timed out "
    "(transaction.timeout.ms). Give each instance its own id."
)

_TOO_LONG: Final = (
    "What the producer does between begin and commit takes longer than transaction.timeout.ms, or the producer stood "
    "still: look at it, make its transactions shorter, or raise the timeout (the broker's transaction.max.timeout.ms "
    "limits it). What it had written of that transaction is aborted."
)
