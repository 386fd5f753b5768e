"""Error codes in answers that no rule of its own judges: what each means for the people who run the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.body_entities import message_groups, message_transactional_ids
from kwiresniff.analysis.doctor.acl_changes import AclChanges
from kwiresniff.analysis.doctor.cause import ERROR
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_meanings import (
    MEANINGS,
    Meaning,
    coordinator_meaning,
    no_producer_id,
    unstored_meaning,
)
from kwiresniff.analysis.doctor.error_places import MAX_PLACES, error_place
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, clipped
from kwiresniff.analysis.doctor.rule import Rule, as_clients, found
from kwiresniff.analysis.doctor.wording import broker_says, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.negotiation import ADMIN_APIS, COORDINATOR_CODES, is_step
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.record_counts import batches_in
from kwiresniff.analysis.topic_parts import structs
from kwiresniff.base.api_keys import CREATE_ACLS, DELETE_ACLS, FIND_COORDINATOR, INIT_PRODUCER_ID
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange
from kwiresniff.results.findings import Finding

#: How often a retriable error may come before it is more than what happens when a leader moves.
FEW = 3
#: For so long a coordinator may not be there: after a start, or when the topic behind it is made, it takes seconds.
COORDINATOR_NS = 10_000_000_000
#: One that was found in between was asked without an error; clients that are sent away ask again within a second.
FOUND_NS = 3_000_000_000
#: So many times in vain, for so long, and never found, is not what happens after a start.
IN_VAIN = 10
IN_VAIN_NS = 2_000_000_000

#: What has coordinators, by ``key_type`` of FindCoordinator; moves of them that are remembered.
_KINDS = {0: "group", 1: "transactional id"}
MAX_MOVES = 100

_DENIED = "_AUTHORIZATION_FAILED"
_ADMIN_REMEDY = "An answer to somebody's command, which was told of it; look there."


class _Search:
    """A client's search for its coordinator: since when, and how long without a pause."""

    __slots__ = ("began_ns", "found", "last_ns", "longest_ns")

    def __init__(self) -> None:
        self.began_ns = 0
        self.last_ns = 0
        self.longest_ns = 0
        self.found = False

    def goes_on(self, ns: int) -> None:
        """Extends the episode by another refusal at ``ns``; after a discovery long ago a new one begins."""
        self.found = False
        if ns - self.last_ns > FOUND_NS:
            self.began_ns = ns
        self.last_ns = ns
        self.longest_ns = max(self.longest_ns, ns - self.began_ns)


