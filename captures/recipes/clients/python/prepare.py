"""Create topics, and wake the group coordinator, before the recording starts.

Usage: prepare.py BOOTSTRAP TOPIC[:PARTITIONS[:REPLICAS]]...
"""

import sys

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, *wanted = sys.argv[1:]
topics = []
for text in wanted:
    name, *counts = text.split(":")
    partitions, replicas = (*map(int, counts), *(1, 1)[len(counts) :])
    topics.append(NewTopic(name, partitions, replicas))

admin = AdminClient({"bootstrap.servers": bootstrap})
for future in admin.create_topics(topics).values() if topics else ():
    future.result(30)

# The first question about a group creates the internal topic of committed offsets.
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "prepare"})
consumer.committed([TopicPartition("any", 0)], 30)
consumer.close()
