"""Clients that share three brokers, or a path to them: one of them may take more than its share.

Usage: loads.py BOOTSTRAP fill RECORDS, or spread|hosts|bulk|flood|replay SECONDS. ``fill`` writes what others read;
``spread`` writes to and reads from all brokers; ``hosts`` does so from two addresses; ``bulk`` reads what was written
before, beside another host; in ``flood`` and ``replay`` one client writes, or reads, as much as it can for a while, and
another goes on with a little.
"""

from __future__ import annotations

import socket
import sys
import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from workload import consume, produce, produce_much, together

OTHER_HOST = "10.9.0.3"
PARTITIONS = 6

bootstrap, what, amount = sys.argv[1:]
seconds = float(amount)


def from_other_host() -> None:
    """Lets sockets that Python opens from here on come from the other address."""
    connect_ex = socket.socket.connect_ex

    def bound(self: socket.socket, address: tuple[str, int]) -> int:
        if self.family == socket.AF_INET and self.getsockname()[0] == "0.0.0.0":
            self.bind((OTHER_HOST, 0))
        return connect_ex(self, address)

    socket.socket.connect_ex = bound  # type: ignore[method-assign, assignment]


def write(client: str, per_second: float) -> None:
    produce(bootstrap, client, "orders", seconds, per_second, size=200, partitions=PARTITIONS, linger_ms=0)


def write_much(client: str, records: int) -> None:
    produce_much(bootstrap, client, "history", records, 10_000, PARTITIONS, acks="all")


def read(client: str, topic: str, lasting: float = seconds, **settings: Any) -> None:
    count = consume(bootstrap, client, topic, lasting, **settings)
    print(f"fact: {client} read {count} records")


def write_elsewhere(client: str, per_second: float) -> None:
    """Writes from the other address, on kafka-python."""
    from_other_host()
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), client_id=client, enable_idempotence=False)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        producer.send("orders", value=b"w" * 200, partition=count % PARTITIONS)
        count += 1
        time.sleep(1 / per_second)
    producer.close()


def read_elsewhere(client: str) -> None:
    from_other_host()
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=bootstrap.split(","), client_id=client, group_id=client,
        auto_offset_reset="earliest",
    )  # fmt: skip
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        consumer.poll(100)
    consumer.close()


def flood() -> None:
    time.sleep(seconds / 2)
    write_much("backfill", 2_400)


def rebuild() -> None:
    time.sleep(seconds / 2)
    read("rebuild", "history", seconds / 3)


spread = (lambda: write("shop", 25), lambda: read("audit", "orders"))
if what == "fill":
    write_much("fill", int(amount))
elif what == "spread":
    together(*spread)
elif what == "hosts":
    together(*spread, lambda: write_elsewhere("till", 25), lambda: read_elsewhere("ledger"))
elif what == "bulk":
    together(lambda: read("warehouse", "history", fetch_message_max_bytes=100_000), lambda: write_elsewhere("till", 5))
elif what == "flood":
    print("fact: backfill writes 24,000,000 bytes to history as fast as it can, checkout 20 records a second to orders")
    together(lambda: write("checkout", 20), flood)
elif what == "replay":
    together(lambda: write("checkout", 25), rebuild)
