"""Error codes in answers that no other observer judges: who gets them, for what, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kwiresniff.analysis.body_entities import message_groups, message_transactional_ids
from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.cause import ERROR, INCIDENT, Cause, Explanation, cause, told
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_meanings import (
    GROUP_KINDS,
    MEANINGS,
    OTHER_KIND,
    Meaning,
    coordinator_meaning,
    no_producer_id,
    unstored_meaning,
)
from kwiresniff.analysis.doctor.error_places import MAX_PLACES, error_place
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, clipped, is_replica
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.troubles.acl_changes import AclChanges
from kwiresniff.analysis.doctor.wording import broker_says, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.negotiation import ADMIN_APIS, COORDINATOR_CODES, is_step
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.record_counts import batches_in
from kwiresniff.analysis.topic_parts import structs
from kwiresniff.base.api_keys import (
    ADD_PARTITIONS_TO_TXN,
    CREATE_ACLS,
    DELETE_ACLS,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from kwiresniff.base.field_values import field_text
from kwiresniff.base.flows import host_of
from kwiresniff.model import Body, Exchange
from kwiresniff.results.findings import scope_of

#: A code that comes no more often may follow from a leader's move.
FEW = 3
#: A pause of so much between two refusals: the coordinator was found meanwhile.
FOUND_NS = 3_000_000_000
#: Names of what has coordinators, by ``key_type`` of FindCoordinator; moves of coordinators that are remembered.
_KINDS = {0: "group", 1: "transactional id"}
MAX_MOVES = 100
#: Groups and transactional ids noted of one exchange.
MAX_NOTED = 5
DENIED = "_AUTHORIZATION_FAILED"
#: Coordinators are missing for so long after a start, or while their topic is created.
COORDINATOR_NS: Final = 10_000_000_000
#: A coordinator that was asked for so often and so long, and never found.
IN_VAIN: Final = 10
IN_VAIN_NS: Final = 2_000_000_000
#: APIs whose answers wait until the coordinator has stored what they bring.
STORING: Final = frozenset({SYNC_GROUP, OFFSET_COMMIT, TXN_OFFSET_COMMIT, END_TXN, ADD_PARTITIONS_TO_TXN})
#: Findings about a group that follow where its coordinator stores nothing.
_UNSTORED: Final = ("rebalances", "group_deserted", "long_rebalance", "member_removed", "consumer_lag")
#: Settings whose values brokers refuse, with the field of the request, by the code.
_REFUSED: Final = {
    "INVALID_SESSION_TIMEOUT": ("session.timeout.ms", "session_timeout_ms"),
    "INVALID_TRANSACTION_TIMEOUT": ("transaction.timeout.ms", "transaction_timeout_ms"),
}
_ADMIN_REMEDY: Final = "An answer to somebody's command, which was told of it; look there."
_UNKNOWN: Final = Meaning("warning", "", "Clients do not retry this: look at the answers.")
_RETRIABLE: Final = Meaning("info", "", "Clients retry this by themselves.")


@dataclass(slots=True, eq=False)
class _Search:
    """A client's search for its coordinator, or for one that stores what it asks for (``storing``: the APIs that were
    refused), and its longest time without a pause."""

    began_ns: int = 0
    last_ns: int = 0
    longest_ns: int = 0
    found: bool = False
    storing: set[int] = field(default_factory=set)

    def goes_on(self, ns: int, api_key: int) -> None:
        """Adds another refusal at ``ns``; after a pause, or an answer to what was refused, a new search begins."""
        if api_key in STORING:
            self.storing.add(api_key)
        if (self.found if self.storing else ns - self.last_ns > FOUND_NS) or not self.began_ns:
            self.began_ns = ns
        self.found = False
        self.last_ns = ns
        self.longest_ns = max(self.longest_ns, ns - self.began_ns)


class ErrorCodes(CountingObserver):
    """``answered_with_error``: a client was answered with an error code (``error``) that no observer judges.

    Notes: ``apis``, ``groups``, ``transactions``, ``principals``, ``topics``, ``concerns``, ``messages``, ``skews`` of
    timestamps, the ``former`` coordinators, ``values`` that were refused. Numbers: whether it is ``retriable``, the
    answer to an administrator (``is_admins``) or to a follower (``is_followers``), ``largest_bytes`` of a request,
    ``denied`` resources, who took the right away (``taken_away``), a sentence on a transaction that is ``overdue``; of
    a coordinator the longest search (``searched_ns``, else None), whether it was ``found``, and whether there was one
    that did not store what it was sent (``unstored``).
    """

    kinds = ("answered_with_error",)
    entities = ("client", "error")
    apis = frozenset({FIND_COORDINATOR, INIT_PRODUCER_ID, CREATE_ACLS, DELETE_ACLS, *STORING})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._retriable: dict[str, bool] = {}
        self._of_admins: dict[tuple[str, str], bool] = {}
        self._of_followers: set[tuple[str, str]] = set()
        self._searches: dict[tuple[str, str], _Search] = {}
        self._coordinators: dict[str, str] = {}
        self._acls = AclChanges(context.budget)

    def failure(self, exchange: Exchange) -> None:
        if not exchange.errors:
            return
        packet, ns = place_of(exchange)
        cases: dict[str, Case] = {}
        for error in exchange.errors[:MAX_PLACES]:
            if error[2] in self.context.judged or is_step(exchange.api_key, error[2]):
                continue
            place = error_place(exchange, error, self.context)
            case = cases.get(place.name)
            if case is None:
                case = cases[place.name] = self._count(exchange, place.name, packet, ns)
                self._retriable[place.name] = place.retriable
            place.note(case)

    def exchange(self, exchange: Exchange) -> None:
        """Ends the search of a client for its coordinator; learns where coordinators are, and changes of ACLs."""
        if exchange.api_key in (CREATE_ACLS, DELETE_ACLS):
            self._acls.note(exchange)
        elif exchange.api_key == FIND_COORDINATOR:
            self._learn(exchange)
        if self._searches and not exchange.errors and exchange.response is not None:
            client = client_of(exchange)
            for name in COORDINATOR_CODES:
                search = self._searches.get((client, name))
                if search is not None and (not search.storing or exchange.api_key in search.storing):
                    search.found = True

    def _learn(self, exchange: Exchange) -> None:
        """Learns the addresses of coordinators from a FindCoordinator response."""
        asked, answer = request_body(exchange), response_body(exchange)
        kind = _KINDS.get(asked.get("key_type", 0), "share partition")
        for one in answer.get("coordinators") or [{**answer, "key": asked.get("key")}]:
            key, address = f"{kind} {clipped(field_text(one.get('key')))}", clipped(address_text(one))
            new = key not in self._coordinators
            if not address or one.get("error_code") or (new and len(self._coordinators) >= MAX_SUBJECTS):
                continue
            if not new or self.context.budget.admit(2 * ENTRY_BYTES + text_bytes(key, address)):
                before = self._coordinators.get(key, address)
                if before != address and len(self.context.moves) < MAX_MOVES:
                    self.context.moves.append((key, before, address, place_of(exchange)[1]))
                self._coordinators[key] = address

    def _former(self, case: Case) -> list[str]:
        """The coordinators of the groups and transactional ids of a case, as far as they are known."""
        names = [f"group {name}" for name in case.noted("groups")]
        names += [f"transactional id {name}" for name in case.noted("transactions")]
        return [
            f"the coordinator of {name} was {self.context.cluster.broker_text(address)}"
            for name in names[:3]
            if (address := self._coordinators.get(name))
        ]

    def _count(self, exchange: Exchange, name: str, packet: int, ns: int) -> Case:
        client = client_of(exchange)
        case = self.cases.case(client, name)
        request = exchange.request
        case.add(packet, ns, request.size_bytes if request is not None else 0)
        case.note("apis", [exchange.api])
        case.note("clients", [client])
        case.note("brokers", [exchange.connection.broker])
        case.note("groups", message_groups(request)[:MAX_NOTED])
        case.note("transactions", message_transactional_ids(request)[:MAX_NOTED])
        principal = (exchange.connection.sasl or {}).get("principal")
        if principal:
            case.note("principals", [str(principal)])
        if name == "INVALID_TIMESTAMP":
            case.note("skews", _skews(request_body(exchange), ns))
        if name in _REFUSED:
            setting, field = _REFUSED[name]
            value = request_body(exchange).get(field)
            case.note("values", [f"{setting}={value}"] if isinstance(value, int) else [])
        if name == "COORDINATOR_NOT_AVAILABLE" and exchange.api_key == FIND_COORDINATOR and case.count == 1:
            case.note("former", self._former(case))
        if name in COORDINATOR_CODES and len(self._searches) < MAX_SUBJECTS:
            self._searches.setdefault((client, name), _Search()).goes_on(ns, exchange.api_key)
        if is_replica(exchange):
            self._of_followers.add((client, name))
        self._of_admins[client, name] = exchange.api_key in ADMIN_APIS and case.count <= FEW
        return case

    def observations(self) -> Iterator[Observation]:
        for client, name, case in self.cases:
            search, denied = self._searches.get((client, name)), _denied(name, case) if name.endswith(DENIED) else []
            yield self.observed(
                client,
                name,
                case,
                retriable=self._retriable.get(name, False),
                is_admins=self._of_admins.get((client, name), False),
                is_followers=(client, name) in self._of_followers,
                largest_bytes=case.most,
                denied=denied,
                taken_away=self._acls.about(denied, case.last_ns),
                overdue=self.context.overdue.get(client, ""),
                searched_ns=search.longest_ns if search is not None else None,
                unstored=search is not None and bool(search.storing),
                found=search is not None and search.found,
            )


def _denied(name: str, case: Case) -> list[str]:
    """The resources that somebody has no right to."""
    return [
        *(f"topic {topic}" for topic in case.noted("topics")),
        *(f"group {group}" for group in case.noted("groups") if name.startswith("GROUP")),
        *(f"transactional id {one}" for one in case.noted("transactions") if name.startswith("TRANSACTIONAL")),
    ]


def _skews(body: Body, ns: int) -> Iterator[str]:
    """How far the newest timestamp of each batch of a Produce is from the time of its refusal."""
    for topic in structs(body, ("topic_data",)):
        for partition in structs(topic, ("partition_data",)):
            for batch in batches_in(partition):
                newest = batch.get("max_timestamp", batch.get("timestamp", -1))
                if isinstance(newest, int) and newest >= 0:
                    away = newest * 1_000_000 - ns
                    where = "ahead of" if away > 0 else "behind"
                    yield f"a timestamp is {away_text(abs(away))} {where} the capture's clock"


def away_text(ns: int) -> str:
    """A distance in time in the largest unit that fits: ``24 h``, ``3 min``, ``2 s``."""
    for unit, size in (("days", 172_800), ("h", 3_600), ("min", 60)):
        if ns >= size * 1_000_000_000:
            return f"{ns // ((size if unit != 'days' else 86_400) * 1_000_000_000)} {unit}"
    return f"{ns // 1_000_000_000} s"


class DeniedReplication(Cause):
    """`replication_denied` (error): brokers refuse the fetches of followers, whose user lacks the right to
    ClusterAction: all replicas but the leaders' own leave the ISR. That writes are refused or not answered then is a
    symptom.
    """

    codes = ("replication_denied",)
    explains = ("answered_with_error",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        followers = [one for one in observed.of("answered_with_error") if _is_denied_follower(one)]
        if not followers:
            return
        clients = sorted({client for one in followers for client in one.named("client")})
        users = list(dict.fromkeys(user for one in followers for user in one.noted("principals")))
        topics = list(dict.fromkeys(topic for one in followers for topic in one.noted("topics")))
        leaders = list(dict.fromkeys(broker for one in followers for broker in one.noted("brokers")))
        errors = sorted({one.name("error") for one in followers})
        # Clients have another listener than followers have.
        hosts = {host_of(leader) for leader in leaders}
        late = {broker for one in observed.of("unanswered", "writes_waited") for broker in one.named("broker")}
        brokers = [*leaders, *sorted(broker for broker in late if host_of(broker) in hosts)]
        yield Explanation(
            code="replication_denied",
            subject="replication",
            title=f"{listed(leaders)} {'refuses' if len(leaders) == 1 else 'refuse'} the fetches of followers "
            f"({listed(errors)}): {f'user {listed(users)}' if users else 'their user'} lacks a right; nothing of "
            f"{listed(topics)} is copied",
            remedy="Give the brokers' user the right to ClusterAction on the cluster (kafka-acls --add --cluster "
            "--operation ClusterAction), or name it in super.users. Until then writes with acks=all fail once the ISR "
            "is smaller than min.insync.replicas.",
            explained=tuple(followers),
            supports=tuple(one.sentence for one in followers),
            severity="error",
            numbers={"errors": errors, "users": users, "followers": clients, "concerns": topics},
            details=tuple(dict.fromkeys(text for one in followers for text in one.numbers["taken_away"])),
            explains=dict.fromkeys(
                (
                    "not_enough_replicas", "under_replicated", "replica_wait", "request_timed_out", "slow",
                    "unanswered", "request_timeout",
                ),
                scope_of("topic", topics) | scope_of("broker", brokers),
            ),
        )  # fmt: skip


def _is_denied_follower(one: Observation) -> bool:
    return bool(one.numbers["is_followers"]) and one.name("error").endswith(DENIED)


@cause(explains=("answered_with_error",))
def answered_with_error(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """Any other error code in lower case, as `message_too_large` (by its meaning; what clients retry is info up to 3):
    a client was answered with it; with the partitions it stands beneath, the sizes, the user, who took the right away
    that is missing, and what the broker says. It is an error where it is why a topic is not made that somebody asks for
    again and again, which is its symptom.
    """
    if _is_denied_follower(one):
        return None
    name, numbers, meaning = one.name("error"), one.numbers, _meaning(one)
    missing = _missing(one, observed)
    severity, is_admins = "error" if missing else _severity(one, meaning), numbers["is_admins"]
    title = f"{name}: {_title(name, meaning, one)}"
    overdue = numbers["overdue"] if name == "INVALID_TXN_STATE" else ""
    more: dict[str, object] = {"users": one.noted("principals")} if one.noted("principals") else {}
    more |= {"error_messages": one.noted("messages")} if one.noted("messages") else {}
    if name in ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"):
        more["largest_request_bytes"] = numbers["largest_bytes"]
    concerns = [*one.noted("apis"), *one.noted("concerns"), *(f"group {group}" for group in one.noted("groups"))]
    concerns += [f"transactional id {each}" for each in one.noted("transactions")]
    details = [*one.noted("skews")[:3], *one.noted("former"), *([overdue] if overdue else [])]
    unstored = numbers["unstored"] and severity == "error"
    groups = dict.fromkeys(_UNSTORED, scope_of("group", one.noted("groups"))) if unstored else {}
    # Kafka's own topics have their replicas on the same brokers as others.
    details += [each.sentence for each in observed.of("under_replicated")] if unstored else []
    client = scope_of("client", [name for each in (one, *missing) for name in each.named("client")])
    topics = {"unknown_topic_or_partition": scope_of("topic", one.noted("topics"))} if missing else {}
    return told(
        one,
        "; ".join([title, *numbers["taken_away"]]),
        _ADMIN_REMEDY if is_admins and name not in MEANINGS else meaning.remedy,
        code=name.lower(),
        severity=severity,
        rank=INCIDENT if unstored else ERROR,
        numbers={"error": name, "concerns": concerns, **more},
        details=(*details, *broker_says(one.noted("messages"))),
        explains=(dict.fromkeys(_searching(name), client) if severity == "error" else {}) | topics | groups,
    )


def _searching(name: str) -> tuple[str, ...]:
    """What a client does that is answered with an error again and again: some look for a coordinator on a new
    connection each time."""
    return "metadata_storm", *(("connection_churn",) if name in COORDINATOR_CODES else ())


def _missing(one: Observation, observed: Observed) -> list[Observation]:
    """Clients that keep asking for topics which were not created because of this error."""
    topics = scope_of("topic", one.noted("topics") if "CreateTopics" in one.noted("apis") else [])
    missing = observed.about(topics, "topic_missing")
    return missing if sum(each.count for each in missing) > FEW else []


def _meaning(one: Observation) -> Meaning:
    name = one.name("error")
    if name in COORDINATOR_CODES:
        apis, groups, ids = one.noted("apis"), one.noted("groups"), one.noted("transactions")
        unstored = unstored_meaning(apis, groups, ids) if name == "COORDINATOR_NOT_AVAILABLE" else None
        return no_producer_id(apis, ids) or unstored or coordinator_meaning(name, groups, ids)
    if name in GROUP_KINDS and any(" is not a " in message for message in one.noted("messages")):
        return OTHER_KIND._replace(severity="info") if one.numbers["is_admins"] else OTHER_KIND
    return MEANINGS.get(name) or (_RETRIABLE if one.numbers["retriable"] else _UNKNOWN)


def _severity(one: Observation, meaning: Meaning) -> str:
    """The severity of the code; less for what passes and for administrators, more for a coordinator never found."""
    numbers, severity, searched_ns = one.numbers, meaning.severity, one.numbers["searched_ns"]
    if searched_ns is not None:
        in_vain = not numbers["found"] and one.count >= IN_VAIN and searched_ns >= IN_VAIN_NS
        if in_vain and searched_ns > COORDINATOR_NS:
            return "error"
        passing = searched_ns <= COORDINATOR_NS and not in_vain
    else:
        # A follower tries again after any error.
        passing = (numbers["retriable"] or numbers["is_followers"]) and one.count <= FEW
    return "info" if severity == "warning" and (numbers["is_admins"] or passing) else severity


def _title(name: str, meaning: Meaning, one: Observation) -> str:
    """The meaning of a code, with the user and resource of a denial, or the API where it has no meaning."""
    apis = listed(one.noted("apis"))
    if name.endswith(DENIED):
        users, what = listed(one.noted("principals")), one.numbers["denied"]
        on = f" on {listed(what)}" if what else ""
        return f"{f'user {users}' if users else 'its user'} {meaning.title} ({apis}{on})"
    if meaning.title:
        refused = one.noted("topics") if name == "INVALID_TOPIC_EXCEPTION" else one.noted("values")
        return meaning.title + (f": {listed(refused)}" if refused else "")
    concerns = one.noted("concerns")
    return f"the broker answers {apis} with it" + (f" for {listed(concerns)}" if concerns else "")
