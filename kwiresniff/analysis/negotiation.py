"""Error codes that are no errors: ordinary steps by which clients and brokers come to an agreement.

A first join is sent back with the member's id (KIP-394); whoever is in a group learns by an error code that it
rebalances; a client asks for ApiVersions in its newest version and takes what the answer offers (KIP-511); a producer
waits while the transaction before is completed; a coordinator loads what it has to know when its broker has started.
And a long poll that is under way when the capture or the consumer ends is not answered any more.
"""

from __future__ import annotations

from typing import Final

from kwiresniff.base import api_keys
from kwiresniff.model import STEPS

#: Codes of a coordinator that is not there yet.
COORDINATOR_CODES: Final = frozenset({
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
})  # fmt: skip

#: APIs of administration; the person who asked sees the error at once.
ADMIN_APIS: Final = frozenset({
    api_keys.DESCRIBE_GROUPS, api_keys.LIST_GROUPS, api_keys.CREATE_TOPICS, api_keys.DELETE_TOPICS,
    api_keys.DELETE_RECORDS, api_keys.DESCRIBE_ACLS, api_keys.CREATE_ACLS, api_keys.DELETE_ACLS,
    api_keys.DESCRIBE_CONFIGS, api_keys.ALTER_CONFIGS, api_keys.ALTER_REPLICA_LOG_DIRS, api_keys.DESCRIBE_LOG_DIRS,
    api_keys.CREATE_PARTITIONS, api_keys.CREATE_DELEGATION_TOKEN, api_keys.RENEW_DELEGATION_TOKEN,
    api_keys.EXPIRE_DELEGATION_TOKEN, api_keys.DESCRIBE_DELEGATION_TOKEN, api_keys.DELETE_GROUPS,
    api_keys.ELECT_LEADERS, api_keys.INCREMENTAL_ALTER_CONFIGS, api_keys.ALTER_PARTITION_REASSIGNMENTS,
    api_keys.LIST_PARTITION_REASSIGNMENTS, api_keys.OFFSET_DELETE, api_keys.DESCRIBE_CLIENT_QUOTAS,
    api_keys.ALTER_CLIENT_QUOTAS, api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, api_keys.ALTER_USER_SCRAM_CREDENTIALS,
    api_keys.UPDATE_FEATURES, api_keys.DESCRIBE_CLUSTER, api_keys.DESCRIBE_PRODUCERS, api_keys.UNREGISTER_BROKER,
    api_keys.DESCRIBE_TRANSACTIONS, api_keys.LIST_TRANSACTIONS, api_keys.CONSUMER_GROUP_DESCRIBE,
    api_keys.LIST_CONFIG_RESOURCES, api_keys.DESCRIBE_TOPIC_PARTITIONS, api_keys.SHARE_GROUP_DESCRIBE,
    api_keys.ADD_RAFT_VOTER, api_keys.REMOVE_RAFT_VOTER, api_keys.STREAMS_GROUP_DESCRIBE,
    api_keys.DESCRIBE_SHARE_GROUP_OFFSETS, api_keys.ALTER_SHARE_GROUP_OFFSETS, api_keys.DELETE_SHARE_GROUP_OFFSETS,
})  # fmt: skip


def is_step(api_key: int, name: str) -> bool:
    """Whether an error code in a response of that API is an ordinary step of the protocol, however long it lasts."""
    if name in COORDINATOR_CODES:
        return False  # for a while
    if api_key == api_keys.CONSUMER_GROUP_DESCRIBE and name == "GROUP_ID_NOT_FOUND":
        return True  # admin clients ask this first, and then by DescribeGroups, of classic groups as well
    return name in STEPS or (api_key == api_keys.API_VERSIONS and name == "UNSUPPORTED_VERSION")
