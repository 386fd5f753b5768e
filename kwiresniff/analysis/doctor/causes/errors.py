"""Error codes that clients are answered with: what each means for the people who run the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import ERROR, Cause, Explanation
from kwiresniff.analysis.doctor.error_meanings import (
    MEANINGS,
    Meaning,
    coordinator_meaning,
    no_producer_id,
    unstored_meaning,
)
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.errors import DENIED, FEW
from kwiresniff.analysis.doctor.wording import broker_says, listed
from kwiresniff.analysis.negotiation import COORDINATOR_CODES
from kwiresniff.base.flows import host_of
from kwiresniff.results.findings import scope_of

#: For so long a coordinator may not be there: after a start, or when the topic behind it is made, it takes seconds.
COORDINATOR_NS: Final = 10_000_000_000
#: So many times in vain, for so long, and never found, is not what happens after a start.
IN_VAIN: Final = 10
IN_VAIN_NS: Final = 2_000_000_000

_ADMIN_REMEDY: Final = "An answer to somebody's command, which was told of it; look there."
_UNKNOWN: Final = Meaning("warning", "", "Clients do not retry this: look at the answers.")
_RETRIABLE: Final = Meaning("info", "", "Clients retry this by themselves.")


class AnsweredWithError(Cause):
    """Any other error code in lower case, as `message_too_large` (by its meaning; what clients retry is info up to 3):
    a client was answered with it; with the partitions it stands beneath, the sizes, the user, who took the right away
    that is missing, and what the broker says.

    `replication_denied` (error): brokers refuse the fetches of followers, whose user lacks the right to ClusterAction:
    all replicas but the leaders' own leave the ISR. That writes are refused then is a symptom.
    """

    codes = ("replication_denied",)
    explains = ("answered_with_error",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By client and code, the denials of followers together."""
        refused = observed.of("answered_with_error")
        followers = [one for one in refused if one.numbers["is_followers"] and one.name("error").endswith(DENIED)]
        for one in refused:
            if one not in followers and (found := self.explain(one, observed)) is not None:
                yield found
        if followers:
            yield self._denied_replication(followers, observed)

    def _denied_replication(self, followers: list[Observation], observed: Observed) -> Explanation:
        clients = sorted({client for one in followers for client in one.named("client")})
        users = list(dict.fromkeys(user for one in followers for user in one.noted("principals")))
        topics = list(dict.fromkeys(topic for one in followers for topic in one.noted("topics")))
        leaders = list(dict.fromkeys(broker for one in followers for broker in one.noted("brokers")))
        errors = sorted({one.name("error") for one in followers})
        # Clients have another listener than followers have.
        hosts = {host_of(leader) for leader in leaders}
        late = {broker for one in observed.of("unanswered", "writes_waited") for broker in one.named("broker")}
        brokers = [*leaders, *sorted(broker for broker in late if host_of(broker) in hosts)]
        return Explanation(
            code="replication_denied",
            subject="replication",
            title=f"{listed(leaders)} {'refuses' if len(leaders) == 1 else 'refuse'} the fetches of followers "
            f"({listed(errors)}): {f'user {listed(users)}' if users else 'their user'} lacks a right; nothing of "
            f"{listed(topics)} is copied",
            remedy="Give the brokers' user the right to ClusterAction on the cluster (kafka-acls --add --cluster "
            "--operation ClusterAction), or name it in super.users. Until then writes with acks=all fail once the ISR "
            "is smaller than min.insync.replicas.",
            explained=tuple(followers),
            supports=tuple(one.text for one in followers),
            severity="error",
            numbers={"errors": errors, "users": users, "followers": clients, "concerns": topics},
            details=tuple(dict.fromkeys(text for one in followers for text in one.numbers["taken_away"])),
            explains=dict.fromkeys(
                (
                    "not_enough_replicas",
                    "under_replicated",
                    "replica_wait",
                    "request_timed_out",
                    "slow",
                    "unanswered",
                    "request_timeout",
                ),
                scope_of("topic", topics) | scope_of("broker", brokers),
            ),
        )

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        name, numbers, meaning = one.name("error"), one.numbers, _meaning(one)
        severity, is_admins = _severity(one, meaning), numbers["is_admins"]
        title = f"{name}: {_title(name, meaning, one)}"
        overdue = numbers["overdue"] if name == "INVALID_TXN_STATE" else ""
        more: dict[str, object] = {"users": one.noted("principals")} if one.noted("principals") else {}
        more |= {"error_messages": one.noted("messages")} if one.noted("messages") else {}
        if name in ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"):
            more["largest_request_bytes"] = numbers["largest_bytes"]
        concerns = [*one.noted("apis"), *one.noted("concerns"), *(f"group {group}" for group in one.noted("groups"))]
        concerns += [f"transactional id {each}" for each in one.noted("transactions")]
        details = [*one.noted("skews")[:3], *one.noted("former"), *([overdue] if overdue else [])]
        client = scope_of("client", one.named("client"))
        return self.told(
            one,
            "; ".join([title, *numbers["taken_away"]]),
            _ADMIN_REMEDY if is_admins and name not in MEANINGS else meaning.remedy,
            code=name.lower(),
            severity=severity,
            rank=ERROR,
            numbers={"error": name, "concerns": concerns, **more},
            details=(*details, *broker_says(one.noted("messages"))),
            explains={"metadata_storm": client} if severity == "error" else {},
        )


def _meaning(one: Observation) -> Meaning:
    name = one.name("error")
    if name in COORDINATOR_CODES:
        apis, groups, ids = one.noted("apis"), one.noted("groups"), one.noted("transactions")
        unstored = unstored_meaning(apis, groups, ids) if name == "COORDINATOR_NOT_AVAILABLE" else None
        return no_producer_id(apis, ids) or unstored or coordinator_meaning(name, groups, ids)
    return MEANINGS.get(name) or (_RETRIABLE if one.numbers["retriable"] else _UNKNOWN)


def _severity(one: Observation, meaning: Meaning) -> str:
    """That of the code, less where it passes or is told to an administrator, more where a coordinator never comes."""
    numbers, severity, searched_ns = one.numbers, meaning.severity, one.numbers["searched_ns"]
    if searched_ns >= 0:
        in_vain = not numbers["found"] and one.count >= IN_VAIN and searched_ns >= IN_VAIN_NS
        if in_vain and searched_ns > COORDINATOR_NS:
            return "error"
        passing = searched_ns <= COORDINATOR_NS and not in_vain
    else:
        # A follower tries again after any error.
        passing = (numbers["retriable"] or numbers["is_followers"]) and one.count <= FEW
    return "info" if severity == "warning" and (numbers["is_admins"] or passing) else severity


def _title(name: str, meaning: Meaning, one: Observation) -> str:
    """What a code means, with the user and resource of a denial, or the API alone."""
    apis = listed(one.noted("apis"))
    if name.endswith(DENIED):
        users, what = listed(one.noted("principals")), one.numbers["denied"]
        on = f" on {listed(what)}" if what else ""
        return f"{f'user {users}' if users else 'its user'} {meaning.title} ({apis}{on})"
    if meaning.title:
        return meaning.title
    concerns = one.noted("concerns")
    return f"the broker answers {apis} with it" + (f" for {listed(concerns)}" if concerns else "")
