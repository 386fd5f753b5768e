"""Which fields of messages name a topic, a group, a transactional id or a partition, whatever the message.

By the names that Kafka gives its fields, so that no table per API is needed and APIs that come later are read too.
"""

from __future__ import annotations

from typing import Final

#: Text fields that always hold a topic's name, the first that is not empty for all of a structure.
TOPIC_FIELDS: Final = ("topic", "topic_name", "sink_topic")
#: Arrays whose elements' ``name`` is a topic's: those with ``topic`` in their own name, and these.
_TOPIC_PARENTS: Final = frozenset({"responses", "results"})
TOPIC_LISTS: Final = frozenset({"topic_names", "subscribed_topic_names", "source_topics", "repartition_sink_topics"})
TOPIC_ID: Final = "topic_id"
GROUP_FIELDS: Final = frozenset({"group_id"})
GROUP_LISTS: Final = frozenset({"group_ids", "groups_names", "groups"})
TRANSACTION_FIELDS: Final = frozenset({"transactional_id", "v3_and_below_transactional_id"})
TRANSACTION_LISTS: Final = frozenset({"transactional_ids"})
PARTITION_FIELDS: Final = frozenset({"partition", "partition_index", "partition_id"})
PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes", "partition_ids"})

#: Arrays of topics, topics' names and partition indexes in Produce, Fetch and the like, by any version's names.
TOPIC_ARRAYS: Final = ("topics", "topic_data", "responses")
TOPIC_NAMES: Final = ("name", "topic", "topic_name")
PARTITION_INDEXES: Final = ("index", "partition", "partition_index")
#: Fields that hold record sets.
RECORD_SETS: Final = frozenset({"records", "unaligned_records"})
#: Their wire types.
RECORD_SET_TYPES: Final = frozenset({"RECORDS", "COMPACT_RECORDS"})

#: Fields that say by another one of what kind the thing is that they name.
RESOURCE_FIELD: Final = "resource_type"
RESOURCE_NAME: Final = "resource_name"
#: ConfigResource.Type
TOPIC_RESOURCE: Final = 2
KEY_FIELDS: Final = frozenset({"key", "coordinator_keys"})


def is_topic_field(name: str) -> bool:
    """Whether a text field of that name always holds a topic's name."""
    return name in TOPIC_FIELDS


def is_partition(name: str, parent: str, *, is_list: bool) -> bool:
    """Whether a number of that name in ``parent`` is a partition's, or those of a list are."""
    if is_list:
        return name in PARTITION_LISTS
    return name in PARTITION_FIELDS or (name == "index" and "partition" in parent)


def holds_topics(parent: str) -> bool:
    """Whether ``name`` in the elements of an array called ``parent`` is a topic's name."""
    return "topic" in parent or parent in _TOPIC_PARENTS
