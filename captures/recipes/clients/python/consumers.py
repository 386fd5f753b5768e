"""Consumers that do not get what they might, on librdkafka, beside a producer that goes on.

Usage: consumers.py BOOTSTRAP before TOPIC RECORDS SIZE, or latest|limited|seeking|pattern. ``before`` writes what
others read; ``latest`` begins at the end of topics that have
records; ``limited`` asks for fewer bytes than a batch has; ``seeking`` goes back to a record that it cannot read;
``pattern`` subscribes to topics by a pattern that no topic has.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

Act = Callable[[], None]


def produce(
    bootstrap: str,
    client: str,
    topic: str,
    seconds: float,
    per_second: float = 40,
    size: int = 100,
    linger_ms: int = 20,
) -> None:
    """Writes to three partitions in turn."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client, "linger.ms": 20})
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        producer.produce(topic, value=b"v" * size, partition=count % 3)
        producer.poll(0)
        count += 1
        time.sleep(1 / per_second)
    producer.flush(5)


def write_before(bootstrap: str, topic: str, records: int, size: int) -> None:
    """Writes batches of many records to three partitions, before anybody is looked at."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 500_000})
    for number in range(records):
        producer.produce(topic, value=b"v" * size, partition=number % 3)
        if number % 100 == 99:
            producer.flush(10)
    producer.flush(10)


def consume(
    bootstrap: str,
    client: str,
    topic: str,
    seconds: float,
    act: Callable[[Consumer, Message], None] | None = None,
    **settings: Any,
) -> None:
    """Polls in a group of its own name; ``act`` is called with each record."""
    given = {"bootstrap.servers": bootstrap, "client.id": client, "group.id": client, "auto.offset.reset": "earliest"}
    consumer = Consumer(given | {name.replace("_", "."): value for name, value in settings.items()})
    consumer.subscribe([topic])
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            count += 1
            if act is not None:
                act(consumer, message)
    consumer.close()
    print(f"fact: {client} read {count} records")


def latest(bootstrap: str) -> list[Act]:
    print("fact: newsletter has no committed offset and begins at the end (auto.offset.reset=latest)")
    return [
        lambda: produce(bootstrap, "shop", "orders", 6, 10),
        lambda: consume(bootstrap, "newsletter", "orders", 6, auto_offset_reset="latest"),
    ]


def limited(bootstrap: str) -> list[Act]:
    settings: dict[str, Any] = {"max_partition_fetch_bytes": 20_000, "fetch_message_max_bytes": 20_000}
    return [
        lambda: produce(bootstrap, "shop", "orders", 12),
        lambda: consume(bootstrap, "archive", "history", 12, **settings),
    ]


def seeking(bootstrap: str) -> list[Act]:
    def act(consumer: Consumer, message: Message) -> None:
        if message.partition() == 1 and (message.offset() or 0) >= 40:
            time.sleep(0.3)
            consumer.seek(TopicPartition("orders", 1, 40))

    return [
        lambda: produce(bootstrap, "shop", "orders", 10),
        lambda: consume(bootstrap, "mailer", "orders", 10, act, auto_commit_interval_ms=1_000),
    ]


def pattern(bootstrap: str) -> list[Act]:
    print("fact: mailer subscribes to ^order-.*, which no topic matches")
    return [
        lambda: produce(bootstrap, "shop", "orders", 13, 10),
        lambda: consume(bootstrap, "mailer", "^order-.*", 13),
    ]


def main() -> None:
    bootstrap, what, *rest = sys.argv[1:]
    if what == "before":
        write_before(bootstrap, rest[0], int(rest[1]), int(rest[2]))
        return
    acts = {"latest": latest, "limited": limited, "seeking": seeking, "pattern": pattern}[what](bootstrap)
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
