"""Create topics, and wake the group coordinator, before the recording starts.

Usage: prepare.py BOOTSTRAP NAME[:PARTITIONS[:REPLICAS[:SETTING=VALUE]]]...
"""

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def topic(text: str) -> NewTopic:
    """The topic that a word of the command line asks for."""
    name, partitions, replicas, setting = (*text.split(":"), *("1", "1", "")[text.count(":") :])
    config = dict([setting.split("=")]) if setting else {}
    return NewTopic(name, int(partitions), int(replicas), config=config)


bootstrap, *wanted = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": bootstrap})
if wanted:
    for future in admin.create_topics([topic(text) for text in wanted]).values():
        future.result(30)

# The first question about a group creates the internal topic of committed offsets; it may take some asking.
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "prepare"})
while True:
    try:
        consumer.committed([TopicPartition("any", 0)], 30)
        break
    except KafkaException as error:
        if not error.args[0].retriable() and error.args[0].code() != KafkaError.NOT_COORDINATOR:
            raise
        time.sleep(0.2)
consumer.close()