class ErrorRule(Rule):
    """Error codes that clients are answered with, one finding for each code and client.

    Any other error code in lower case, as `message_too_large` (by its meaning; what clients retry is info up to 3): a
    client was answered with it; with the partitions it stands beneath, the sizes, the user, who took the right away
    that is missing, and what the broker says.
    """

    apis = frozenset({FIND_COORDINATOR, INIT_PRODUCER_ID, CREATE_ACLS, DELETE_ACLS})
    codes = tuple(name.lower() for name in MEANINGS)

    def __init__(self, context: Context, judged: frozenset[str] = frozenset()) -> None:
        super().__init__(context)
        self._judged = judged
        self._cases = context.tally()
        self._retriable: dict[str, bool] = {}
        self._of_admins: dict[tuple[str, str], bool] = {}
        self._searches: dict[tuple[str, str], _Search] = {}
        self._coordinators: dict[str, str] = {}
        self._acls = AclChanges(context.budget)

    def failure(self, exchange: Exchange) -> None:
        """Count every error code of an answer once, with the topics and partitions that it stands beneath."""
        if not exchange.errors:
            return
        packet, ns = place_of(exchange)
        cases: dict[str, Case] = {}
        for error in exchange.errors[:MAX_PLACES]:
            if error[2] in self._judged or is_step(exchange.api_key, error[2]):
                continue
            place = error_place(exchange, error, self.context)
            case = cases.get(place.name)
            if case is None:
                case = cases[place.name] = self._count(exchange, place.name, packet, ns)
                self._retriable[place.name] = place.retriable
            if place.topic:
                case.note("topics", [place.topic])
                case.note("concerns", [place.what])
            if place.message:
                case.note("messages", [place.message])

    def exchange(self, exchange: Exchange) -> None:
        """Ends the search of a client that has found its coordinator, and remembers where that is, and changes of
        ACLs."""
        if exchange.api_key in (CREATE_ACLS, DELETE_ACLS):
            self._acls.note(exchange)
        elif exchange.api_key == FIND_COORDINATOR:
            self._learn(exchange)
        if self._searches and not exchange.errors and exchange.response is not None:
            client = client_of(exchange)
            for name in COORDINATOR_CODES:
                search = self._searches.get((client, name))
                if search is not None:
                    search.found = True

    def _learn(self, exchange: Exchange) -> None:
        """Takes the addresses of coordinators from a FindCoordinator response, by what they coordinate."""
        request, response = exchange.request, exchange.response
        asked = (request.body if request is not None else None) or {}
        answer = (response.body if response is not None else None) or {}
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
        """Who coordinates what a case is about, as far as it is known by now."""
        names = [f"group {name}" for name in case.noted("groups")]
        names += [f"transactional id {name}" for name in case.noted("transactions")]
        return [
            f"the coordinator of {name} was {self.context.cluster.broker_text(address)}"
            for name in names[:3]
            if (address := self._coordinators.get(name))
        ]

    def _taken_away(self, name: str, case: Case) -> list[str]:
        """Who took the right away that is missing, where the capture has that."""
        return self._acls.about(_denied(name, case), case.last_ns) if name.endswith(_DENIED) else []

    def _count(self, exchange: Exchange, name: str, packet: int, ns: int) -> Case:
        client = client_of(exchange)
        case = self._cases.case(client, name)
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
            case.note("skews", _skews((request.body if request is not None else None) or {}, ns))
        if name == "COORDINATOR_NOT_AVAILABLE" and exchange.api_key == FIND_COORDINATOR and case.count == 1:
            case.note("former", self._former(case))
        if name in COORDINATOR_CODES and len(self._searches) < MAX_SUBJECTS:
            self._searches.setdefault((client, name), _Search()).goes_on(ns)
        self._of_admins[client, name] = exchange.api_key in ADMIN_APIS and case.count <= FEW
        return case

    def findings(self) -> Iterator[Finding]:
        """One finding for each code and client."""
        overdue = self.context.overdue
        for client, name, case in self._cases:
            retriable = self._retriable.get(name, False)
            admin = self._of_admins.get((client, name), False)
            meaning = MEANINGS.get(name) or Meaning(
                "info" if retriable else "warning",
                "",
                "Clients retry this by themselves." if retriable else "Clients do not retry this: look at the answers.",
            )
            if name in COORDINATOR_CODES:
                groups, ids = case.noted("groups"), case.noted("transactions")
                apis = case.noted("apis")
                unstored = unstored_meaning(apis, groups, ids) if name == "COORDINATOR_NOT_AVAILABLE" else None
                meaning = no_producer_id(apis, ids) or unstored or coordinator_meaning(name, groups, ids)
            severity = meaning.severity
            search = self._searches.get((client, name))
            if search is not None:
                in_vain = not search.found and case.count >= IN_VAIN and search.longest_ns >= IN_VAIN_NS
                passing = search.longest_ns <= COORDINATOR_NS and not in_vain
                severity = "error" if in_vain and search.longest_ns > COORDINATOR_NS else severity
            else:
                passing = (retriable or is_follower(case)) and case.count <= FEW
            if severity == "warning" and (admin or passing):
                severity = "info"
            remedy = _ADMIN_REMEDY if admin and name not in MEANINGS else meaning.remedy
            yield found(
                name.lower(),
                severity,
                client,
                "; ".join([f"{name}: {_title(name, meaning, case)}", *self._taken_away(name, case)]),
                remedy,
                case,
                _numbers(name, case),
                details=[
                    *case.noted("skews")[:3],
                    *case.noted("former"),
                    *([overdue[client]] if name == "INVALID_TXN_STATE" and client in overdue else []),
                    *broker_says(case.noted("messages")),
                ],
                explains={"metadata_storm": as_clients(client)} if severity == "error" else {},
                rank=ERROR,
            )


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


#: Groups and transactional ids named of one exchange.
MAX_NOTED = 5


def _title(name: str, meaning: Meaning, case: Case) -> str:
    """The title of a finding: what a code means, with the user and resource of a denial, or the API alone."""
    apis = listed(case.noted("apis"))
    if name.endswith(_DENIED):
        users, what = listed(case.noted("principals")), _denied(name, case)
        on = f" on {listed(what)}" if what else ""
        return f"{f'user {users}' if users else 'its user'} {meaning.title} ({apis}{on})"
    if meaning.title:
        return meaning.title
    concerns = case.noted("concerns")
    return f"the broker answers {apis} with it" + (f" for {listed(concerns)}" if concerns else "")


def _denied(name: str, case: Case) -> list[str]:
    """What somebody has no right to: topics, groups, transactional ids."""
    return [
        *(f"topic {topic}" for topic in case.noted("topics")),
        *(f"group {group}" for group in case.noted("groups") if name.startswith("GROUP")),
        *(f"transactional id {one}" for one in case.noted("transactions") if name.startswith("TRANSACTIONAL")),
    ]


def is_follower(case: Case) -> bool:
    """Whether the request is a follower's, which tries again after any error."""
    return all("fetcher" in client.lower() for client in case.noted("clients"))


def _numbers(name: str, case: Case) -> dict[str, Any]:
    """What stands with a code: APIs, partitions, groups, users; the largest request's size where that counts."""
    concerns = [
        *case.noted("apis"),
        *case.noted("concerns"),
        *(f"group {group}" for group in case.noted("groups")),
        *(f"transactional id {one}" for one in case.noted("transactions")),
    ]
    numbers: dict[str, Any] = {"error": name, "concerns": concerns}
    if case.noted("principals"):
        numbers["users"] = case.noted("principals")
    if case.noted("messages"):
        numbers["error_messages"] = case.noted("messages")
    if name in ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"):
        numbers["largest_request_bytes"] = case.most
    return numbers
