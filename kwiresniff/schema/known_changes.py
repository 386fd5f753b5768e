"""What releases of Kafka changed in a message without a new version number, as far as it is known, with the reason.

Our definitions have the later form of everything here. Source: the definitions in the jars of all releases since 2.2.
"""

from __future__ import annotations

#: Why a release may lack a tagged field that our definitions have.
TAGGED_LATER = "a later release added the tagged {}, as it may at any time (KIP-482)"

#: Versions that are different in other ways, mostly because they were changed while what they are for was on trial.
CHANGED_IN_PLACE: dict[tuple[str, str, int], str] = {
    ("EndQuorumEpoch", "request", 0): "2.8 dropped replica_id, while KRaft was on trial (KIP-595)",
    ("LeaderChangeMessage", "data", 0): "2.8 added granting_voters and 3.0 version, while KRaft was on trial (KIP-595)",
    ("ConsumerGroupHeartbeat", "request", 0): "3.7 dropped the client assignors of the first trial (KIP-848)",
    ("ConsumerGroupHeartbeat", "response", 0): "3.7 dropped the client assignors of the first trial (KIP-848)",
    ("ConsumerGroupDescribe", "response", 0): "3.8 dropped the client assignors of the first trial (KIP-848)",
    ("ReadShareGroupStateSummary", "response", 0): "4.1 added leader_epoch, while share groups were on trial (KIP-932)",
    ("StreamsGroupHeartbeat", "response", 0): "4.2 took the default of status away, while it was on trial (KIP-1071)",
    ("request", "header", 0): "2.4 numbered the headers: what was 0 alone is 1, and 0 is that of ControlledShutdown v0",
}

#: Releases that gave a default to fields without a tag, which changes no byte, by (message, kind, path).
DEFAULT_SINCE: dict[tuple[str, str, str], str] = {
    ("CreatePartitions", "response", "results.error_message"): "2.5",
    ("CreateTopics", "request", "timeout_ms"): "2.3",
    ("DeleteTopics", "request", "topics.name"): "3.0",
    ("Fetch", "request", "replica_id"): "3.5",
    ("Fetch", "response", "responses.partitions.preferred_read_replica"): "2.7",
    ("InitProducerId", "response", "producer_id"): "2.3",
    ("JoinGroup", "response", "generation_id"): "2.3",
    ("ListOffsets", "request", "topics.partitions.current_leader_epoch"): "2.7",
    ("ListOffsets", "request", "topics.partitions.max_num_offsets"): "2.7",
    ("ListOffsets", "response", "topics.partitions.leader_epoch"): "2.7",
    ("Metadata", "response", "brokers.rack"): "2.3",
    ("Metadata", "response", "cluster_id"): "2.3",
    ("OffsetFetch", "response", "topics.partitions.committed_leader_epoch"): "2.4",
    ("OffsetForLeaderEpoch", "response", "topics.partitions.end_offset"): "2.8",
    ("Produce", "request", "transactional_id"): "2.8",
}
#: The releases that called record sets so; before that the definitions had them as bytes, which are the same bytes.
RECORDS_SINCE: dict[tuple[str, str, str], str] = {
    ("Fetch", "response", "responses.partitions.records"): "2.7",
    ("Produce", "request", "topic_data.partition_data.records"): "2.8",
}


def known_change(message: str, kind: str, path: str, attribute: str, theirs: object) -> str:
    """Why a release says ``theirs`` of a field's ``attribute``, where our definitions say something else; or empty."""
    field = (message, kind, path)
    if attribute == "default" and theirs in (0, "") and field in DEFAULT_SINCE:
        return f"{DEFAULT_SINCE[field]} gave {path.rpartition('.')[2]} that default; it is on the wire in any case"
    if attribute == "type" and theirs == "bytes" and field in RECORDS_SINCE:
        return f"{RECORDS_SINCE[field]} called them records; they are the same bytes"
    return ""
