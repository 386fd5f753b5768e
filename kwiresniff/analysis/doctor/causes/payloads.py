"""What is told of keys and values that do not fit the schema that they name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observed
from kwiresniff.analysis.doctor.wording import counted, listed


class UnfitPayload(Cause):
    """`payload_does_not_fit` (warning): with a plugin that decodes values (`--plugin`), records name a schema and do
    not fit it: their producer was built with another schema than it names, or writes bytes that only look as if they
    named one. Consumers that decode them fail. The producer is named where it is in the capture, else who was given
    them.
    """

    codes: ClassVar[tuple[str, ...]] = ("payload_does_not_fit",)
    explains: ClassVar[tuple[str, ...]] = ("payload_does_not_fit",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By topic and client."""
        for one in observed.of("payload_does_not_fit"):
            numbers, client = one.numbers, one.name("client")
            topic, count = numbers["topic"], numbers["records"]
            schemas = listed(numbers["schemas"])
            if not schemas:
                fault = (
                    "does not fit the schema that it names" if count == 1 else "do not fit the schema that they name"
                )
            else:
                fault = f"names {schemas} and does not fit it" if count == 1 else f"name {schemas} and do not fit it"
            what = "writes" if numbers["written"] else "is given"
            who = client if numbers["written"] else "whoever writes to it"
            yield Explanation(
                code="payload_does_not_fit",
                subject=f"topic {topic}",
                title=f"{client} {what} {counted(count, 'record')} that {fault}",
                remedy=f"See with which schema {who} serializes records of {topic}, and whether it is the one that it "
                "names in them; consumers that decode these records fail.",
                explained=(one,),
                severity="warning",
                numbers={"records": count, "schemas": numbers["schemas"], "clients": [client]},
            )
