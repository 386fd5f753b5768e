"""Logs that were truncated by an unclean leader election: records that had been acknowledged or read are gone.

A new leader that lacks records gives their offsets out again. Consumers learn of it by the end of the old leader's
epoch (OffsetForLeaderEpoch, KIP-320; the diverging epoch of a Fetch answer, KIP-595), producers do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from kwiresniff.analysis.body_entities import acks_of
from kwiresniff.analysis.doctor.bodies import response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped, is_replica
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import clock, duration, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import message_parts, refused_parts
from kwiresniff.base.api_keys import FETCH, OFFSET_FOR_LEADER_EPOCH, PRODUCE
from kwiresniff.base.time_units import SECOND_NS
from kwiresniff.digest import TopicDigest
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: Partitions, positions of consumers and losses that are remembered.
MAX_PARTITIONS = 5_000
MAX_LOSSES = 100
#: Idempotent producers of a partition with their last sequences, as many of each as brokers remember.
MAX_PRODUCERS = 20_000
MAX_SEQUENCES = 5
#: Bytes of producer id and epoch before the sequence in ``PartitionDigest.producer``.
PRODUCER_BYTES: Final = 10
#: Partitions with details.
MAX_LISTED = 6
_Partition = tuple[str, str, int]


#: What producers and consumers are answered once their records are lost.
_OF_LOSS: Final = ("offset_out_of_range", "out_of_order_sequence_number", "unknown_producer_id")
_REMEDY: Final = (
    "A replica that was not in sync became leader: unclean.leader.election.enable is on, somebody forced the election, "
    "or the broker came back without its disk; the controller's log says which. If the topic was deleted and made "
    "anew, that is all there is to it. What must not be lost: acks=all, min.insync.replicas of 2 or more, unclean "
    "elections off. Consumers that had read the lost records and those that had not differ from now on."
)


_ACKS_1: Final = (
    "With acks=1 the leader acknowledges what nobody else has yet, and any failover may lose that: write what must not "
    "be lost with acks=all and min.insync.replicas of 2 or more. Whether the election was an unclean one "
    "(unclean.leader.election.enable), the controller's log says."
)
_CUT_OFF: Final = (
    "The old leader did not learn that it leads no more: look at its connection to the controllers (their listener, "
    "its network, its log). "
)


class _End:
    """The end of a log, with the broker that gave it, and the client that it was given to.

    ``ns`` is when it was given last; before ``safe`` the records had been acknowledged by all replicas in sync, or
    copied by another leader.
    """

    __slots__ = ("broker", "client", "ns", "offset", "safe")

    def __init__(self, offset: int, broker: str, client: str, ns: int = 0, safe: int = 0) -> None:
        self.offset = offset
        self.broker = broker
        self.client = client
        self.ns = ns
        self.safe = safe


class _Loss(NamedTuple):
    """A log that went back; ``read``: a consumer was told the end, else a producer."""

    before: _End
    after: _End
    packet: int
    ns: int
    read: bool


class Truncations(Observer):
    """`log_went_back`: a log gives out offsets again that another leader had given out, or that a consumer had read.

    By the brokers that led before and lead now. Numbers: ``partitions``, ``lost_records`` (at least), ``from_address``,
    ``to_address``, ``offsets`` (pairs for each partition: where the log goes on, and its former end), ``details``
    (sentences).
    """

    kinds: ClassVar[tuple[str, ...]] = ("log_went_back",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH, OFFSET_FOR_LEADER_EPOCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._written: dict[_Partition, _End] = {}
        self._read: dict[tuple[str, str, str, int], _End] = {}
        self._losses: dict[_Partition, _Loss] = {}
        #: Sequences that idempotent producers have sent and brokers did not refuse.
        self._sequences: dict[tuple[_Partition, bytes], list[bytes]] = {}

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key == PRODUCE:
            self._produce(exchange)
            return
        response = exchange.response
        if response is None:
            return
        if exchange.api_key == OFFSET_FOR_LEADER_EPOCH:
            self._epochs(exchange)
            return
        if response.digest is None:
            self._diverging(exchange)
        self._fetch(exchange)

    def _produce(self, exchange: Exchange) -> None:
        broker, client = exchange.connection.broker, client_of(exchange)
        cluster = self.context.cluster.of(broker)
        answered = message_parts(exchange.response)
        again = self._sent_again(exchange, cluster, answered)
        if exchange.response is None:
            return
        ns, is_alone = exchange.response.first_ns, acks_of(exchange.request) == 1
        for topic in answered:
            name = clipped(topic.name)
            for part in topic.partitions:
                offset = part.offset
                if offset < 0:
                    continue
                key = cluster, name, part.index
                before = self._written.get(key)
                if before is None:
                    if self.context.has_room(self._written, MAX_PARTITIONS, name, client, entries=3):
                        self._written[key] = _End(offset + 1, broker, client, ns, 0 if is_alone else offset + 1)
                elif offset >= before.offset:
                    if not is_alone:
                        before.safe = offset + 1
                    elif broker != before.broker:
                        before.safe = offset
                    before.offset, before.broker, before.client, before.ns = offset + 1, broker, client, ns
                elif broker != before.broker and key not in again:
                    self._lost(key, _Loss(before, _End(offset + 1, broker, client), *place_of(exchange), read=False))
                    safe = offset if is_alone else offset + 1
                    self._written[key] = _End(offset + 1, broker, client, ns, safe)

    def _sent_again(self, exchange: Exchange, cluster: str, answered: list[TopicDigest]) -> set[_Partition]:
        """The partitions of a Produce whose batch its idempotent producer had sent before: any leader answers with the
        offset that the batch has."""
        again: set[_Partition] = set()
        refused = refused_parts(exchange, answered) if exchange.errors else {}
        for topic in message_parts(exchange.request):
            for part in topic.partitions:
                if not part.producer or (topic.name, part.index) in refused:
                    continue
                key = cluster, clipped(topic.name), part.index
                who, sequence = (key, part.producer[:PRODUCER_BYTES]), part.producer[PRODUCER_BYTES:]
                known = self._sequences.get(who)
                if known is None:
                    if not self.context.has_room(self._sequences, MAX_PRODUCERS, topic.name, entries=3):
                        continue
                    known = self._sequences[who] = []
                if sequence in known:
                    again.add(key)
                    continue
                known.append(sequence)
                if len(known) > MAX_SEQUENCES:
                    del known[0]
        return again

    def _fetch(self, exchange: Exchange) -> None:
        broker, client = exchange.connection.broker, client_of(exchange)
        cluster = self.context.cluster.of(broker)
        for name, part in self.context.brought(exchange):
            key = client, cluster, name, part.index
            known = self._read.get(key)
            if known is not None:
                known.offset, known.broker = part.end_offset, broker
            elif self.context.has_room(self._read, MAX_PARTITIONS, name, client, entries=3):
                self._read[key] = _End(part.end_offset, broker, client)

    def _epochs(self, exchange: Exchange) -> None:
        """Takes in where the epoch of what a consumer has read ends."""
        for topic, one in self.context.members(response_body(exchange)):
            if not one.get("error_code"):
                self._compare(exchange, topic, one.get("partition", -1), one.get("end_offset", -1))

    def _diverging(self, exchange: Exchange) -> None:
        """Takes in where the leader's log diverges from what a consumer has read."""
        for topic, one in self.context.members(response_body(exchange), "responses"):
            diverging = one.get("diverging_epoch")
            if isinstance(diverging, dict):
                self._compare(exchange, topic, one.get("partition_index", -1), diverging.get("end_offset", -1))

    def _compare(self, exchange: Exchange, topic: str, index: int, end_offset: object) -> None:
        client, broker = client_of(exchange), exchange.connection.broker
        key = self.context.cluster.of(broker), topic, index
        before = self._read.get((client, *key)) if not is_replica(exchange) else None
        # A leader that stays may begin an epoch before the position of a consumer that has fetched ahead.
        if before is None or before.broker == broker or not isinstance(end_offset, int):
            return
        if 0 <= end_offset < before.offset:
            was, after = _End(before.offset, before.broker, client), _End(end_offset, broker, client)
            packet, ns = place_of(exchange)
            self._lost(key, _Loss(was, after, packet, ns, read=True))

    def _lost(self, key: _Partition, loss: _Loss) -> None:
        known = self._losses.get(key)
        if len(self._losses) < MAX_LOSSES and (known is None or (known.read and not loss.read)):
            self._losses[key] = loss

    def observations(self) -> Iterator[Observation]:
        by_brokers: dict[tuple[str, str], dict[_Partition, _Loss]] = {}
        for key, loss in self._losses.items():
            if not self.context.clusters.is_one(loss.before.broker, loss.after.broker):
                continue  # the two may be of different clusters
            name = self.context.topic_name(key[1]) or key[1]
            by_brokers.setdefault((loss.before.broker, loss.after.broker), {})[key[0], name, key[2]] = loss
        for (old, new), losses in by_brokers.items():
            yield self._observation(old, new, losses)

    def _observation(self, old: str, new: str, losses: dict[_Partition, _Loss]) -> Observation:
        cluster, case = self.context.cluster, self.context.case()
        for (_, topic, _), loss in losses.items():
            case.add(loss.packet, loss.ns)
            case.note("topics", [topic])
            case.note("clients", [loss.before.client, loss.after.client])
        names = [f"{topic}-{index}" for _, topic, index in losses]
        # Where a producer was told, the last offset before the end is one that is given out again.
        gone = sum(loss.before.offset - loss.after.offset + (not loss.read) for loss in losses.values())
        details = [
            f"{name}: {loss.before.client} had {'read' if loss.read else 'written'} up to offset "
            f"{loss.before.offset - 1}; at {clock(loss.ns)} the log of {cluster.broker_text(new)} "
            + (f"ends at {loss.after.offset}" if loss.read else f"went on from {loss.after.offset - 1}")
            for name, loss in zip(names, losses.values(), strict=True)
        ]
        numbers = {
            "partitions": names,
            "lost_records": gone,
            "from_address": old,
            "to_address": new,
            "offsets": [[loss.after.offset, loss.before.offset] for loss in losses.values()],
            "details": details[:MAX_LISTED],
            "alone": all(not loss.read and loss.before.safe < loss.after.offset for loss in losses.values()),
            "until_ns": max(loss.before.ns for loss in losses.values()),
        }
        about = [f"broker:{old}", f"broker:{new}"]
        return observation_of("log_went_back", case, about, numbers, Harm(records_lost=gone))


