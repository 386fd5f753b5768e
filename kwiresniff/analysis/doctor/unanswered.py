"""Requests that were not answered, and connections that a broker closed instead."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.client_traffic import CLUSTER_APIS
from kwiresniff.analysis.doctor.cluster import NEW_RELEASE, taken_since
from kwiresniff.analysis.doctor.endings import Ending, Reason, Unanswered, release_of
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, Case, Episodes, client_text, clipped
from kwiresniff.analysis.doctor.rule import INCIDENT, SYMPTOM, Context, Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.base.api_keys import API_VERSIONS, SASL_AUTHENTICATE
from kwiresniff.base.field_values import field_number
from kwiresniff.errors import SchemaError
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding
from kwiresniff.schema import API_NAMES, versions_in

CLUSTER_API_NAMES = frozenset(API_NAMES[key] for key in CLUSTER_APIS if key in API_NAMES)

#: A request that was not answered so short a time before the end may just not have been answered yet.
LATE_NS = 2_000_000_000
#: A client that leaves sooner was not waiting for the answer, it was closing.
GAVE_UP_NS = 1_000_000_000
#: A broker that closes so many connections of one client does so because of what the client does.
OFTEN = 3
#: Requests whose refusal is remembered by API and version.
MAX_ASKED = 2_000
#: A smaller request is below any limit that a broker may be configured with.
LARGE_BYTES = 10_000
#: socket.request.max.bytes, unless it is configured.
MAX_REQUEST_BYTES = 100 << 20


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
    "reach the client; request.timeout.ms says how long a client waits."
)
_REAUTHENTICATE = (
    "The broker ends sessions (connections.max.reauth.ms), and the client does not authenticate again on its "
    "connection: update it to one that knows KIP-368, or let it expect that its connection is closed."
)
_NOT_ENABLED = (
    "Enable it at the brokers (kafka-features upgrade, and group.coordinator.rebalance.protocols where that is set), "
    "or let the client use what is enabled (group.protocol=classic)."
)


def client_in(ending: Ending) -> str:
    """The client of a connection that has ended."""
    return client_text(ending.connection.client_id, ending.connection.client)


def is_waiting(ending: Ending, request: Unanswered) -> bool:
    """Whether a broker that does its work would not have answered yet: a long poll, a rebalance under way."""
    over_ns = ending.first.last_ns + ending.waited_ns
    return over_ns - request.last_ns <= request.patience_ns


class UnansweredRule(Rule):
    """Requests whose client gave up, or which the capture has no answer to although there was time for one."""

    codes = ("unanswered",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._episodes = Episodes(context.budget)

    def ending(self, ending: Ending) -> None:
        """Counts unanswered requests that nothing else explains and that the broker did not hold back on purpose."""
        if ending.reason not in (Reason.CLOSED_BY_CLIENT, Reason.CAPTURE_ENDED, Reason.NOT_AUTHENTICATED):
            return
        over_ns = ending.first.last_ns + ending.waited_ns
        broker, closed = ending.connection.broker, ending.reason is not Reason.CAPTURE_ENDED
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
            severity = "info" if calm else "warning" if api in CLUSTER_API_NAMES else "error"
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


class ClosedByBrokerRule(Rule):
    """Brokers that close a connection instead of answering."""

    codes = ("closed_by_broker",)
    apis = frozenset({SASL_AUTHENTICATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._expiries: dict[int, int] = {}
        self._expired = False

    def exchange(self, exchange: Exchange) -> None:
        """A session that ends some time after it was authenticated (KIP-368)."""
        response, number = exchange.response, exchange.connection.id
        body = response.body if response is not None else None
        lifetime_ms = field_number((body or {}).get("session_lifetime_ms"))
        if response is not None and lifetime_ms and (number in self._expiries or len(self._expiries) < MAX_ASKED):
            self._expiries[number] = response.first_ns + lifetime_ms * 1_000_000

    def connection(self, connection: Connection) -> None:
        """One that is over needs no session any more; ``ending`` is told of it afterwards."""
        expiry_ns = self._expiries.pop(connection.id, 0)
        self._expired = 0 < expiry_ns <= connection.closed_ns

    def ending(self, ending: Ending) -> None:
        """One that was closed with requests under way, for no reason that another rule knows."""
        if ending.reason is not Reason.CLOSED_BY_BROKER or is_waiting(ending, ending.first):
            return
        first, connection = ending.first, ending.connection
        case = self._cases.case(client_in(ending), connection.broker)
        case.add(first.packet, first.first_ns, first.size_bytes, until_ns=connection.closed_ns)
        case.note("requests", [f"{first.api} v{first.version}"])
        if self._expired:
            case.note("expired", ["yes"])
        case.note("sizes", [f"{first.size_bytes:,}"])
        case.note("fresh", ["yes" if connection.exchanges.keys() <= {"unanswered"} else "no"])
        if first.api in CLUSTER_API_NAMES:
            case.note("cluster", ["yes"])

    def findings(self) -> Iterator[Finding]:
        """By client and broker."""
        for client, broker, case in self._cases:
            requests = case.noted("requests")
            large = case.most >= MAX_REQUEST_BYTES
            # The same request again and again: it is the request that the broker does not take.
            same = len(requests) == 1 and len(case.counts("sizes")) == 1 and case.most >= LARGE_BYTES
            again = case.count >= OFTEN and (case.noted("fresh") == ["yes"] or same)
            size = f" of {case.most:,} bytes" if large or (again and same) else ""
            expired = case.counts("expired").get("yes", 0) == case.count
            why = ", once the session of its SASL authentication had expired" if expired else ""
            remedy = (
                "The request is larger than socket.request.max.bytes of the broker takes."
                if large
                else "It is this request that the broker does not take: larger than its socket.request.max.bytes, or "
                "one that it cannot read; its log says which."
                if again and same
                else "A broker that stops or is killed does so; else its log says why: a request that it cannot read, "
                "an authentication that expired, connections.max.idle.ms, or max.connections.per.ip."
            )
            yield found(
                "closed_by_broker",
                "error" if large or again else "info" if case.noted("cluster") else "warning",
                client,
                f"{self.context.cluster.broker_text(broker)} closed the connection after {listed(requests)}{size} "
                f"{times(case.count)}, without an answer{why}",
                _REAUTHENTICATE if expired else remedy,
                case,
                {"broker": broker, "requests": requests, "largest_request_bytes": case.most},
                clients=[client],
                brokers=[broker],
                explains={"connection_churn": as_clients(client), "metadata_storm": as_clients(client)},
                rank=SYMPTOM,
            )


class SaslWantedRule(Rule):
    """Clients without SASL on a listener that wants it."""

    codes = ("sasl_wanted",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def ending(self, ending: Ending) -> None:
        """Closed after the first request that is not ApiVersions."""
        if ending.reason is not Reason.SASL_WANTED:
            return
        case = self._cases.case(client_in(ending), ending.connection.broker)
        case.add(ending.first.packet, ending.first.first_ns, until_ns=ending.connection.closed_ns)
        case.note("requests", [f"{ending.first.api} v{ending.first.version}"])

    def findings(self) -> Iterator[Finding]:
        """By client and broker; what another client got answered there without SASL speaks against it."""
        for client, broker, case in self._cases:
            if broker in self.context.cluster.unauthenticated:
                continue
            requests = listed(case.noted("requests"))
            yield found(
                "sasl_wanted",
                "error",
                client,
                f"does not authenticate, and {self.context.cluster.broker_text(broker)} wants SASL: it answers "
                f"ApiVersions and closes the connection after {requests}, {times(case.count)}",
                "Set security.protocol (SASL_PLAINTEXT or SASL_SSL), sasl.mechanism and credentials of the client as "
                "the listener has them, or use the port of a listener without SASL.",
                case,
                {"broker": broker, "requests": case.noted("requests")},
                clients=[client],
                brokers=[broker],
                explains={
                    "unanswered": as_clients(client),
                    "connection_churn": as_brokers(broker),
                    "metadata_storm": as_clients(client),
                    "closed_by_broker": as_clients(client),
                },
                rank=INCIDENT,
            )


class VersionRule(Rule):
    """Versions of requests that a broker refuses, by closing the connection or by UNSUPPORTED_VERSION."""

    codes = ("unsupported_version",)
    judges = frozenset({"UNSUPPORTED_VERSION"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._asked: dict[str, tuple[int, str, int]] = {}

    def ending(self, ending: Ending) -> None:
        """Closed on a request of a version that the broker does not offer."""
        if ending.reason is Reason.VERSION_REFUSED:
            first, connection = ending.first, ending.connection
            case = self._case(client_in(ending), connection.broker, first.api_key, first.api, first.version)
            case.add(first.packet, first.first_ns, until_ns=connection.closed_ns)
            case.note("how", ["closes the connection"])
            software = connection.client_software
            if software:
                case.note("software", [f"{software.get('name')} {software.get('version')}".strip()])

    def failure(self, exchange: Exchange) -> None:
        """Answered with the error code."""
        if exchange.api_key == API_VERSIONS or exchange.request is None:
            return
        if any(name == "UNSUPPORTED_VERSION" for _, _, name, _ in exchange.errors):
            client = client_text(exchange.client_id, exchange.connection.client)
            broker = exchange.connection.broker
            case = self._case(client, broker, exchange.api_key, exchange.api, exchange.api_version)
            case.add(exchange.request.first_packet, exchange.request.first_ns)
            case.note("how", ["answers UNSUPPORTED_VERSION"])
            case.note(
                "messages", {place.message: None for place in error_places(exchange, self.context) if place.message}
            )

    def _case(self, client: str, broker: str, api_key: int, api: str, version: int) -> Case:
        what = f"{broker}\0{api} v{version}"
        if len(self._asked) < MAX_ASKED:
            self._asked[what] = api_key, api, version
        return self._cases.case(client, what)

    def findings(self) -> Iterator[Finding]:
        """By client, broker and version."""
        for client, what, case in self._cases:
            broker, _, request = what.partition("\0")
            api_key, api, version = self._asked.get(what, (-1, request, -1))
            offer = self.context.cluster.offer(broker)
            release = release_of(offer)
            span_ = _versions(release, api_key) or offer.get(api_key)
            takes = ""
            refuses = "which it does not take"
            if not offer and (span_ := taken_since(NEW_RELEASE, api_key)) is not None:
                refuses = "which brokers do not take any more"
                takes = f"; from Kafka {NEW_RELEASE} on they take v{span_[0]} and newer"
            elif span_ is not None:
                who = f"Kafka {release}" if release else "the broker"
                takes = f"; {who} takes v{span_[0]} to v{span_[1]}"
            software = f" ({listed(case.noted('software'))})" if case.noted("software") else ""
            remedy = (
                f"Update the client{software}, or let it ask for ApiVersions (no fixed api_version or "
                "broker.version.fallback). All that would break: kwiresniff audit --target "
                f"{release or NEW_RELEASE}."
            )
            if span_ is not None and span_[0] <= version <= span_[1]:
                refuses, takes = "which it offers but has not enabled", ""
                remedy = _NOT_ENABLED
            how = listed(case.noted("how")) or "refuses it"
            messages = [clipped(one, MAX_MESSAGE_CHARS) for one in case.noted("messages")]
            yield found(
                "unsupported_version",
                "error",
                client,
                f"asks {self.context.cluster.broker_text(broker)} for {request}, {refuses}: it {how}{takes}",
                remedy,
                case,
                {
                    "broker": broker,
                    "api": api,
                    "api_version": version,
                    "takes": list(span_) if span_ is not None else None,
                    "release": release or None,
                    **({"error_messages": messages} if messages else {}),
                },
                details=[f"the broker says: {message}" for message in messages[:3]],
                clients=[client],
                brokers=[broker],
                explains={
                    "unanswered": as_clients(client),
                    "closed_by_broker": as_clients(client),
                    "old_message_format": as_clients(client),
                    "connection_churn": as_clients(client),
                },
                rank=INCIDENT,
            )


def _versions(release: str, api_key: int) -> tuple[int, int] | None:
    try:
        return versions_in(release).get(api_key) if release else None
    except SchemaError:
        return None
