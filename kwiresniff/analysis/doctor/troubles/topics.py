"""Topics that do not exist, and topics that are deleted while in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import ERROR, INCIDENT, Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed, grouped
from kwiresniff.analysis.doctor.troubles.missing_topics import LASTING_NS
from kwiresniff.analysis.doctor.troubles.throttling import ANONYMOUS
from kwiresniff.analysis.doctor.wording import clock, duration, listed, times
from kwiresniff.results.findings import scope_of

#: APIs that a client which writes sends.
_WRITING: Final = frozenset({"Metadata", "Produce", "InitProducerId", "AddPartitionsToTxn"})
#: Who asks so often, for ``LASTING_NS``, for a topic that is not created means to use it.
OFTEN: Final = 3
#: The time until all brokers know of a topic that is created or deleted.
YOUNG_NS: Final = 10_000_000_000
_ABSENT: Final = "which does not exist"
_BEFORE: Final = "before it was there"


def _deletion(one: Observation, observed: Observed) -> Observation | None:
    """The deletion of a topic after which a client asked for it."""
    deletions = observed.about([f"topic:{one.name('topic')}"], "topic_deletion")
    return deletions[0] if deletions and one.last_ns >= deletions[0].first_ns else None


def _is_deleted(one: Observation, observed: Observed) -> bool:
    """Whether a client goes on asking for a topic that is gone."""
    if not one.noted("used"):
        return False
    if _deletion(one, observed) is not None:
        return True
    gone = one.numbers["existed"] and one.numbers["seen_ns"] <= one.last_ns
    return bool(gone and one.count >= OFTEN and "Metadata" in one.noted("apis"))


class DeletedTopic(Cause):
    """`topic_deleted` (error; warning where the deletion is not in the capture): a topic was deleted while in use: by
    whom, who still asks for it, and whether it was made anew.
    """

    codes = ("topic_deleted",)
    explains = ("topic_missing", "topic_deletion")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        missing = [one for one in observed.of("topic_missing") if _is_deleted(one, observed)]
        for topic, users in grouped(missing, lambda one: one.name("topic")).items():
            yield self._deleted(topic, users, _deletion(users[0], observed))

    def _deleted(self, topic: str, users: list[Observation], deletion: Observation | None) -> Explanation:
        roles = {one.name("client"): one.numbers["role"] for one in users}
        used = [f"{client} ({role})" if role else client for client, role in roles.items()]
        again, by, client, user = False, "by whom is not in the capture", None, None
        if deletion is not None:
            again = users[0].numbers["seen_ns"] > max(one.last_ns for one in users)
            client, user = deletion.name("client"), deletion.numbers["user"]
            by = f"by {client}{f', user {user}' if user != ANONYMOUS else ''} at {clock(deletion.first_ns)}"
        of_topic = ("not_leader_or_follower", "records_lost", "offset_out_of_range", "rebalances")
        apis = dict.fromkeys(api for one in users for api in one.noted("apis"))
        return Explanation(
            code="topic_deleted",
            subject=f"topic {topic}",
            title=f"was deleted while in use, {by}; {listed(used)} still asked for it"
            + ("; it was made anew afterwards, without what it held" if again else ""),
            remedy=_MADE_ANEW if again else _DELETED,
            explained=(*users, *([deletion] if deletion is not None else [])),
            numbers={
                "topic": topic,
                "deleted_by": client,
                "user": user,
                "clients": list(roles),
                "concerns": [*apis, f"topic {topic}"],
                "errors": list(dict.fromkeys(name for one in users for name in one.noted("errors"))),
            },
            severity="error" if deletion is not None or "producer" in roles.values() else "warning",
            explains=symptoms("client", roles, "metadata_storm", "unanswered") | symptoms("topic", [topic], *of_topic),
        )


@cause("unknown_topic_or_partition", explains=("topic_missing",))
def unknown_topic(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`unknown_topic_or_partition` (error when it is produced to, warning when consumed for long, else info): a topic
    or partition that is not there, or not there yet.
    """
    if _is_deleted(one, observed):
        return None
    severity, how = _how(context, one)
    topic, errors, lasted_ns = one.name("topic"), one.noted("errors"), one.last_ns - one.first_ns
    partitions = [what for what in one.noted("concerns") if what != topic]
    what = f"topic {topic}"
    if len(partitions) == 1:
        what = f"partition {partitions[0]}"
    elif partitions:
        what, how = f"partitions {listed(partitions)}", how.replace("which does not", "which do not")
    over = f" in {duration(lasted_ns)}" if lasted_ns >= 1_000_000 else ""
    client = scope_of("client", one.named("client"))
    return told(
        one,
        f"{listed(errors)}: asks for {what}, {how}, {times(one.count)}{over}",
        _YOUNG if how == _BEFORE else _MISSING,
        severity=severity,
        rank=INCIDENT if severity == "error" else ERROR,
        numbers={
            "error": errors[0] if errors else "",
            "concerns": [*one.noted("apis"), f"topic {topic}", *partitions],
            "error_messages": one.noted("messages"),
            "users": one.noted("users"),
        },
        details=tuple(one.numbers["elsewhere"]),
        explains={"metadata_storm": client} if severity != "info" else {},
    )


def _how(context: Context, one: Observation) -> tuple[str, str]:
    """The severity of a missing topic, and in which way it is missing."""
    numbers, lasted_ns, apis = one.numbers, one.last_ns - one.first_ns, one.noted("apis")
    if not one.noted("used"):
        return "info", "as a follower that has not learnt of a change yet"
    if numbers["seen_ns"] > one.last_ns:
        return "info", _BEFORE
    if numbers["seen_ns"] and lasted_ns < YOUNG_NS:
        return "info", "which not every broker knows yet, or any more"
    produces = numbers["role"] == "producer" or "Produce" in apis
    lasting = one.count >= OFTEN and lasted_ns >= LASTING_NS
    if one.noted("admin") and not produces and not lasting:
        return "info", _ABSENT
    if not lasting and numbers["is_open"] and context.end_ns - one.last_ns < LASTING_NS:
        return "info", f"{_ABSENT}, or not yet: the capture ends"
    if not lasting and numbers["went_on"]:
        return "info", "which did not exist then"
    if produces:
        return "error", f"{_ABSENT}: nothing is delivered"
    if lasting and numbers["role"] != "consumer" and not _WRITING.isdisjoint(apis):
        return "error", f"{_ABSENT}: if it produces, nothing is delivered"
    return "warning" if lasting else "info", _ABSENT


_YOUNG: Final = "Normal while a topic is made, by auto.create.topics.enable for instance: it was there soon afterwards."

_MISSING: Final = (
    "Its name is misspelt, it was not created (auto.create.topics.enable is off), it was deleted, or the user has no "
    "right to see it."
)

_DELETED: Final = (
    "If that was not meant: create it again and restore what it held; deletions can be forbidden by ACLs. Else stop or "
    "reconfigure the clients named here, which go on asking."
)

_MADE_ANEW: Final = (
    "What it held is gone, and offsets that groups have committed are those of the topic before: restore what is "
    "needed, and reset the groups (kafka-consumer-groups --reset-offsets). Deletions can be forbidden by ACLs."
)
