"""Clients that share three brokers, or a path to them: one of them may take more than its share.

Usage: loads.py BOOTSTRAP fill RECORDS, or spread|hosts|bulk|flood|replay SECONDS. ``fill`` writes what others read;
``spread`` writes to and reads from all brokers; ``hosts`` does so from two addresses; ``bulk`` reads what was written
before, beside another host; in ``flood`` and ``replay`` one client writes, or reads, as much as it can for a while, and
another goes on with a little.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

OTHER_HOST = "10.9.0.3"
PARTITIONS = 6
Act = Callable[[], None]


def from_other_host() -> None:
    """Lets sockets that Python opens from here on come from the other address."""
    connect_ex = socket.socket.connect_ex

    def bound(self: socket.socket, address: tuple[str, int]) -> int:
        if self.family == socket.AF_INET and self.getsockname()[0] == "0.0.0.0":
            self.bind((OTHER_HOST, 0))
        return connect_ex(self, address)

    socket.socket.connect_ex = bound  # type: ignore[method-assign, assignment]


def write(bootstrap: str, client: str, topic: str, seconds: float, per_second: float, size: int = 200) -> None:
    """Writes to each partition in turn."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client, "linger.ms": 0})
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        producer.produce(topic, value=b"v" * size, partition=count % PARTITIONS)
        producer.poll(0)
        count += 1
        time.sleep(1 / per_second)
    producer.flush(10)


def write_much(bootstrap: str, client: str, topic: str, records: int, size: int = 10_000) -> None:
    """Writes so many records as fast as the brokers take them."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": client, "linger.ms": 20, "batch.size": 500_000, "acks": "all"}
    )
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value=b"b" * size, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    producer.flush(60)


def read(bootstrap: str, client: str, topic: str, seconds: float, **settings: object) -> None:
    """Reads in a group of its own, from the earliest record."""
    given = {"bootstrap.servers": bootstrap, "client.id": client, "group.id": client, "auto.offset.reset": "earliest"}
    consumer = Consumer(given | {name.replace("_", "."): value for name, value in settings.items()})
    consumer.subscribe([topic])
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        message = consumer.poll(0.1)
        count += message is not None and message.error() is None
    consumer.close()
    print(f"fact: {client} read {count} records")


def write_elsewhere(bootstrap: str, client: str, topic: str, seconds: float, per_second: float) -> None:
    """Writes from the other address, on kafka-python."""
    from_other_host()
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), client_id=client, enable_idempotence=False)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        producer.send(topic, value=b"w" * 200, partition=count % PARTITIONS)
        count += 1
        time.sleep(1 / per_second)
    producer.close()


def read_elsewhere(bootstrap: str, client: str, topic: str, seconds: float) -> None:
    from_other_host()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap.split(","), client_id=client, group_id=client, auto_offset_reset="earliest"
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        consumer.poll(100)
    consumer.close()


def after(seconds: float, act: Act) -> Act:
    def wait() -> None:
        time.sleep(seconds)
        act()

    return wait


def spread(bootstrap: str, seconds: float) -> list[Act]:
    return [
        lambda: write(bootstrap, "shop", "orders", seconds, 25),
        lambda: read(bootstrap, "audit", "orders", seconds),
    ]


def hosts(bootstrap: str, seconds: float) -> list[Act]:
    return [
        *spread(bootstrap, seconds),
        lambda: write_elsewhere(bootstrap, "till", "orders", seconds, 25),
        lambda: read_elsewhere(bootstrap, "ledger", "orders", seconds),
    ]


def bulk(bootstrap: str, seconds: float) -> list[Act]:
    return [
        lambda: read(bootstrap, "warehouse", "history", seconds, fetch_message_max_bytes=100_000),
        lambda: write_elsewhere(bootstrap, "till", "orders", seconds, 5),
    ]


def flood(bootstrap: str, seconds: float) -> list[Act]:
    print("fact: backfill writes 24,000,000 bytes to history as fast as it can, checkout 20 records a second to orders")
    return [
        lambda: write(bootstrap, "checkout", "orders", seconds, 20),
        after(seconds / 2, lambda: write_much(bootstrap, "backfill", "history", 2_400)),
    ]


def replay(bootstrap: str, seconds: float) -> list[Act]:
    return [
        lambda: write(bootstrap, "checkout", "orders", seconds, 25),
        after(seconds / 2, lambda: read(bootstrap, "rebuild", "history", seconds / 3)),
    ]


def main() -> None:
    bootstrap, what, amount = sys.argv[1:]
    if what == "fill":
        write_much(bootstrap, "fill", "history", int(amount))
        return
    kinds = {"spread": spread, "hosts": hosts, "bulk": bulk, "flood": flood, "replay": replay}
    acts = kinds[what](bootstrap, float(amount))
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
