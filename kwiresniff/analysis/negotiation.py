"""Error codes that are no errors: ordinary steps by which clients and brokers come to an agreement.

A first join is sent back with the member's id (KIP-394); whoever is in a group learns by an error code that it
rebalances; a client asks for ApiVersions in its newest version and takes what the answer offers (KIP-511); a producer
waits while the transaction before is completed; a coordinator loads what it has to know when its broker has started.
And a long poll that is under way when the capture or the consumer ends is not answered any more.
"""

from __future__ import annotations

from typing import Final

from kwiresniff.base.api_keys import (
    ADD_RAFT_VOTER,
    ALTER_CLIENT_QUOTAS,
    ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    ALTER_SHARE_GROUP_OFFSETS,
    ALTER_USER_SCRAM_CREDENTIALS,
    API_VERSIONS,
    CONSUMER_GROUP_DESCRIBE,
    CREATE_ACLS,
    CREATE_DELEGATION_TOKEN,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_SHARE_GROUP_OFFSETS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ELECT_LEADERS,
    EXPIRE_DELEGATION_TOKEN,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    LIST_GROUPS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    OFFSET_DELETE,
    REMOVE_RAFT_VOTER,
    RENEW_DELEGATION_TOKEN,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    UNREGISTER_BROKER,
    UPDATE_FEATURES,
)
from kwiresniff.model import STEPS

#: Codes of a coordinator that is not there yet.
COORDINATOR_CODES: Final = frozenset({
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
})  # fmt: skip

#: APIs by which somebody administers a cluster; whoever asked sees the error at once.
ADMIN_APIS: Final = frozenset({
    DESCRIBE_GROUPS, LIST_GROUPS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, DESCRIBE_ACLS, CREATE_ACLS,
    DELETE_ACLS, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS, CREATE_PARTITIONS,
    CREATE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN, EXPIRE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN,
    DELETE_GROUPS, ELECT_LEADERS, INCREMENTAL_ALTER_CONFIGS, ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS, OFFSET_DELETE, DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS,
    DESCRIBE_USER_SCRAM_CREDENTIALS, ALTER_USER_SCRAM_CREDENTIALS, UPDATE_FEATURES, DESCRIBE_CLUSTER,
    DESCRIBE_PRODUCERS, UNREGISTER_BROKER, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, CONSUMER_GROUP_DESCRIBE,
    LIST_CONFIG_RESOURCES, DESCRIBE_TOPIC_PARTITIONS, SHARE_GROUP_DESCRIBE, ADD_RAFT_VOTER, REMOVE_RAFT_VOTER,
    STREAMS_GROUP_DESCRIBE, DESCRIBE_SHARE_GROUP_OFFSETS, ALTER_SHARE_GROUP_OFFSETS, DELETE_SHARE_GROUP_OFFSETS,
})  # fmt: skip


def is_step(api_key: int, name: str) -> bool:
    """Whether an error code in a response of that API is an ordinary step of the protocol, however long it lasts."""
    if name in COORDINATOR_CODES:
        return False  # for a while
    if api_key == CONSUMER_GROUP_DESCRIBE and name == "GROUP_ID_NOT_FOUND":
        return True  # admin clients ask this first, and then by DescribeGroups, of classic groups as well
    return name in STEPS or (api_key == API_VERSIONS and name == "UNSUPPORTED_VERSION")
