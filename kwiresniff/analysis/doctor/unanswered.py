"""Requests that were not answered: their clients gave up, or the capture ended."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.client_traffic import CLUSTER_APIS
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in, is_waiting
from kwiresniff.analysis.doctor.evidence import Episodes
from kwiresniff.analysis.doctor.rule import SYMPTOM, Rule, found
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.results.findings import Finding
from kwiresniff.schema import API_NAMES

#: Requests that only nodes of the cluster send.
CLUSTER_API_NAMES = frozenset(API_NAMES[key] for key in CLUSTER_APIS if key in API_NAMES)

#: A request that was not answered so short a time before the end may just not have been answered yet, as one that takes
#: so long is no trouble either (``VERY_SLOW_NS`` of slow answers).
LATE_NS = 5_000_000_000
#: A client that leaves sooner was not waiting for the answer, it was closing.
GAVE_UP_NS = 1_000_000_000

#: Requests that a broker passes on to the active controller (KIP-590), or that clients send it themselves.
TO_CONTROLLER = frozenset({
    "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs", "CreateAcls",
    "DeleteAcls", "AlterPartitionReassignments", "ListPartitionReassignments", "AlterClientQuotas", "ElectLeaders",
    "AlterUserScramCredentials", "UpdateFeatures", "UnregisterBroker", "CreateDelegationToken",
})  # fmt: skip
_CONTROLLER = (
    "The broker passes such requests on to the active controller: see whether there is one (kafka-metadata-quorum "
    "describe --status), and whether this broker reaches it. Nothing can be created or changed until then."
)
_SILENT = (
    "See what the broker was doing then (its log, pauses of garbage collection, disks), and whether its answers can "
    "reach the client; request.timeout.ms says how long a client waits. One that a quota throttled before the capture "
    "began waits as well, for as long as it was told then."
)


class UnansweredRule(Rule):
    """Requests whose client gave up, or which the capture has no answer to although there was time for one."""

    codes = ("unanswered",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._episodes = Episodes(context.budget)

    def ending(self, ending: Ending) -> None:
        """Counts unanswered requests that nothing else explains and that the broker did not hold back on purpose."""
        if ending.reason not in ("closed by client", "capture ended", "not authenticated"):
            return
        over_ns = ending.first.last_ns + ending.waited_ns
        broker, closed = ending.connection.broker, ending.reason != "capture ended"
        for request in ending.requests:
            if is_waiting(ending, request):
                continue
            waited_ns = over_ns - request.last_ns
            calm = waited_ns < (GAVE_UP_NS if closed else LATE_NS)
            kind = f"{request.api}\0{'left' if closed else 'end'}{' early' if calm else ''}"
            case = self._episodes.case(broker, kind, request.first_ns)
            case.add(request.packet, request.first_ns, waited_ns, until_ns=over_ns)
            case.note("clients", [client_in(ending)])
        more = sum(ending.counts.values()) - len(ending.requests)
        if more > 0 and len({request.api for request in ending.requests}) == 1:
            case = self._episodes.case(broker, kind, request.first_ns)
            case.count += more

    def findings(self) -> Iterator[Finding]:
        """By broker and API, the episodes apart."""
        for broker, kind, case in self._episodes:
            api, _, how = kind.partition("\0")
            clients = case.noted("clients")
            calm = how.endswith("early")
            if how.startswith("end"):
                title = f"{api} was not answered before the capture ended"
            elif calm:
                title = f"{api} was not waited for: the client closed its connection"
            else:
                title = f"{api} was not answered: the client gave up after {duration(case.most)}"
            # Whatever came from the broker afterwards, it was not dead.
            alive = self.context.cluster.last_answer_ns.get(broker, 0) > case.first_ns
            passed_on = alive and not calm and api in TO_CONTROLLER
            went = not alive and self.context.cluster.went(broker, case.first_ns)
            lossy = self.context.is_lossy(case.count)
            if lossy:
                title += "; or its answer is among what the capture lost"
            severity = "info" if calm or lossy else "warning" if api in CLUSTER_API_NAMES or went else "error"
            if went:
                title += ": the broker closed other connections then, it was stopped or killed"
            yield found(
                "unanswered",
                severity,
                broker,
                f"{title}, though the broker answered other requests: the controller does not" if passed_on else title,
                _CONTROLLER if passed_on else _SILENT,
                case,
                {"api": api, "clients": clients, "longest_ns": case.most},
                brokers=[broker],
                rank=SYMPTOM,
            )
