"""Consumers that do not get what they might, beside a producer that goes on.

Usage: consumers.py BOOTSTRAP before TOPIC RECORDS SIZE, or latest|limited|seeking|pattern. ``before`` writes what
others read; ``latest`` begins at the end of topics that have records; ``limited`` asks for fewer bytes than a batch
has; ``seeking`` goes back to a record that it cannot read; ``pattern`` subscribes to topics by a pattern that no topic
has.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from workload import consume, produce, together

bootstrap, what, *rest = sys.argv[1:]


def write_before(topic: str, records: int, size: int) -> None:
    """Writes batches of many records to three partitions, before anybody is looked at."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 500_000})
    for number in range(records):
        producer.produce(topic, value=b"v" * size, partition=number % 3)
        if number % 100 == 99:
            producer.flush(10)
    producer.flush(10)


def shop(seconds: float, per_second: float = 40) -> None:
    produce(bootstrap, "shop", "orders", seconds, per_second, partitions=3)


def read(client: str, topic: str, seconds: float, act: Any = None, **settings: Any) -> None:
    count = consume(bootstrap, client, topic, seconds, act, **settings)
    print(f"fact: {client} read {count} records")


def seek_back(consumer: Consumer, message: Message, count: int) -> None:
    if message.partition() == 1 and (message.offset() or 0) >= 40:
        time.sleep(0.3)
        consumer.seek(TopicPartition("orders", 1, 40))


if what == "before":
    write_before(rest[0], int(rest[1]), int(rest[2]))
elif what == "latest":
    print("fact: newsletter has no committed offset and begins at the end (auto.offset.reset=latest)")
    together(lambda: shop(6, 10), lambda: read("newsletter", "orders", 6, auto_offset_reset="latest"))
elif what == "limited":
    limits = {"max_partition_fetch_bytes": 20_000, "fetch_message_max_bytes": 20_000}
    together(lambda: shop(12), lambda: read("archive", "history", 12, **limits))
elif what == "seeking":
    together(lambda: shop(10), lambda: read("mailer", "orders", 10, seek_back, auto_commit_interval_ms=1_000))
elif what == "pattern":
    print("fact: mailer subscribes to ^order-.*, which no topic matches")
    together(lambda: shop(13, 10), lambda: read("mailer", "^order-.*", 13))
