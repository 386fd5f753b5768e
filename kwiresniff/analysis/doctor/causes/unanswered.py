"""What is told of requests without an answer where no other cause explains them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import SYMPTOM, Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.unanswered import CLUSTER_API_NAMES
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.results.findings import scope_of

#: Requests that a broker passes on to the active controller (KIP-590), or that clients send it themselves.
TO_CONTROLLER: Final = frozenset({
    "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs", "CreateAcls",
    "DeleteAcls", "AlterPartitionReassignments", "ListPartitionReassignments", "AlterClientQuotas", "ElectLeaders",
    "AlterUserScramCredentials", "UpdateFeatures", "UnregisterBroker", "CreateDelegationToken",
})  # fmt: skip
#: A broker that closes so many connections of one client does so because of what the client does.
OFTEN: Final = 3
#: A smaller request is below any limit that a broker may be configured with.
LARGE_BYTES: Final = 10_000
#: socket.request.max.bytes, unless it is configured.
MAX_REQUEST_BYTES: Final = 100 << 20

_CONTROLLER = (
    "The broker passes such requests on to the active controller: see whether there is one (kafka-metadata-quorum "
    "describe --status), and whether this broker reaches it. Nothing can be created or changed until then."
)
_SILENT = (
    "See what the broker was doing then (its log, pauses of garbage collection, disks), and whether its answers can "
    "reach the client; request.timeout.ms says how long a client waits. One that a quota throttled before the capture "
    "began waits as well, for as long as it was told then."
)
_REAUTHENTICATE = (
    "The broker ends sessions (connections.max.reauth.ms), and the client does not authenticate again on its "
    "connection: update it to one that knows KIP-368, or let it expect that its connection is closed."
)
_FORGOTTEN = (
    "Something on the way (NAT, firewall, load balancer, proxy) forgets connections that are idle for so long, or the "
    "broker drops them (connections.max.idle.ms) and the client does not learn of it: set connections.max.idle.ms of "
    "the client below that, or let TCP send keep-alives. Clients ask again on a new connection."
)
_STOPPED = (
    "A broker that stops or is killed does so; else its log says why: a request that it cannot read, an authentication "
    "that expired, connections.max.idle.ms, or max.connections.per.ip."
)


class Unanswered(Cause):
    """`unanswered` (error; warning where only nodes of the cluster send such requests, or the broker closed connections
    just then; info where the capture has lost so much that the answer may be among it): a client gave up waiting, or
    the capture has no answer after 5 s. Requests that were waiting on purpose do not count, nor those of a client that
    leaves within a second, which shuts down. A stalled broker, a broken path and a missing controller look the same:
    where they show, this is a symptom of theirs.
    """

    codes = ("unanswered",)
    explains = ("unanswered",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        cluster = self.context.cluster
        for one in observed.of("unanswered"):
            broker, api, longest_ns = one.name("broker"), one.numbers["api"], one.numbers["longest_ns"]
            if one.numbers["ended"]:
                title = f"{api} was not answered before the capture ended"
            else:
                title = f"{api} was not answered: the client gave up after {duration(longest_ns)}"
            # Whatever came from the broker afterwards, it was not dead.
            alive = cluster.last_answer_ns.get(broker, 0) > one.first_ns
            passed_on = alive and api in TO_CONTROLLER
            went = not alive and cluster.went(broker, one.first_ns)
            lossy = self.context.is_lossy(one.count)
            if lossy:
                title += "; or its answer is among what the capture lost"
            if went:
                title += ": the broker closed other connections then, it was stopped or killed"
            if passed_on:
                title += ", though the broker answered other requests: the controller does not"
            yield self.told(
                one,
                title,
                _CONTROLLER if passed_on else _SILENT,
                subject=broker,
                severity="info" if lossy else "warning" if api in CLUSTER_API_NAMES or went else "error",
                numbers={"api": api, "clients": one.named("client"), "longest_ns": longest_ns},
                rank=SYMPTOM,
            )


class ClosedByBroker(Cause):
    """`closed_by_broker` (error where the request is too large or the same is closed on again and again; info between
    nodes; else warning): a broker closes a connection instead of answering, and nothing shows why. A broker that stops
    does so; one that refuses a version, wants SASL or TLS, or has too many connections is told as that.
    """

    codes = ("closed_by_broker",)
    explains = ("closed_by_broker",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers, client, broker = one.numbers, one.name("client"), one.name("broker")
        requests, largest = numbers["requests"], numbers["largest_request_bytes"]
        large = largest >= MAX_REQUEST_BYTES
        # The same request again and again: it is the request that the broker does not take.
        same = numbers["same"] and largest >= LARGE_BYTES
        again = one.count >= OFTEN and (numbers["fresh"] or same)
        size = f" of {largest:,} bytes" if large or (again and same) else ""
        expired = numbers["expired"] == one.count
        name = self.context.cluster.broker_text(broker)
        title = f"{name} closed the connection after {listed(requests)}{size} {times(one.count)}, without an answer"
        remedy = _STOPPED
        if large:
            remedy = "The request is larger than socket.request.max.bytes of the broker takes."
        elif again and same:
            remedy = (
                "It is this request that the broker does not take: larger than its socket.request.max.bytes, or one "
                "that it cannot read; its log says which."
            )
        if expired:
            title += ", once the session of its SASL authentication had expired"
            remedy = _REAUTHENTICATE
        elif numbers["idle_s"]:
            title = (
                f"connections to {name} are reset when they are used again after {numbers['idle_s']} s or more without "
                f"traffic, {times(one.count)} ({listed(requests)} without an answer)"
            )
            remedy = _FORGOTTEN
        return self.told(
            one,
            title,
            remedy,
            severity="error" if large or again else "info" if numbers["cluster"] else "warning",
            numbers={"broker": broker, "requests": requests, "largest_request_bytes": largest},
            rank=SYMPTOM,
            explains={"connection_churn": scope_of("client", [client]), "metadata_storm": scope_of("client", [client])},
        )
