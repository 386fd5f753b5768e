"""The examination: rules are given the events that they ask for, then their findings are put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from kwiresniff.analysis.body_entities import is_transactional, throttle_ms_of
from kwiresniff.analysis.doctor.authentication import AuthenticationRule
from kwiresniff.analysis.doctor.causes import arranged
from kwiresniff.analysis.doctor.closed_by_broker import ClosedByBrokerRule
from kwiresniff.analysis.doctor.codecs import CodecRule
from kwiresniff.analysis.doctor.connection_limits import ConnectionLimitRule
from kwiresniff.analysis.doctor.controller_listener import ControllerListenerRule
from kwiresniff.analysis.doctor.efficiency import EfficiencyRule
from kwiresniff.analysis.doctor.endings import Endings
from kwiresniff.analysis.doctor.errors import ErrorRule
from kwiresniff.analysis.doctor.groups import GroupRule
from kwiresniff.analysis.doctor.impatience import ImpatienceRule
from kwiresniff.analysis.doctor.lag import LagRule
from kwiresniff.analysis.doctor.latency import LatencyRule
from kwiresniff.analysis.doctor.leaders import LeaderRule
from kwiresniff.analysis.doctor.listeners import ListenerRule
from kwiresniff.analysis.doctor.missing_sasl import MissingSaslRule
from kwiresniff.analysis.doctor.network import DamageRule, NetworkRule
from kwiresniff.analysis.doctor.not_kafka import NotKafkaRule
from kwiresniff.analysis.doctor.offline import OfflineRule
from kwiresniff.analysis.doctor.offsets import OffsetRule
from kwiresniff.analysis.doctor.open_transactions import OpenTransactionRule
from kwiresniff.analysis.doctor.partitions import HotPartitionRule
from kwiresniff.analysis.doctor.path_latency import PathLatencyRule
from kwiresniff.analysis.doctor.path_mtu import PathMtuRule
from kwiresniff.analysis.doctor.polling import PollingRule
from kwiresniff.analysis.doctor.quorum import QuorumRule
from kwiresniff.analysis.doctor.quotas import QuotaRule
from kwiresniff.analysis.doctor.replica_waits import ReplicaWaitRule
from kwiresniff.analysis.doctor.replicas import ReplicaRule
from kwiresniff.analysis.doctor.rereads import RereadRule
from kwiresniff.analysis.doctor.rule import Context, Rule
from kwiresniff.analysis.doctor.selection import Kind
from kwiresniff.analysis.doctor.shared_address import SharedAddressRule
from kwiresniff.analysis.doctor.stalls import StallRule
from kwiresniff.analysis.doctor.static_members import StaticMemberRule
from kwiresniff.analysis.doctor.streams_status import StreamsStatusRule
from kwiresniff.analysis.doctor.tls import TlsRule
from kwiresniff.analysis.doctor.topics import TopicRule
from kwiresniff.analysis.doctor.transactions import FencingRule
from kwiresniff.analysis.doctor.transfers import TransferRule
from kwiresniff.analysis.doctor.truncations import TruncationRule
from kwiresniff.analysis.doctor.unanswered import UnansweredRule
from kwiresniff.analysis.doctor.versions import VersionRule
from kwiresniff.analysis.late_names import renamer
from kwiresniff.base.api_keys import API_VERSIONS, FETCH, METADATA, PRODUCE
from kwiresniff.base.needs import Needs
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, Problem, TopicNames
from kwiresniff.results.findings import Finding

if TYPE_CHECKING:
    pass

#: All rules but the one for error codes that no other judges.
RULES: Final[tuple[type[Rule], ...]] = (
    ListenerRule, SharedAddressRule, ControllerListenerRule, NotKafkaRule, TlsRule, MissingSaslRule,
    AuthenticationRule, VersionRule, StallRule, ConnectionLimitRule, ImpatienceRule, TruncationRule, LeaderRule,
    ReplicaRule, ReplicaWaitRule, OfflineRule, QuotaRule, TopicRule, FencingRule, OpenTransactionRule, OffsetRule,
    StreamsStatusRule, GroupRule, StaticMemberRule, RereadRule, PollingRule, LagRule, CodecRule, HotPartitionRule,
    QuorumRule, LatencyRule, PathLatencyRule, TransferRule, UnansweredRule, ClosedByBrokerRule, PathMtuRule,
    NetworkRule, DamageRule, EfficiencyRule,
)  # fmt: skip

#: No wait or transfer for which a rule is called is shorter.
LONG_NS: Final = 1_000_000_000

#: How a rule of a plugin is made and asked; see ``kwiresniff.plugins``.
RuleMaker: TypeAlias = Callable[[Context], Rule]
#: What is called with exchanges that are selected, and the limit that they have to reach where there is one.
_Taker: TypeAlias = tuple[int, Callable[[Exchange], None]]


class _Takers:
    """The rules that are given exchanges of one API, by what decides whether they are."""

    def __init__(self, rules: list[Rule], api_key: int) -> None:
        self.api_key = api_key
        self.is_of_records = api_key in (PRODUCE, FETCH)
        takers: dict[Kind, list[_Taker]] = {}
        for rule in rules:
            if rule.apis is None or api_key in rule.apis:
                selection = rule.selection
                takers.setdefault(selection.kind_for(api_key), []).append((selection.limit, rule.exchange))
        self.all = [take for _, take in takers.get("all", ())]
        self._waited, self._transferred = takers.get("waited", []), takers.get("transferred", [])
        self._throttled, self._transactional = takers.get("throttled", []), takers.get("transactional", [])
        self._old_fetches = takers.get("old fetches", [])
        self._oldest = max([version for version, _ in self._old_fetches], default=0)

    def select(self, exchange: Exchange) -> None:
        """Gives an exchange to the rules that select it."""
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
        if response.last_ns - response.first_ns >= LONG_NS:
            for least_ns, take in self._transferred:
                if response.last_ns - response.first_ns >= least_ns:
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
    """Takes in events with decoded bodies. Memory is bounded by the rules, see ``evidence``."""

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True, attempts=True, digests=True)

    def __init__(self, topic_name: TopicNames | None = None, more: Iterable[RuleMaker] = ()) -> None:
        self.context = context = Context(topic_name)
        self._endings = Endings()
        makers: list[RuleMaker] = [*RULES, *more]
        rules = [make(context) for make in makers]
        judged = frozenset().union(*(rule.judges for rule in rules))
        rules.append(ErrorRule(context, judged))
        self._rules = rules
        self._on_failure = [rule.failure for rule in rules if _has(rule, "failure")]
        self._on_connection = [rule.connection for rule in rules if _has(rule, "connection")]
        self._on_ending = [rule.ending for rule in rules if _has(rule, "ending")]
        self._on_attempt = [rule.attempt for rule in rules if _has(rule, "attempt")]
        self._on_problem = [rule.problem for rule in rules if _has(rule, "problem")]
        named = frozenset({PRODUCE, FETCH}).union(*(rule.apis for rule in rules if rule.apis is not None))
        self._takers = {api_key: _Takers(rules, api_key) for api_key in named}
        self._others = _Takers(rules, _UNNAMED)

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
        """The worst first, incidents before what follows from them, then the most frequent."""
        rename = renamer(self.context.topic_name)
        return arranged([_renamed(finding, rename) for rule in self._rules for finding in rule.findings()])


def _renamed(finding: Finding, rename: Callable[[Any], Any]) -> Finding:
    """A finding whose topic ids are replaced by names that became known later."""
    parts = ("subject", "title", "details", "numbers", "scope")
    return finding._replace(**{name: rename(getattr(finding, name)) for name in parts})


#: Stands for the APIs that no rule names, of which an attacker can invent 65,536; no API has this key, which are INT16.
_UNNAMED: Final = 1 << 16


def _has(rule: Rule, name: str) -> bool:
    """Whether a rule does something of its own there."""
    return getattr(type(rule), name, None) is not getattr(Rule, name)
