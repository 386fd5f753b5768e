"""Kafka's error codes: what each amounts to, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kwiresniff.analysis.doctor.wording import listed


class Meaning(NamedTuple):
    """What an error code amounts to."""

    severity: str
    title: str
    remedy: str


_COORDINATOR_TITLES: Final = {
    "COORDINATOR_NOT_AVAILABLE": "nobody is the coordinator of {of}",
    "COORDINATOR_LOAD_IN_PROGRESS": "the coordinator of {of} is still loading what it has to know",
    "NOT_COORDINATOR": "asks a broker that is not the coordinator of {of}",
}
#: An idempotent producer without a transactional id asks any broker, which has its ids from the controller.
_NO_PRODUCER_ID: Final = Meaning(
    "warning",
    "waits for a producer id, which the broker does not have yet",
    "Normal for a moment after a broker has started. Lasting: the broker does not reach the controller, which hands "
    "out producer ids.",
)
#: Codes that refuse a group of another kind, as the message beside them says.
GROUP_KINDS: Final = frozenset({"GROUP_ID_NOT_FOUND", "INCONSISTENT_GROUP_PROTOCOL"})
OTHER_KIND: Final = Meaning(
    "error",
    "its group.id is that of a group of another kind",
    "A group.id is taken by one kind of group at a time: consumers, share consumers, Kafka Streams, Connect. Give each "
    "application one of its own, or delete the other group once it has no members (kafka-groups --list).",
)
_DENIED = Meaning(
    "error",
    "is not allowed to do what it asks for",
    "Compare the principal (see: kwiresniff clients) with the ACLs, the pattern type of the ACL included.",
)
_TOO_LARGE = Meaning(
    "error",
    "sends batches larger than the broker takes",
    "Bring max.request.size and batch.size of the producer below max.message.bytes of the topic, or raise that and "
    "the replicas' fetch sizes with it.",
)


def coordinator_meaning(name: str, groups: Sequence[str], transactional_ids: Sequence[str]) -> Meaning:
    """What an error code about coordinators amounts to for groups and transactional ids, both of which may be empty."""
    of = [*(f"group {group}" for group in groups), *(f"transactional id {one}" for one in transactional_ids)]
    topics = ["__consumer_offsets"] if groups or not of else []
    topics += ["__transaction_state"] if transactional_ids or not of else []
    return Meaning(
        "warning",
        _COORDINATOR_TITLES[name].format(of=listed(of, 3) or "its group or transactional id"),
        f"Normal for seconds after a broker has started or stopped. Lasting: see that {' and '.join(topics)} could be "
        "created (replication factor), and that its partitions have leaders: with a single replica they are gone for "
        "as long as its broker is.",
    )


def unstored_meaning(apis: Sequence[str], groups: Sequence[str], transactional_ids: Sequence[str]) -> Meaning | None:
    """What COORDINATOR_NOT_AVAILABLE amounts to from a coordinator itself, which is asked for something else: it does
    not get what it was to store replicated in time (so it answers instead of NOT_ENOUGH_REPLICAS or REQUEST_TIMED_OUT),
    or starts or stops. None where somebody only looked for it."""
    if "FindCoordinator" in apis or not apis:
        return None
    of = listed([*(f"group {one}" for one in groups), *(f"transactional id {one}" for one in transactional_ids)], 3)
    topic = "__transaction_state" if transactional_ids and not groups else "__consumer_offsets"
    return Meaning(
        "warning",
        f"the coordinator{f' of {of}' if of else ''} could not store it ({listed(apis)}), or was not ready",
        f"It writes to its partition of {topic} with acks=all: see whether enough of its replicas are in sync and "
        "answer (a broker that is down or stands still). Normal for seconds after a broker has started or stopped.",
    )


def no_producer_id(apis: Sequence[str], transactional_ids: Sequence[str]) -> Meaning | None:
    """What the same code amounts to where no coordinator is asked: InitProducerId without a transactional id."""
    return _NO_PRODUCER_ID if list(apis) == ["InitProducerId"] and not transactional_ids else None


MEANINGS: Final[dict[str, Meaning]] = {
    "LEADER_NOT_AVAILABLE": Meaning(
        "warning",
        "asks for partitions that have no leader",
        "Normal for a moment after a topic is created. Lasting: all replicas of the partition are offline.",
    ),
    "COORDINATOR_NOT_AVAILABLE": coordinator_meaning("COORDINATOR_NOT_AVAILABLE", [], []),
    "COORDINATOR_LOAD_IN_PROGRESS": coordinator_meaning("COORDINATOR_LOAD_IN_PROGRESS", [], []),
    "NOT_COORDINATOR": coordinator_meaning("NOT_COORDINATOR", [], []),
    "TOPIC_AUTHORIZATION_FAILED": _DENIED,
    "GROUP_AUTHORIZATION_FAILED": _DENIED,
    "CLUSTER_AUTHORIZATION_FAILED": _DENIED,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _DENIED,
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": _DENIED,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Meaning(
        "error",
        "an idempotent producer and the broker disagree about what was written",
        "Look for batches lost before this one: timeouts, retries with more than five requests in flight, a truncated "
        "log after an unclean leader election.",
    ),
    "UNKNOWN_PRODUCER_ID": Meaning(
        "warning",
        "the broker has forgotten the producer's state",
        "Retention removed all its records, or transactional.id.expiration.ms passed. Newer clients recover by "
        "themselves.",
    ),
    "MESSAGE_TOO_LARGE": _TOO_LARGE,
    "RECORD_LIST_TOO_LARGE": Meaning(
        "error",
        "sends batches larger than a segment of the log",
        "max.message.bytes of the topic lets them pass, and its segment.bytes (log.segment.bytes of the broker) is "
        "smaller: raise it, or bring max.request.size and batch.size of the producer below it.",
    ),
    "CORRUPT_MESSAGE": Meaning(
        "error",
        "the broker found a batch that is damaged or not allowed",
        "A checksum that fails means memory or network hardware; a record without a key in a compacted topic gives the "
        "same code.",
    ),
    "KAFKA_STORAGE_ERROR": Meaning(
        "error", "the broker cannot use a log directory", "Look at the broker's disks and its log for the directory."
    ),
    "REQUEST_TIMED_OUT": Meaning(
        "error",
        "the broker gave up waiting",
        "For Produce with acks=all: replicas are slow or gone. For admin requests: the controller is busy or away.",
    ),
    "GROUP_MAX_SIZE_REACHED": Meaning(
        "error", "the group has as many members as it may", "Raise group.max.size or run fewer members."
    ),
    "INCONSISTENT_GROUP_PROTOCOL": Meaning(
        "error",
        "the members of a group have no assignor or protocol in common",
        "Compare partition.assignment.strategy of its members (see the JoinGroup requests); roll changes in two steps.",
    ),
    "INVALID_TXN_STATE": Meaning(
        "error",
        "a transaction is not in the state its producer thinks",
        "Usually a transaction that timed out (transaction.timeout.ms) and was aborted by its coordinator.",
    ),
    "TOPIC_ALREADY_EXISTS": Meaning(
        "info", "creates a topic that exists", "Harmless when a deployment does it on purpose."
    ),
    "FETCH_SESSION_ID_NOT_FOUND": Meaning(
        "info",
        "the broker does not have the fetch session: it was restarted, or has evicted it",
        "The client begins a new one. Many without restarts: raise max.incremental.fetch.session.cache.slots on the "
        "brokers.",
    ),
    "INVALID_FETCH_SESSION_EPOCH": Meaning(
        "info", "a fetch session got out of step", "The client begins a new session; many point at lost connections."
    ),
    "STALE_CONTROLLER_EPOCH": Meaning(
        "info",
        "a broker was told something by a former controller",
        "Normal when the controller moves. Many: two brokers believe that they are the controller.",
    ),
    "STALE_BROKER_EPOCH": Meaning(
        "info",
        "speaks for a registration that has ended",
        "Normal when a broker restarts. Many: two brokers share a node.id, or one loses its session again and again.",
    ),
    "NEW_LEADER_ELECTED": Meaning(
        "info", "a leader was elected while the ISR was changed", "Normal when brokers come and go."
    ),
    "INELIGIBLE_REPLICA": Meaning(
        "info",
        "wants a replica in the ISR whose broker is fenced or shutting down",
        "Leaders try again. Lasting: see why the broker is fenced (its heartbeats to the controller).",
    ),
    "GROUP_ID_NOT_FOUND": Meaning(
        "warning",
        "asks for a group that does not exist",
        "It has no members and no offsets any more (offsets.retention.minutes), or its name is misspelt.",
    ),
    "THROTTLING_QUOTA_EXCEEDED": Meaning(
        "warning", "is over its quota for changes", "Spread topic creations and deletions, or raise the quota."
    ),
    "POLICY_VIOLATION": Meaning(
        "warning", "asks for what a policy of the cluster forbids", "The error message of the answer names the policy."
    ),
    "REBOOTSTRAP_REQUIRED": Meaning(
        "warning",
        "reached another node, or another cluster, than it asked for",
        "What it knows of the addresses is out of date, or something on the way leads to other brokers than those that "
        "advertise the address: a load balancer, a name that resolves differently. It begins at its bootstrap servers "
        "again.",
    ),
    "INVALID_TIMESTAMP": Meaning(
        "error",
        "sends records with timestamps that the topic does not take, and none of their batch is written",
        "The clock of the producer's machine is wrong, or the application sets timestamps of its own: compare them "
        "with message.timestamp.after.max.ms and message.timestamp.before.max.ms of the topic.",
    ),
    "INVALID_RECORD": Meaning(
        "error",
        "sends records that the broker does not take, and none of their batch is written",
        "What the broker says of it names the reason. Mostly a record without a key for a topic that is compacted "
        "(cleanup.policy=compact).",
    ),
    "UNSUPPORTED_COMPRESSION_TYPE": Meaning(
        "error",
        "reads or writes a codec that its version of the request does not have",
        "zstd needs Produce v7 and Fetch v10 (Kafka 2.1): update the client, or use another compression.type for the "
        "topic and its producers.",
    ),
    "INVALID_REQUIRED_ACKS": Meaning("error", "asks for acks that there are not", "acks is 0, 1 or all (-1)."),
    "INVALID_TRANSACTION_TIMEOUT": Meaning(
        "error",
        "asks for longer transactions than the broker allows",
        "transaction.timeout.ms of the producer must not exceed transaction.max.timeout.ms of the broker (15 min).",
    ),
    "INVALID_PRODUCER_ID_MAPPING": Meaning(
        "warning",
        "has a producer id that its transactional id does not have any more",
        "It was idle longer than transactional.id.expiration.ms, or another instance took the id: the producer has to "
        "be made anew.",
    ),
    "TRANSACTION_ABORTABLE": Meaning(
        "warning", "its transaction has failed and has to be aborted", "The application aborts it and tries again."
    ),
    "INVALID_SESSION_TIMEOUT": Meaning(
        "error",
        "asks for a session timeout that the broker does not allow",
        "Brokers allow group.min.session.timeout.ms to group.max.session.timeout.ms.",
    ),
    "INVALID_GROUP_ID": Meaning("error", "has no group.id, or none that is valid", "Set group.id of the consumer."),
    "INVALID_TOPIC_EXCEPTION": Meaning(
        "warning",
        "names a topic as none may be named",
        "Letters, digits, dots, underscores and hyphens, 249 of them at the most; internal topics are not for clients.",
    ),
    "INVALID_REPLICATION_FACTOR": Meaning(
        "warning",
        "asks for more replicas than there are brokers",
        "Lower the replication factor of the topic, or see which brokers are missing.",
    ),
    "OFFSET_METADATA_TOO_LARGE": Meaning(
        "error",
        "commits offsets with more metadata than the broker takes",
        "Shorten it, or raise offset.metadata.max.bytes.",
    ),
    "DELEGATION_TOKEN_EXPIRED": Meaning(
        "error",
        "uses a delegation token that has expired",
        "Renew it in time, or make a new one (kafka-delegation-tokens).",
    ),
    "UNKNOWN_SERVER_ERROR": Meaning(
        "warning",
        "the broker failed in a way that it has no error code for",
        "The log of that broker has the exception, at that time.",
    ),
    "UNSUPPORTED_ASSIGNOR": Meaning(
        "error",
        "asks for an assignor that the broker does not have",
        "Compare group.remote.assignor of the consumer with group.consumer.assignors of the brokers.",
    ),
    "INVALID_REGULAR_EXPRESSION": Meaning(
        "error",
        "subscribes to a pattern that is none",
        "The broker reads it as RE2/J does, which differs from Java's own.",
    ),
    "STREAMS_INVALID_TOPOLOGY": Meaning(
        "error",
        "a streams application has a topology that its group does not take",
        "All instances of an application.id must run the same topology: look for an old version that still runs.",
    ),
    "INCONSISTENT_CLUSTER_ID": Meaning(
        "error", "speaks to a broker of another cluster", "Compare its bootstrap servers, and the cluster id on disk."
    ),
    "DUPLICATE_BROKER_REGISTRATION": Meaning(
        "error", "a broker registers with a node.id that another one has", "Give each broker a node.id of its own."
    ),
    "SECURITY_DISABLED": Meaning(
        "warning",
        "asks for ACLs of a cluster without an authorizer",
        "Set authorizer.class.name of brokers and controllers.",
    ),
    "UNSTABLE_OFFSET_COMMIT": Meaning(
        "info",
        "waits for offsets that an open transaction is about to commit",
        "Clients ask again. Lasting: a transactional producer hangs (see kwiresniff producers).",
    ),
    "OFFSET_NOT_AVAILABLE": Meaning(
        "info", "asks a new leader, which does not know yet how far it may give out its log", "Clients ask again."
    ),
    "FETCH_SESSION_TOPIC_ID_ERROR": Meaning(
        "info", "a fetch session began with names and goes on with ids, or the reverse", "The client begins a new one."
    ),
    "SHARE_SESSION_NOT_FOUND": Meaning(
        "info", "share sessions are evicted, or the leader of the partition moved", "The client begins a new one."
    ),
    "INVALID_SHARE_SESSION_EPOCH": Meaning(
        "info", "a share session got out of step", "The client begins a new one; many point at lost connections."
    ),
}
