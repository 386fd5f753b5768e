"""Keys and values that do not fit the schema that they name, as value decoders of plugins report."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import counted, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Exchange


class UnfitPayloads(Observer):
    """``payload_does_not_fit``: a client wrote records whose key or value does not fit the schema that it names; where
    nobody was seen to write such records to the topic, a client was given them.

    Numbers: ``topic``, ``records``, ``schemas``, ``written`` (whether it wrote them). Records that are fetched again
    count again.
    """

    kinds = ("payload_does_not_fit",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._written = context.tally()
        self._read = context.tally()

    def failure(self, exchange: Exchange) -> None:
        for problem in exchange.problems:
            if problem.code != "payload_does_not_fit" or problem.details is None:
                continue
            details = problem.details
            topic, schema = str(details.get("topic")), details.get("schema")
            tally = self._written if exchange.api_key == PRODUCE else self._read
            case = tally.case(topic, client_of(exchange))
            case.add(*place_of(exchange), int(details.get("records") or 1))
            case.note("topics", [topic])
            if schema is not None:  # it is redacted
                case.note("schemas", [str(schema)])

    def observations(self) -> Iterator[Observation]:
        written = {topic for topic, _, _ in self._written}
        for tally in (self._written, self._read):
            for topic, client, case in tally:
                wrote = tally is self._written
                if wrote or topic not in written:
                    numbers = {
                        "topic": topic,
                        "records": case.total,
                        "schemas": case.noted("schemas"),
                        "written": wrote,
                    }
                    yield observation_of("payload_does_not_fit", case, [f"client:{client}"], numbers)


@cause("payload_does_not_fit", explains=("payload_does_not_fit",))
def unfit_payload(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`payload_does_not_fit` (warning): with a plugin that decodes values (`--plugin`), records name a schema and do
    not fit it: their producer was built with another schema than it names, or writes bytes that only look as if they
    named one. Consumers that decode them fail. The producer is named where it is in the capture, else who was given
    them.
    """
    numbers, client = one.numbers, one.name("client")
    topic, count = numbers["topic"], numbers["records"]
    schemas = listed(numbers["schemas"])
    if not schemas:
        fault = "does not fit the schema that it names" if count == 1 else "do not fit the schema that they name"
    else:
        fault = f"names {schemas} and does not fit it" if count == 1 else f"name {schemas} and do not fit it"
    what = "writes" if numbers["written"] else "is given"
    who = client if numbers["written"] else "whoever writes to it"
    return told(
        one,
        subject=f"topic {topic}",
        title=f"{client} {what} {counted(count, 'record')} that {fault}",
        remedy=f"See with which schema {who} serializes records of {topic}, and whether it is the one that it "
        "names in them; consumers that decode these records fail.",
        severity="warning",
        numbers={"records": count, "schemas": numbers["schemas"], "clients": [client]},
    )
