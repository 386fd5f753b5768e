"""Members of groups that do not do what they joined for, on librdkafka, beside a producer that goes on.

Usage: members.py BOOTSTRAP paused|hanging|sharing|unresolved. ``paused`` pauses a partition and never resumes it;
``hanging`` stops polling for longer than its commits take; ``sharing`` are two applications with one ``group.id``;
``unresolved`` cannot look up one of the brokers.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Message, Producer

PER_SECOND = 50


def produce(bootstrap: str, client: str, topic: str, seconds: float) -> None:
    """Writes records one by one, as they come."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client, "linger.ms": 20})
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        producer.produce(topic, key=b"key-%d" % count, value=b"v" * 100)
        producer.poll(0)
        count += 1
        time.sleep(1 / PER_SECOND)
    producer.flush(2)


def consume(
    bootstrap: str,
    client: str,
    group: str,
    topic: str,
    seconds: float,
    act: Callable[[Consumer, int], None] | None = None,
) -> None:
    """Polls; ``act`` is called before each poll with how many records have come so far."""
    settings = {"bootstrap.servers": bootstrap, "client.id": client, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if act is not None:
            act(consumer, count)
        message: Message | None = consumer.poll(0.1)
        count += message is not None and message.error() is None
    consumer.close()


def paused(bootstrap: str) -> list[Callable[[], None]]:
    done: list[int] = []

    def act(consumer: Consumer, count: int) -> None:
        if count > 2 * PER_SECOND and not done:
            done.append(count)
            consumer.pause([one for one in consumer.assignment() if one.partition == 1])

    print("fact: mailer pauses orders-1 after 2 s and never resumes it")
    return [
        lambda: produce(bootstrap, "shop", "orders", 14),
        lambda: consume(bootstrap, "mailer", "mail", "orders", 14, act),
    ]


def hanging(bootstrap: str) -> list[Callable[[], None]]:
    done: list[int] = []

    def act(consumer: Consumer, count: int) -> None:
        if count > 6 * PER_SECOND and not done:
            done.append(count)
            time.sleep(14)

    print("fact: mailer does not poll for 14 s once it has 300 records; before, it commits every 5 s")
    return [
        lambda: produce(bootstrap, "shop", "orders", 21),
        lambda: consume(bootstrap, "mailer", "mail", "orders", 21, act),
        lambda: consume(bootstrap, "audit", "audit", "orders", 21),
    ]


def sharing(bootstrap: str) -> list[Callable[[], None]]:
    print("fact: order-app reads orders and payment-app reads payments, both in the group backend")
    return [
        lambda: produce(bootstrap, "shop", "orders", 8),
        lambda: produce(bootstrap, "bank", "payments", 8),
        lambda: consume(bootstrap, "order-app", "backend", "orders", 8),
        lambda: consume(bootstrap, "payment-app", "backend", "payments", 8),
    ]


def unresolved(bootstrap: str) -> list[Callable[[], None]]:
    print("fact: shop cannot look up the name that node 3 advertises")
    return [lambda: produce(bootstrap, "shop", "orders", 10)]


def main() -> None:
    bootstrap, what = sys.argv[1:]
    acts = {"paused": paused, "hanging": hanging, "sharing": sharing, "unresolved": unresolved}[what](bootstrap)
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
