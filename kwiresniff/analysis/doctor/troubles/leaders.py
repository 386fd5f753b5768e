"""Leaders of partitions that moved, how long clients needed to follow, and clients that did not.

Sources: Metadata answers, and the current leader that newer brokers name beside NOT_LEADER_OR_FOLLOWER (KIP-951).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped, is_replica
from kwiresniff.analysis.doctor.leader_table import TOGETHER_NS, Change, LeaderTable, Partition
from kwiresniff.analysis.doctor.leader_waits import LeaderWaits, Wait
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.troubles.quorum import LEADER_CODES
from kwiresniff.analysis.doctor.wording import clock, duration, listed
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS, FETCH, METADATA, PRODUCE
from kwiresniff.base.known_ids import METADATA_TOPIC
from kwiresniff.model import Connection, Exchange

#: Brokers remembered that have closed connections.
MAX_LEFT: Final = 5_000
#: Clients refresh their metadata in a fraction of this.
NOTICED_NS: Final = 1_000_000_000
#: A client that asks the old leader for so long, and so often, does not learn of the new one.
STALE_NS: Final = 5_000_000_000
STALE_ERRORS: Final = 10
#: Requests to move leaders that are remembered, and the time in which a reassignment shows.
MAX_ORDERS: Final = 100
ORDERED_NS: Final = 60_000_000_000
#: A node that closed its connections so shortly before or after its partitions moved went away.
LEFT_NS: Final = 10_000_000_000


class LeaderMoves(Observer):
    """`leader_moved`: partitions have another leader than before, those that left one node in one time together.
    `asked_old_leader`: a client went on asking a broker that does not lead a partition, 10 times and for 5 s.
    `asked_wrong_broker`: a client, or followers, asked brokers that do not lead, where no move was seen.
    `named_leader_denies`: the address that is named as the leader's answers 10 times and for 5 s that it does not lead
    the partitions, and serves nobody meanwhile.

    Numbers of the first: ``partitions``, ``from`` and ``to`` (nodes), ``from_address``, ``to_addresses``, ``needed``
    (pairs of a client and the time until the new leader served it, 0: not known), ``without_ns`` (from when the old
    leader closed its connections to when the move was seen), ``went`` (whether it closed them about then), ``details``
    (sentences). Of the others: ``partition`` and ``asked`` (address), ``errors``, ``apis``, ``concerns``,
    ``followers``; ``address``, ``node``, whether the answers themselves name that node (``is_sure``).
    """

    kinds = (
        "leader_moved", "asked_old_leader", "asked_wrong_broker", "named_leader_denies",
    )  # fmt: skip
    apis = frozenset({
        METADATA, ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS, PRODUCE, FETCH,
    })  # fmt: skip
    judges = LEADER_CODES

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._leaders = LeaderTable(context.budget)
        self._waits = LeaderWaits(context)
        self._left: dict[str, int] = {}
        self._followers = context.case()
        #: By address: answers that it does not lead partitions of which its node is named as the leader.
        self._denials = context.tally()
        self._ordered: list[tuple[str, int, frozenset[str]]] = []

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key in (PRODUCE, FETCH):
            if self._waits.unserved and not exchange.errors and exchange.response is not None:
                self._waits.end(exchange)
                self._denials.forget(exchange.connection.broker)
            return
        if exchange.api_key != METADATA:
            self._order(exchange)
            return
        body = response_body(exchange)
        if body:
            cluster = self.context.cluster.of(exchange.connection.broker)
            self._leaders.learn(cluster, body, self.context.topic_of, *place_of(exchange))

    def _order(self, exchange: Exchange) -> None:
        """Remembers who moves partitions to other brokers, or has leaders elected."""
        request = request_body(exchange)
        if not request or exchange.errors:
            return
        topics = [self.context.topic_of(one) for one in request.get("topics") or request.get("topic_partitions") or ()]
        names = frozenset(clipped(topic) for topic in topics[:MAX_ORDERS])
        if self.context.has_room(self._ordered, MAX_ORDERS, *names, entries=4):
            ns = request_place(exchange)[1]
            self._ordered.append((f"{client_of(exchange)} asked for it at {clock(ns)} ({exchange.api})", ns, names))

    def failure(self, exchange: Exchange) -> None:
        cluster = self.context.cluster.of(exchange.connection.broker)
        client = client_of(exchange)
        packet, ns = place_of(exchange)
        follower = is_replica(exchange)
        for place in error_places(exchange, self.context, LEADER_CODES):
            if place.topic in ("", METADATA_TOPIC):
                continue
            partition = cluster, place.topic, place.partition
            if follower:
                self._followers.add(packet, ns)
                self._followers.note("clients", [client])
                self._followers.note("errors", [place.name])
            else:
                self._waits.begin(client, partition, exchange, self._leaders.leader(partition))
            current = place.member.get("current_leader")
            if isinstance(current, dict):
                self._leaders.learn_leader(partition, current, packet, ns)
            if not follower:
                self._deny(exchange, partition, current)

    def _deny(self, exchange: Exchange, partition: Partition, current: object) -> None:
        """Counts an answer of a broker that it does not lead a partition, where its address is the leader's."""
        broker = exchange.connection.broker
        node = self.context.cluster.node_at(broker)
        if node is None or self._leaders.leader(partition) != node:
            return
        case, place = self._denials.case(broker), place_of(exchange)
        if case.last_ns != place[1]:  # once for all partitions of an answer
            case.add(*place, isinstance(current, dict) and current.get("leader_id") == node)
        case.note("clients", [client_of(exchange)])
        case.note("partitions", [f"{partition[1]}-{partition[2]}"])
        case.note("topics", [partition[1]])

    def connection(self, connection: Connection) -> None:
        if connection.closed_by == "broker" and len(self._left) < MAX_LEFT:
            self._left[connection.broker] = connection.closed_ns

    def observations(self) -> Iterator[Observation]:
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
            yield self._moved(changes, waits)
        yield from self._asked_wrong([one for number, one in enumerate(self._waits.waits) if number not in reported])
        yield from self._asked_old()
        yield from self._named_leaders_deny()
        if self._followers.count:
            errors, clients = self._followers.noted("errors"), self._followers.noted("clients")
            followed = {"errors": errors, "apis": [], "concerns": clients, "followers": True}
            yield observation_of("asked_wrong_broker", self._followers, [], followed)

    def _moved(self, changes: list[Change], waits: list[tuple[str, Wait]]) -> Observation:
        cluster_id, before = changes[0].partition[0], changes[0].before
        cluster, case = self.context.cluster, self.context.case()
        for change in changes:
            case.add(change.packet, change.ns)
        old = cluster.address(cluster_id, before)
        after = list(dict.fromkeys(change.after for change in changes))
        new = [address for node in after if (address := cluster.address(cluster_id, node))]
        needed = self._needed(waits, case, all(cluster.last_answer_ns.get(address) for address in new))
        case.note("clients", needed)
        case.note("brokers", [*new, old] if old else new)
        case.note("topics", sorted({change.partition[1] for change in changes}))
        without_ns = changes[0].ns - self._left.get(old, changes[0].ns)
        numbers = {
            "partitions": _partitions(changes),
            "from": before,
            "from_address": old,
            "to": after,
            "to_addresses": new,
            "needed": [list(one) for one in needed.items()],
            "without_ns": without_ns if NOTICED_NS < without_ns <= LEFT_NS else 0,
            "went": self._went(old, changes),
            "details": self._details(changes, after, old),
        }
        late = [ns for ns in needed.values() if ns > NOTICED_NS]
        about = [f"node:{cluster_id}/{node}" for node in (before, *after)]
        harm = Harm(requests_late=len(late), late_ns=sum(late)) if late else HARMLESS
        return observation_of("leader_moved", case, about, numbers, harm)

    def _went(self, old: str, changes: list[Change]) -> bool:
        """Whether the old leader closed its connections when its partitions moved."""
        return abs(self._left.get(old, 0) - changes[0].ns) <= LEFT_NS

    def _needed(self, waits: list[tuple[str, Wait]], case: Case, seen: bool) -> dict[str, int]:
        """How long each client needed to follow, where the new leader was ``seen``; adds its errors to the case."""
        needed: dict[str, int] = {}
        for client, wait in waits:
            case.merge(wait.case)
            longest = wait.longest_ns
            if wait.recovered_ns < 0 and seen:
                longest = self.context.end_ns - wait.case.first_ns
            needed[client] = max(needed.get(client, 0), longest)
            case.last_ns = max(case.last_ns, wait.recovered_ns)
        return needed

    def _details(self, changes: list[Change], after: list[int], old: str) -> list[str]:
        """Where partitions went, whether the old leader went away, and who asked for it."""
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
        return details

    def _asked_wrong(self, waits: list[tuple[str, Partition, Wait]]) -> Iterator[Observation]:
        by_client: dict[str, Case] = {}
        for client, partition, wait in waits:
            case = by_client.setdefault(client, self.context.case())
            case.merge(wait.case)
            case.note("clients", [client])
            case.note("brokers", [wait.broker])
            case.note("topics", [partition[1]])
            case.note("concerns", [f"{partition[1]}-{partition[2]}"])
        for client, case in by_client.items():
            numbers = {kind: case.noted(kind) for kind in ("errors", "apis", "concerns")}
            yield observation_of("asked_wrong_broker", case, [f"client:{client}"], {**numbers, "followers": False})

    def _asked_old(self) -> Iterator[Observation]:
        cluster = self.context.cluster
        for client, (cluster_id, topic, number), wait in self._waits.waits:
            case = wait.case
            if wait.stale_errors < STALE_ERRORS or case.last_ns - case.first_ns < STALE_NS:
                continue
            leader = self._leaders.leader((cluster_id, topic, number))
            led = "" if leader is None else f", which {cluster.node_text(cluster_id, leader)} leads"
            text = (
                f"goes on asking {cluster.broker_text(wait.broker)} for {topic}-{number}{led}: {case.count} times in "
                f"{duration(case.last_ns - case.first_ns)}"
            )
            numbers = {"partition": f"{topic}-{number}", "asked": wait.broker, "errors": wait.stale_errors}
            about = [f"client:{client}", f"broker:{wait.broker}", f"topic:{topic}"]
            yield observation_of("asked_old_leader", case, about, numbers, text=text)

    def _named_leaders_deny(self) -> Iterator[Observation]:
        for broker, _, case in self._denials:
            if case.count >= STALE_ERRORS and case.last_ns - case.first_ns >= STALE_NS:
                node = self.context.cluster.node_at(broker)
                numbers = {"address": broker, "node": node, "is_sure": case.total > 0}
                harm = Harm(requests_failed=case.count)
                yield observation_of("named_leader_denies", case, [f"broker:{broker}"], numbers, harm)


def _partitions(changes: list[Change]) -> list[str]:
    return list(dict.fromkeys(f"{change.partition[1]}-{change.partition[2]}" for change in changes))
