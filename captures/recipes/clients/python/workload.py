"""The producers and consumers on librdkafka that clients of incidents share, and threads that run them together.

Settings are librdkafka's, with underscores for the dots.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message, Producer

Act = Callable[[], object]


def _given(bootstrap: str, client: str, settings: dict[str, Any]) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return {"bootstrap.servers": bootstrap, "client.id": client} | named


def produce(
    bootstrap: str,
    client: str,
    topic: str,
    seconds: float,
    per_second: float,
    *,
    size: int = 100,
    partitions: int = 0,
    after: float = 0,
    **settings: Any,
) -> None:
    """Writes records one by one, at a steady rate: to so many partitions in turn, or with a key each."""
    time.sleep(after)
    producer = Producer(_given(bootstrap, client, {"linger_ms": 20} | settings))
    begin, count = time.monotonic(), 0
    while count < seconds * per_second:
        to = {"partition": count % partitions} if partitions else {"key": b"key-%d" % count}
        producer.produce(topic, value=b"v" * size, **to)
        count += 1
        while (left := begin + count / per_second - time.monotonic()) > 0:
            producer.poll(left)
    producer.flush(5)


def produce_much(
    bootstrap: str, client: str, topic: str, records: int, size: int, partitions: int, **settings: Any
) -> None:
    """Writes so many records, to the partitions in turn, as fast as the brokers take them."""
    producer = Producer(_given(bootstrap, client, {"linger_ms": 20, "batch_size": 500_000} | settings))
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value=b"b" * size, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    producer.flush(60)


def consume(
    bootstrap: str,
    client: str,
    topic: str,
    seconds: float,
    act: Callable[[Consumer, Message, int], None] | None = None,
    **settings: Any,
) -> int:
    """Polls, in a group of its own name unless one is given, from the earliest record; how many records it got.

    ``act`` is called with the consumer, each record, and how many have come so far.
    """
    given = {"group_id": client, "auto_offset_reset": "earliest"} | settings
    consumer = Consumer(_given(bootstrap, client, given))
    consumer.subscribe([topic])
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            count += 1
            if act is not None:
                act(consumer, message, count)
    consumer.close()
    return count


def together(*acts: Act) -> None:
    """Runs each in a thread of its own, until the last of them ends."""
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
