"""Consumers that get batches they cannot decompress: zstd in a response to a Fetch from before zstd (KIP-110).

A broker of before 4.0 refuses such a fetch, or converts the records; since then it gives them out as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, is_replica
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FETCH
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.model import Exchange

#: The first version of Fetch whose clients know zstd.
ZSTD_SINCE = 10
ZSTD = "zstd"
ZSTD_NUMBER = CODEC_NAMES.index(ZSTD)
#: A client that is given them may not have asked on yet when the capture ends.
LATER_NS = 2_000_000_000
#: Partitions that are remembered.
MAX_PARTITIONS = 2_000
#: An offset that stands for one that was read.
READ = 1 << 63


class UnknownZstd(CountingObserver):
    """``stuck_at_zstd``: a consumer that asks by versions from before zstd was given batches in it, and has not asked
    for what is behind them.

    Numbers: ``partitions``, ``versions`` of its fetches, its ``software``.
    """

    kinds = ("stuck_at_zstd",)
    entities = ("client", "topic")
    apis = frozenset({FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # By client, topic and partition: behind which batch in zstd the client has to ask next, if it could read it.
        self._behind: dict[tuple[str, str, int], int] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Notes batches in zstd that an old fetch brought, and forgets them once the client asks for what is behind."""
        if exchange.response is None or exchange.api_version >= ZSTD_SINCE:
            return
        client = client_of(exchange)
        if self._behind:
            for name, part in self.context.parts(exchange.request):
                key = client, name, part.index
                if part.offset >= self._behind.get(key, part.offset + 1):
                    self._behind[key] = READ
        for name, part in self.context.parts(exchange.response):
            zstd = ZSTD in part.codecs if part.codecs is not None else part.batches and part.codec == ZSTD_NUMBER
            if not zstd or is_replica(exchange):
                continue
            key = client, name, part.index
            if key not in self._behind:
                if not self.context.has_room(self._behind, MAX_PARTITIONS, client, name):
                    continue
                self._behind[key] = part.end_offset
            case = self.cases.case(client, name)
            case.add(*place_of(exchange))
            case.note("partitions", [f"{name}-{part.index}"])
            case.note("versions", [f"Fetch v{exchange.api_version}"])
            software = exchange.connection.client_software or {}
            if software:
                case.note("software", [f"{software.get('name')} {software.get('version')}".strip()])

    def observations(self) -> Iterator[Observation]:
        for client, topic, case in self.cases:
            stuck = [
                f"{topic}-{index}"
                for (who, name, index), offset in self._behind.items()
                if (who, name) == (client, topic) and offset != READ
            ]
            if not stuck or (case.count == 1 and self.context.end_ns - case.last_ns < LATER_NS):
                continue
            numbers = {"versions": case.noted("versions"), "software": case.noted("software")}
            harm = Harm(requests_failed=case.count)
            yield self.observed(client, topic, case, harm=harm, partitions=stuck[:100], **numbers)


@cause("zstd_not_known", explains=("stuck_at_zstd",))
def unknown_codec(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`zstd_not_known` (error): batches in zstd in the answers to a Fetch of before zstd (v10), and the client does not
    ask for what is behind them. Must not be seen: that it does.
    """
    numbers = one.numbers
    software = f" ({listed(numbers['software'])})" if numbers["software"] else ""
    return told(
        one,
        f"is given batches of {listed(numbers['partitions'])} in zstd, which clients that ask by "
        f"{listed(numbers['versions'])} do not know{software}: it does not come past them",
        "Update the client: zstd came with Fetch v10 (Kafka 2.1). Or let its producers use another "
        "compression.type; what is written stays in zstd until retention deletes it.",
        numbers={"topic": one.name("topic"), "partitions": numbers["partitions"], "versions": numbers["versions"]},
        severity="error",
    )
