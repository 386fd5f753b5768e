"""The examination: observers are given the events that they ask for, then causes are weighed and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeAlias

from kwiresniff.analysis.body_entities import is_transactional, throttle_ms_of
from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.doctor.cause import Cause
from kwiresniff.analysis.doctor.causes.authentication import MissingSasl, RefusedAuthentication
from kwiresniff.analysis.doctor.causes.batches import RepeatedBatches
from kwiresniff.analysis.doctor.causes.beginnings import NothingToRead, SkippedRecords
from kwiresniff.analysis.doctor.causes.clients import (
    AskingClients,
    ConnectionChurn,
    HeavyClients,
    LateFetches,
    MetadataStorm,
    StateRestored,
)
from kwiresniff.analysis.doctor.causes.clocks import WrongClock
from kwiresniff.analysis.doctor.causes.clusters import ClusterChanged
from kwiresniff.analysis.doctor.causes.connection_limits import ConnectionLimit
from kwiresniff.analysis.doctor.causes.consumption import (
    DesertedGroup,
    NoCommittedOffsets,
    SilentApplication,
    TooManyMembers,
    UnknownCodec,
    UnreadableCodec,
)
from kwiresniff.analysis.doctor.causes.damage import DamagedBatches, DamagedCapture
from kwiresniff.analysis.doctor.causes.errors import AnsweredWithError
from kwiresniff.analysis.doctor.causes.handshakes import ClosedAfterHandshake, FailedHandshake, PlaintextToTls
from kwiresniff.analysis.doctor.causes.leaders import LeaderChange, OldLeader, QuorumElection
from kwiresniff.analysis.doctor.causes.listeners import (
    SharedAddress,
    UnreachableBroker,
    UnreachableNode,
    WrongAddress,
    WrongListener,
)
from kwiresniff.analysis.doctor.causes.offsets import OffsetOutOfRange
from kwiresniff.analysis.doctor.causes.path import BrokenPath, LongPath, NarrowPath
from kwiresniff.analysis.doctor.causes.patience import ShortTimeout
from kwiresniff.analysis.doctor.causes.payloads import UnfitPayload
from kwiresniff.analysis.doctor.causes.progress import SlowConsumer, SmallFetches, UnreadableRecord
from kwiresniff.analysis.doctor.causes.queues import OwnQueue
from kwiresniff.analysis.doctor.causes.rebalances import (
    FencedInstance,
    LongRebalance,
    OutsideCommit,
    RebalanceStorm,
    RemovedMember,
)
from kwiresniff.analysis.doctor.causes.replica_waits import ReplicaWait
from kwiresniff.analysis.doctor.causes.replicas import (
    NotEnoughReplicas,
    OfflinePartition,
    UnderReplicated,
    UnevenLeaders,
)
from kwiresniff.analysis.doctor.causes.segments import LateSyns, LossyPath
from kwiresniff.analysis.doctor.causes.share_deliveries import ExpiredLock, ReturnedRecords
from kwiresniff.analysis.doctor.causes.shared_groups import SharedGroup
from kwiresniff.analysis.doctor.causes.slow_answers import SlowAnswer
from kwiresniff.analysis.doctor.causes.slow_brokers import CostlyTopic, SlowBroker, SlowReplication
from kwiresniff.analysis.doctor.causes.stalls import StalledBroker
from kwiresniff.analysis.doctor.causes.streams import NoTasks
from kwiresniff.analysis.doctor.causes.throttling import Throttled
from kwiresniff.analysis.doctor.causes.topics import DeletedTopic, UnknownTopic
from kwiresniff.analysis.doctor.causes.transactions import FencedProducer, OpenTransaction
from kwiresniff.analysis.doctor.causes.transfers import SlowTransfer
from kwiresniff.analysis.doctor.causes.truncations import UncleanElection
from kwiresniff.analysis.doctor.causes.unanswered import ClosedByBroker, Unanswered
from kwiresniff.analysis.doctor.causes.unread import HangingConsumer, PartitionNotRead
from kwiresniff.analysis.doctor.causes.versions import UnsupportedVersion
from kwiresniff.analysis.doctor.causes.waste import (
    EmptyFetches,
    HotPartition,
    NoAcknowledgement,
    OldFormat,
    SingleCommits,
    SmallBatches,
    UnheardWrites,
)
from kwiresniff.analysis.doctor.causes.wrong_servers import ControllerDialled, NotKafkaClient, NotKafkaServer
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Endings
from kwiresniff.analysis.doctor.judgement import Judgement, judged
from kwiresniff.analysis.doctor.observation import Observation
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.observers.addresses import Addresses
from kwiresniff.analysis.doctor.observers.authentication import RefusedAuthentications, UnauthenticatedClients
from kwiresniff.analysis.doctor.observers.batches import Recompression, ResentBatches
from kwiresniff.analysis.doctor.observers.client_loads import ClientLoads
from kwiresniff.analysis.doctor.observers.clusters import ClusterChanges
from kwiresniff.analysis.doctor.observers.connection_limits import ClosedUnanswered
from kwiresniff.analysis.doctor.observers.damage import Damage
from kwiresniff.analysis.doctor.observers.departures import Departures
from kwiresniff.analysis.doctor.observers.efficiency import RequestSizes
from kwiresniff.analysis.doctor.observers.errors import ErrorCodes
from kwiresniff.analysis.doctor.observers.fencing import FencedProducers
from kwiresniff.analysis.doctor.observers.handshakes import FailedHandshakes, PlaintextClients, ShortConnections
from kwiresniff.analysis.doctor.observers.held_fetches import HeldFetches
from kwiresniff.analysis.doctor.observers.hot_partitions import PartitionShares
from kwiresniff.analysis.doctor.observers.idle_members import IdleMembers
from kwiresniff.analysis.doctor.observers.lag import Lags
from kwiresniff.analysis.doctor.observers.leaders import LeaderMoves
from kwiresniff.analysis.doctor.observers.log_ranges import OutOfRange
from kwiresniff.analysis.doctor.observers.metadata_requests import MetadataRequests
from kwiresniff.analysis.doctor.observers.missing_topics import MissingTopics
from kwiresniff.analysis.doctor.observers.open_transactions import OpenTransactions
from kwiresniff.analysis.doctor.observers.opened_connections import OpenedConnections
from kwiresniff.analysis.doctor.observers.path import LostData, PathTimes
from kwiresniff.analysis.doctor.observers.patience import GivenUp
from kwiresniff.analysis.doctor.observers.payloads import UnfitPayloads
from kwiresniff.analysis.doctor.observers.polling import SilentMembers
from kwiresniff.analysis.doctor.observers.queues import QueueTimes
from kwiresniff.analysis.doctor.observers.quorum import QuorumSearches
from kwiresniff.analysis.doctor.observers.rebalances import Rebalances
from kwiresniff.analysis.doctor.observers.record_clocks import RecordClocks
from kwiresniff.analysis.doctor.observers.replica_waits import WriteWaits
from kwiresniff.analysis.doctor.observers.replicas import LeaderlessPartitions, MissingReplicas, RefusedWrites
from kwiresniff.analysis.doctor.observers.rereads import Rereads
from kwiresniff.analysis.doctor.observers.restores import Restores
from kwiresniff.analysis.doctor.observers.segments import ResentSegments
from kwiresniff.analysis.doctor.observers.share_deliveries import ShareDeliveries
from kwiresniff.analysis.doctor.observers.shared_addresses import SharedAddresses
from kwiresniff.analysis.doctor.observers.slow_answers import SlowAnswers
from kwiresniff.analysis.doctor.observers.stalls import Silences
from kwiresniff.analysis.doctor.observers.starts_at_end import StartsAtEnd
from kwiresniff.analysis.doctor.observers.static_members import StaticMembers
from kwiresniff.analysis.doctor.observers.streams_status import StreamsStatus
from kwiresniff.analysis.doctor.observers.subscriptions import Subscriptions
from kwiresniff.analysis.doctor.observers.throttling import Throttling
from kwiresniff.analysis.doctor.observers.transfers import SlowTransfers
from kwiresniff.analysis.doctor.observers.truncations import Truncations
from kwiresniff.analysis.doctor.observers.unanswered import ClosedInstead, UnansweredRequests
from kwiresniff.analysis.doctor.observers.unassigned import UnassignedGroups
from kwiresniff.analysis.doctor.observers.uncommitted_starts import UncommittedStarts
from kwiresniff.analysis.doctor.observers.undialled import UndialledBrokers
from kwiresniff.analysis.doctor.observers.unread import UnreadPartitions
from kwiresniff.analysis.doctor.observers.versions import RefusedVersions
from kwiresniff.analysis.doctor.observers.writes import Writes
from kwiresniff.analysis.doctor.observers.wrong_servers import DialledControllers, ForeignAnswers, ForeignRequests
from kwiresniff.analysis.doctor.observers.zstd import UnknownZstd
from kwiresniff.analysis.doctor.selection import Kind
from kwiresniff.analysis.late_names import renamer
from kwiresniff.base.api_keys import API_VERSIONS, FETCH, METADATA, PRODUCE
from kwiresniff.base.needs import Needs
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, Problem, TopicNames
from kwiresniff.results.findings import Finding

#: The observers of an examination.
OBSERVERS: Final[tuple[type[Observer], ...]] = (
    PathTimes, LostData, SlowAnswers, ResentSegments, SlowTransfers, QueueTimes, UnansweredRequests, ClosedInstead,
    Departures, UncommittedStarts, IdleMembers, HeldFetches, MetadataRequests, OpenedConnections, Rebalances,
    ClientLoads, Restores, MissingReplicas, LeaderlessPartitions, RefusedWrites, Silences, Writes, WriteWaits,
    ResentBatches, Recompression, Throttling, GivenUp, ClosedUnanswered, StaticMembers, UnknownZstd, SilentMembers,
    Rereads, Lags, Truncations, LeaderMoves, RequestSizes, ClusterChanges, UndialledBrokers, Subscriptions,
    UnreadPartitions, UnauthenticatedClients, RefusedAuthentications, Addresses, SharedAddresses, ForeignAnswers,
    ForeignRequests, DialledControllers, RefusedVersions, StreamsStatus, QuorumSearches, Damage, PartitionShares,
    OutOfRange, FencedProducers, OpenTransactions, FailedHandshakes, PlaintextClients, ShortConnections,
    MissingTopics, ErrorCodes, UnfitPayloads, StartsAtEnd, UnassignedGroups, ShareDeliveries, RecordClocks,
)  # fmt: skip
#: The causes that are weighed.
CAUSES: Final[tuple[type[Cause], ...]] = (
    LongPath, NarrowPath, BrokenPath, SlowAnswer, LossyPath, LateSyns, SlowTransfer, OwnQueue, Unanswered,
    ClosedByBroker, UnreadableCodec, DesertedGroup, NoCommittedOffsets, TooManyMembers, LateFetches, RebalanceStorm,
    LongRebalance, RemovedMember, OutsideCommit, MetadataStorm, ConnectionChurn, AskingClients, StateRestored,
    UnderReplicated, OfflinePartition, NotEnoughReplicas, StalledBroker, SlowBroker, CostlyTopic, SlowReplication,
    ReplicaWait, RepeatedBatches, Throttled, ShortTimeout, ConnectionLimit, UnevenLeaders, UnknownCodec,
    SilentApplication, FencedInstance, UnreadableRecord, SlowConsumer, SmallFetches, UncleanElection, LeaderChange,
    OldLeader, SingleCommits, SmallBatches, EmptyFetches, UnheardWrites, NoAcknowledgement, OldFormat, ClusterChanged,
    HotPartition, UnreachableNode, SharedGroup, PartitionNotRead, HangingConsumer, MissingSasl,
    RefusedAuthentication, WrongListener, UnreachableBroker, SharedAddress, WrongAddress, NotKafkaServer,
    NotKafkaClient, ControllerDialled, UnsupportedVersion, NoTasks, QuorumElection, DamagedBatches, DamagedCapture,
    OffsetOutOfRange, FencedProducer, OpenTransaction, PlaintextToTls, FailedHandshake, ClosedAfterHandshake,
    DeletedTopic, UnknownTopic, AnsweredWithError, UnfitPayload, HeavyClients, SkippedRecords, NothingToRead,
    ExpiredLock, ReturnedRecords, WrongClock,
)  # fmt: skip
#: No wait or transfer for which an observer is called is shorter.
LONG_NS: Final = 1_000_000_000

#: How a plugin's observer or cause is made; see ``kwiresniff.plugins``.
Maker: TypeAlias = Callable[[Context], Observer | Cause]
#: What is called with exchanges that are selected, and the limit that they have to reach where there is one.
_Taker: TypeAlias = tuple[int, Callable[[Exchange], None]]


class _Takers:
    """The observers that are given exchanges of one API, by what decides whether they are."""

    def __init__(self, observers: list[Observer], api_key: int) -> None:
        self.api_key = api_key
        self.is_of_records = api_key in (PRODUCE, FETCH)
        takers: dict[Kind, list[_Taker]] = {}
        for one in observers:
            if one.apis is None or api_key in one.apis:
                selection = one.selection
                takers.setdefault(selection.kind_for(api_key), []).append((selection.limit, one.exchange))
        self.all = [take for _, take in takers.get("all", ())]
        self._waited, self._transferred = takers.get("waited", []), takers.get("transferred", [])
        self._throttled, self._transactional = takers.get("throttled", []), takers.get("transactional", [])
        self._old_fetches = takers.get("old fetches", [])
        self._oldest = max([version for version, _ in self._old_fetches], default=0)

    def select(self, exchange: Exchange) -> None:
        """Gives an exchange to the observers that select it."""
        if self.is_of_records:
            self._select_of_records(exchange)
        request, response = exchange.request, exchange.response
        if response is None:
            return
        if self._throttled and throttle_ms_of(response) > 0:
            for _, take in self._throttled:
                take(exchange)
        if request is not None and response.first_ns - request.last_ns >= LONG_NS:
            for least_ns, take in self._waited:
                if response.first_ns - request.last_ns >= least_ns:
                    take(exchange)
        passed_ns = response.last_ns - response.first_ns
        if request is not None and request.last_ns - request.first_ns > passed_ns:
            passed_ns = request.last_ns - request.first_ns
        if passed_ns >= LONG_NS:
            for least_ns, take in self._transferred:
                if passed_ns >= least_ns:
                    take(exchange)

    def _select_of_records(self, exchange: Exchange) -> None:
        """A Produce or Fetch, of which there are more than of all others."""
        if is_transactional(exchange.request, self.api_key):
            for _, take in self._transactional:
                take(exchange)
        if exchange.api_version < self._oldest:
            for version, take in self._old_fetches:
                if exchange.api_version < version:
                    take(exchange)


class Doctor:
    """Takes in events with decoded bodies. Memory is bounded by the observers, see ``evidence``."""

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True, attempts=True, clusters=True, digests=True)

    def __init__(
        self,
        topic_name: TopicNames | None = None,
        more: Iterable[Maker] = (),
        clusters: Clusters | None = None,
        beside: Doctor | None = None,
    ) -> None:
        """``beside`` is the first one, where each cluster has one (``doctors``)."""
        context = Context(topic_name, clusters, None if beside is None else beside.context)
        self.context: Context = context
        self._endings = Endings()
        makers: list[Maker] = [*OBSERVERS, *CAUSES, *more]
        made = [make(context) for make in makers]
        self._causes = [one for one in made if isinstance(one, Cause)]
        observers = [one for one in made if isinstance(one, Observer)]
        context.judged = frozenset().union(*(one.judges for one in observers))
        self._observers = observers
        self._on_failure = [one.failure for one in observers if _has(one, "failure")]
        self._on_connection = [one.connection for one in observers if _has(one, "connection")]
        self._on_ending = [one.ending for one in observers if _has(one, "ending")]
        self._on_attempt = [one.attempt for one in observers if _has(one, "attempt")]
        self._on_problem = [one.problem for one in observers if _has(one, "problem")]
        named = frozenset({PRODUCE, FETCH}).union(*(one.apis for one in observers if one.apis is not None))
        self._takers = {api_key: _Takers(observers, api_key) for api_key in named}
        self._others = _Takers(observers, _UNNAMED)

    def add(self, event: Event) -> None:
        """An exchange, an ended connection, an attempt at one, or a problem."""
        if isinstance(event, Exchange):
            self.exchange(event)
        elif isinstance(event, Connection):
            self.context.cluster.ended(event)
            ending = self._endings.end(event, self.context.cluster, self.context.end_ns)
            for take_connection in self._on_connection:
                take_connection(event)
            if ending is not None:
                for take_ending in self._on_ending:
                    take_ending(ending)
        elif isinstance(event, ConnectionAttempt):
            for take_attempt in self._on_attempt:
                take_attempt(event)
        elif isinstance(event, Problem):
            self.context.gaps += self._endings.mark_gap(event)
            for take_problem in self._on_problem:
                take_problem(event)

    def exchange(self, exchange: Exchange) -> None:
        """An exchange."""
        context, api_key = self.context, exchange.api_key
        cluster_of(context.clusters, exchange)
        if exchange.problems:
            context.note_cut(exchange)
        response = exchange.response
        message = response if response is not None else exchange.request
        if message is not None:
            if message.last_ns > context.end_ns:
                context.end_ns = message.last_ns
            if not context.begin_ns:
                context.begin_ns = message.first_ns
        notes = context.cluster.answered(exchange, response.first_ns) if response is not None else None
        context.look_at(exchange, notes)
        if api_key in (METADATA, API_VERSIONS) or (exchange.errors and api_key in (PRODUCE, FETCH)):
            context.cluster.learn(exchange)
        takers = self._takers.get(api_key)
        if takers is None:
            takers = self._others
        for take in takers.all:
            take(exchange)
        takers.select(exchange)
        if context.watching:
            for take in tuple(context.watching):
                take(exchange)
        if exchange.errors or exchange.problems:
            for take in self._on_failure:
                take(exchange)
        if exchange.outcome == "unanswered":
            self._endings.add(exchange)
            for take in self._on_failure if not exchange.problems else ():
                take(exchange)

    def findings(self) -> list[Finding]:
        """The findings of the judgement."""
        return self.judgement().findings

    def judgement(self) -> Judgement:
        """The findings, the worst first, incidents before what follows from them, with all that led to them."""
        rename = renamer(self.context.topic_name)
        observations = [_renamed(one, rename) for observer in self._observers for one in observer.observations()]
        return judged(self._causes, observations)


def _renamed(one: Observation, rename: Callable[[Any], Any]) -> Observation:
    """An observation whose topic ids are replaced by names that became known later."""
    return replace(one, **{name: rename(getattr(one, name)) for name in ("about", "text", "numbers", "notes")})


#: Stands for the APIs that no observer names, of which an attacker can invent 65,536; no API has this key: they are
#: INT16.
_UNNAMED: Final = 1 << 16


def _has(one: Observer, name: str) -> bool:
    """Whether an observer does something of its own there."""
    return getattr(type(one), name, None) is not getattr(Observer, name)
