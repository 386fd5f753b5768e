"""Leaders of partitions: which moved, from which node to which, how long clients needed to follow, and who did not.

Sources: Metadata answers, and the current leader that newer brokers name beside NOT_LEADER_OR_FOLLOWER (KIP-951).
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_meanings import MEANINGS
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped, is_replica
from kwiresniff.analysis.doctor.leader_table import TOGETHER_NS, Change, LeaderTable, Partition
from kwiresniff.analysis.doctor.leader_waits import LeaderWaits, Wait
from kwiresniff.analysis.doctor.quorum import LEADER_CODES
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.wording import clock, duration, listed, span
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS, FETCH, METADATA, PRODUCE
from kwiresniff.base.known_ids import METADATA_TOPIC
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding, scope_of

#: Brokers that have ended their connections.
MAX_LEFT = 5_000
#: Clients refresh their metadata within a fraction of this; who needs longer has lost time that people notice.
NOTICED_NS = 1_000_000_000
#: A client that goes on asking the old leader for so long, and so often, does not learn of the new one.
STALE_NS = 5_000_000_000
STALE_ERRORS = 10
#: Those who ask for leaders to move that are remembered, and how long a reassignment may take until it shows.
MAX_ORDERS = 100
ORDERED_NS = 60_000_000_000
#: A node whose connections all end so shortly before or after its partitions moved went away.
LEFT_NS = 10_000_000_000


class LeaderRule(Rule):
    """Leader changes, and clients with stale metadata.

    `leader_change` (warning when clients needed more than a second, or learned of it as late, else info): leaders of
    partitions moved: which, from, to, how long each client needed, and who asked for it (AlterPartitionReassignments,
    ElectLeaders).

    `stale_metadata` (warning): a client goes on asking a broker that does not lead the partition: 10 times and for 5 s.

    `not_leader_or_follower` (warning, info up to 3 and for followers): asked a broker that does not lead, without a
    change that was seen.
    """

    codes = ("leader_change", "stale_metadata", "not_leader_or_follower")
    apis = frozenset({METADATA, ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS})
    judges = LEADER_CODES

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._leaders = LeaderTable(context.budget)
        self._waits = LeaderWaits(context)
        self._left: dict[str, int] = {}
        self._followers = context.case()
        self._ordered: list[tuple[str, int, frozenset[str]]] = []

    def exchange(self, exchange: Exchange) -> None:
        """Learns leaders from a Metadata response, and who asks for others."""
        if exchange.api_key != METADATA:
            self._order(exchange)
            return
        body = exchange.response.body if exchange.response is not None else None
        if body is not None:
            cluster = self.context.cluster.of(exchange.connection.broker)
            self._leaders.learn(cluster, body, self.context.topic_of, *place_of(exchange))

    def _order(self, exchange: Exchange) -> None:
        """Somebody moves partitions to other brokers, or has their leaders elected."""
        request = exchange.request.body if exchange.request is not None else None
        if request is None or exchange.errors or len(self._ordered) >= MAX_ORDERS:
            return
        topics = [self.context.topic_of(one) for one in request.get("topics") or request.get("topic_partitions") or ()]
        names = frozenset(clipped(topic) for topic in topics[:MAX_ORDERS])
        if self.context.budget.admit(4 * ENTRY_BYTES + text_bytes(*names)):
            ns = exchange.request.first_ns if exchange.request is not None else 0
            self._ordered.append((f"{client_of(exchange)} asked for it at {clock(ns)} ({exchange.api})", ns, names))

    def _watch(self, exchange: Exchange) -> None:
        """Ends the wait of a client by a Produce or Fetch that succeeds."""
        if exchange.api_key in (PRODUCE, FETCH) and not exchange.errors and exchange.response is not None:
            self._waits.end(exchange)
            if not self._waits.unserved:
                self.context.watching.remove(self._watch)

    def failure(self, exchange: Exchange) -> None:
        """Notes a client that asks a broker which does not lead."""
        if not any(name in LEADER_CODES for _, _, name, _ in exchange.errors):
            return
        cluster = self.context.cluster.of(exchange.connection.broker)
        client = client_of(exchange)
        packet, ns = place_of(exchange)
        follower = is_replica(exchange)
        for place in error_places(exchange, self.context):
            if place.name not in LEADER_CODES or not place.topic or place.topic == METADATA_TOPIC:
                continue
            partition = cluster, place.topic, place.partition
            if follower:
                self._followers.add(packet, ns)
                self._followers.note("clients", [client])
                self._followers.note("errors", [place.name])
            else:
                waits = self._waits.begin(client, partition, exchange, self._leaders.leader(partition))
                if waits and self._watch not in self.context.watching:
                    self.context.watching.append(self._watch)
            current = place.member.get("current_leader")
            if isinstance(current, dict):
                self._leaders.learn_leader(partition, current, packet, ns)

    def connection(self, connection: Connection) -> None:
        """Notes a connection ended by its broker, which goes away or drops idle ones."""
        if connection.closed_by == "broker" and len(self._left) < MAX_LEFT:
            self._left[connection.broker] = connection.closed_ns

    def findings(self) -> Iterator[Finding]:
        """Changes that belong together are one finding, with the clients that followed them."""
        reported: set[int] = set()
        for changes in self._leaders.incidents():
            moved = {change.partition for change in changes}
            since, until = changes[0].ns - TOGETHER_NS, changes[-1].ns + TOGETHER_NS
            waits: list[tuple[str, Wait]] = []
            for number, (client, partition, wait) in enumerate(self._waits.waits):
                before = 0 <= wait.recovered_ns < changes[0].ns  # it had followed another change
                if partition in moved and since <= wait.case.last_ns and wait.case.first_ns <= until and not before:
                    waits.append((client, wait))
                    reported.add(number)
            yield self._finding(changes, waits)
        yield from self._lost([one for number, one in enumerate(self._waits.waits) if number not in reported])
        yield from self._stale()
        yield from self._following()

    def _finding(self, changes: list[Change], waits: list[tuple[str, Wait]]) -> Finding:
        cluster_id, before = changes[0].partition[0], changes[0].before
        cluster = self.context.cluster
        case = self.context.case()
        for change in changes:
            case.add(change.packet, change.ns)
        old = cluster.address(cluster_id, before)
        after = list(dict.fromkeys(change.after for change in changes))
        new = [address for node in after if (address := cluster.address(cluster_id, node))]
        needed = self._needed(waits, case, all(cluster.last_answer_ns.get(address) for address in new))
        partitions = _partitions(changes)
        longest = max(needed.values(), default=0)
        followed = f"; clients needed {duration(longest)}" if longest else ""
        without = changes[0].ns - self._left.get(old, changes[0].ns)
        if NOTICED_NS < without <= LEFT_NS and without > longest:
            followed = f"; clients learned of it {duration(without)} after the old leader had gone"
            longest = without
        to_text = listed([cluster.node_text(cluster_id, node) for node in after])
        topics = sorted({change.partition[1] for change in changes})
        brokers = [*new, old] if old else new
        # Until a follower that is gone has left the ISR, whatever waits for replicas waits for it, at every broker.
        went = self._went(old, changes)
        waiting = cluster.addresses(cluster_id) if went else brokers
        noticed = longest > NOTICED_NS
        return found(
            "leader_change",
            "warning" if noticed else "info",
            listed(partitions),
            f"leader moved from {cluster.node_text(cluster_id, before)} to {to_text}"
            f"{span(case.first_ns, case.last_ns)}{followed}",
            _REMEDY,
            case,
            {
                "partitions": partitions[:100],
                "from": before,
                "from_address": old or None,
                "to": after,
                "to_addresses": new,
                "longest_ns": longest,
                "clients": list(needed)[:100],
            },
            details=self._details(changes, after, old, needed),
            clients=list(needed),
            brokers=brokers,
            topics=topics,
            scope=scope_of("left", [old] if old else []),
            explains={
                "slow": as_brokers(*waiting) | as_clients(*needed),
                **dict.fromkeys(("replica_wait", "slow_broker"), as_brokers(*(waiting if noticed else ()))),
                "under_replicated": scope_of("left", [old] if old and noticed else []),
                "unanswered": as_brokers(*waiting),
                "closed_by_broker": as_brokers(*brokers),
                "broker_stalled": as_brokers(*(waiting if went else new)),
                "broker_unreachable": as_brokers(*([old] if old else [])),
                "leader_not_available": scope_of("topic", topics),
                **dict.fromkeys(("metadata_storm", "own_queue"), as_clients(*needed)),
                "request_timed_out": as_brokers(*waiting),
                "not_coordinator": as_brokers(*brokers),
            },
            rank=INCIDENT,
        )

    def _went(self, old: str, changes: list[Change]) -> bool:
        """Whether the old leader ended its connections when its partitions moved."""
        return abs(self._left.get(old, 0) - changes[0].ns) <= LEFT_NS

    def _needed(self, waits: list[tuple[str, Wait]], case: Case, seen: bool) -> dict[str, int]:
        """How long each client needed to follow; its errors become part of the case.

        Without packets of the new leader, which then was not ``seen``, nothing shows that it did not.
        """
        needed: dict[str, int] = {}
        for client, wait in waits:
            case.merge(wait.case)
            longest = wait.longest_ns
            if wait.recovered_ns < 0 and seen:
                longest = self.context.end_ns - wait.case.first_ns
            needed[client] = max(needed.get(client, 0), longest)
            case.last_ns = max(case.last_ns, wait.recovered_ns)
        return needed

    def _details(self, changes: list[Change], after: list[int], old: str, needed: dict[str, int]) -> list[str]:
        """Which partitions went where, whether the old leader went away, how long clients needed."""
        cluster, cluster_id, before = self.context.cluster, changes[0].partition[0], changes[0].before
        details: list[str] = []
        if len(after) > 1:
            for node in after:
                moved = _partitions([change for change in changes if change.after == node])
                details.append(f"{listed(moved)} to {cluster.node_text(cluster_id, node)}")
        if self._went(old, changes):
            gone = cluster.node_text(cluster_id, before)
            details.append(f"{gone} closed its connections: it was stopped, killed or restarted")
        details += [
            f"the coordinator of {what} moved as well, to {cluster.broker_text(now)} at {clock(ns)}"
            for what, from_, now, ns in self.context.moves
            if from_ == old and abs(ns - changes[-1].ns) <= LEFT_NS
        ][:3]
        topics = {change.partition[1] for change in changes}
        details += [
            text
            for text, ns, names in self._ordered
            if 0 <= changes[-1].ns - ns <= ORDERED_NS and (not names or not topics.isdisjoint(names))
        ][:3]
        waited = [(client, ns) for client, ns in needed.items() if ns]
        return details + [
            f"{client} needed {duration(ns)} until it was served by the new leader" for client, ns in waited[:10]
        ]

    def _lost(self, waits: list[tuple[str, Partition, Wait]]) -> Iterator[Finding]:
        """Clients that asked brokers that do not lead, where no change was seen."""
        by_client: dict[str, Case] = {}
        for client, partition, wait in waits:
            case = by_client.setdefault(client, self.context.case())
            case.merge(wait.case)
            case.note("clients", [client])
            case.note("brokers", [wait.broker])
            case.note("topics", [partition[1]])
            case.note("concerns", [f"{partition[1]}-{partition[2]}"])
        for client, case in by_client.items():
            errors = case.noted("errors")
            yield found(
                "not_leader_or_follower",
                "info" if case.count <= FEW else "warning",
                client,
                f"{listed(errors)}: asks brokers that do not lead the partition",
                MEANINGS["NOT_LEADER_OR_FOLLOWER"].remedy,
                case,
                {"error": errors[0] if errors else "", "concerns": [*case.noted("apis"), *case.noted("concerns")]},
            )

    def _following(self) -> Iterator[Finding]:
        """Followers learn of a new leader by these errors; that is how replication works."""
        if self._followers.count:
            yield found(
                "not_leader_or_follower",
                "info",
                "replication",
                f"followers look for the leaders of their partitions ({listed(self._followers.noted('errors'))})",
                "Normal whenever leaders move. Lasting: see whether the ISR of their partitions shrinks.",
                self._followers,
                {"error": self._followers.noted("errors")[0], "concerns": self._followers.noted("clients")},
            )

    def _stale(self) -> Iterator[Finding]:
        for client, (cluster_id, topic, number), wait in self._waits.waits:
            case = wait.case
            if wait.stale_errors < STALE_ERRORS or case.last_ns - case.first_ns < STALE_NS:
                continue
            leader = self._leaders.leader((cluster_id, topic, number))
            led = "" if leader is None else f", which {self.context.cluster.node_text(cluster_id, leader)} leads"
            yield found(
                "stale_metadata",
                "warning",
                client,
                f"goes on asking {self.context.cluster.broker_text(wait.broker)} for {topic}-{number}{led}: "
                f"{case.count} times in {duration(case.last_ns - case.first_ns)}",
                "Its metadata is stale: see whether its Metadata requests are answered and by whom, "
                "metadata.max.age.ms, and whether it refreshes on NOT_LEADER_OR_FOLLOWER.",
                case,
                {"partition": f"{topic}-{number}", "asked": wait.broker, "errors": wait.stale_errors},
                clients=[client],
                brokers=[wait.broker],
                topics=[topic],
                explains={"not_leader_or_follower": as_clients(client)},
                rank=INCIDENT,
            )


#: How often a client may be sent away before it is more than what happens when a leader moves.
FEW = 3


_REMEDY = (
    "Planned (a restart, a reassignment, a preferred election): nothing to do. Else look why the old leader left: its "
    "log, its session with the controller. Producers wait as long as the ISR has to shrink (replica.lag.time.max.ms) "
    "when a follower went away without a controlled shutdown."
)


def _partitions(changes: list[Change]) -> list[str]:
    """The partitions that moved, each once."""
    return list(dict.fromkeys(f"{change.partition[1]}-{change.partition[2]}" for change in changes))