@cause("records_lost", explains=("log_went_back",))
def unclean_election(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`records_lost` (error): a new leader lacks what the old one had acknowledged, or consumers had read: an unclean
    leader election, or, where all of them had been acknowledged by the old leader alone (`acks=1`), any failover; at
    least how many records. Seen must be offsets that are given out again by another broker than before. Where the old
    leader acknowledged writes for 1 s and more after another one was known, and was not made leader again, it was cut
    off from its controllers. A batch that an idempotent producer sends again to the new leader is answered with its
    first offset, and is no loss; a topic that was deleted and created again looks the same.
    """
    numbers = dict(one.numbers)
    details, alone, until_ns = numbers.pop("details"), numbers.pop("alone"), numbers.pop("until_ns")
    old, new = (context.cluster.broker_text(numbers[name]) for name in ("from_address", "to_address"))
    how = ", which it alone had acknowledged (acks=1)" if alone else ""
    why = "a failover, or an unclean leader election" if alone else "an unclean leader election"
    all_moves = [
        each
        for each in observed.about(scope_of("topic", one.named("topic")), "leader_moved")
        if not set(each.numbers["partitions"]).isdisjoint(numbers["partitions"])
    ]
    moves = [each for each in all_moves if each.numbers["from_address"] == numbers["from_address"]]
    led_again = any(numbers["from_address"] in each.numbers["to_addresses"] for each in all_moves)
    since_ns = min((each.first_ns for each in moves), default=until_ns)
    cut_off = until_ns - since_ns >= SECOND_NS and not led_again
    if cut_off:
        after = f"for {duration(until_ns - since_ns)} after the new leader was known"
        why = f"{old} acknowledged writes {after}: it is cut off from its controllers"
    return told(
        one,
        f"records that {old} had are gone, at least {numbers['lost_records']:,}{how}: {new} was made leader "
        f"without them, and gives their offsets out again ({why})",
        "".join([_CUT_OFF * cut_off, _ACKS_1 if alone else _REMEDY]),
        supports=tuple(each.sentence for each in moves if cut_off),
        subject=listed(numbers["partitions"]),
        numbers=numbers,
        details=tuple(details),
        explains=symptoms("topic", one.named("topic"), "leader_change", "under_replicated", *_OF_LOSS),
    )
