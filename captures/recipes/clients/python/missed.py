"""Consumers that miss records, get them late, or get some that do not count, beside a producer that goes on.

Usage: missed.py BOOTSTRAP added|away|early|aborted. ``added`` learns late of partitions that are added to its topic,
and begins at their end; ``away`` is a static member that is stopped for a while; ``early`` commits the highest offset
of all partitions for each of them, and is started again; ``aborted`` reads what is not committed of transactions.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka import KafkaConsumer, OffsetAndMetadata
from workload import Act, consume, produce, together

bootstrap, what = sys.argv[1:]


def shop(seconds: float, per_second: float, after: float = 0) -> None:
    """Writes a record at a time, and learns within a second of new partitions."""
    refresh = {"topic_metadata_refresh_interval_ms": 1000, "linger_ms": 5}
    produce(bootstrap, "shop", "orders", seconds, per_second, size=60, after=after, **refresh)


def mail(client: str, seconds: float, **settings: Any) -> int:
    return consume(bootstrap, client, "orders", seconds, group_id="mail", **settings)


def added() -> list[Act]:
    """A group learns after eight seconds of partitions that are written for as long."""

    def grow() -> None:
        time.sleep(4)
        admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "ops"})
        for done in admin.create_partitions([NewPartitions("orders", 4)]).values():
            done.result(10)

    def mailer() -> None:
        count = mail("mailer", 20, topic_metadata_refresh_interval_ms=12_000, auto_offset_reset="latest")
        print(f"fact: mailer read {count} of 160 records")

    print("fact: ops adds two partitions to orders; mailer begins at their end (auto.offset.reset=latest)")
    return [lambda: shop(16, 10, after=2), grow, mailer]


def away() -> list[Act]:
    """One of two static members is stopped, and started again after fourteen seconds."""

    def restarted() -> None:
        mail("mailer-1", 6, group_instance_id="mailer-1")
        time.sleep(14)
        mail("mailer-1", 4, group_instance_id="mailer-1")

    print("fact: mailer-1, a static member, is stopped and started again after 14 s (session.timeout.ms 45 s)")
    return [lambda: shop(20, 8, after=3), lambda: mail("mailer-0", 25, group_instance_id="mailer-0"), restarted]


def early() -> list[Act]:
    """An application commits for every partition what it has read of the one that has the most records."""

    def ship(seconds: float) -> dict[int, int]:
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=bootstrap, client_id="shipper", group_id="shipping", enable_auto_commit=False,
            auto_offset_reset="earliest",
        )  # fmt: skip
        read: dict[int, int] = {}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for partition, records in consumer.poll(timeout_ms=200).items():
                read[partition.partition] = records[-1].offset + 1
                highest = max(read.values())
                consumer.commit({one: OffsetAndMetadata(highest, "", -1) for one in consumer.assignment()})
        consumer.close(autocommit=False)
        return read

    def shipper() -> None:
        read = ship(7)
        print(f"fact: shipper read to {sorted(read.items())}, and committed {max(read.values())} for each partition")
        time.sleep(1.5)
        ship(4)

    return [lambda: shop(11, 12), shipper]


def aborted() -> list[Act]:
    """One transaction in three is aborted, and read by a consumer that does not mind."""

    def transfer() -> None:
        settings = {"bootstrap.servers": bootstrap, "client.id": "transfer", "transactional.id": "transfer-tx"}
        producer = Producer(settings)
        producer.init_transactions()
        for number in range(15):
            producer.begin_transaction()
            for leg in range(4):
                producer.produce("orders", key=b"%d" % number, value=b"leg %d" % leg)
            producer.flush()
            (producer.abort_transaction if number % 3 == 2 else producer.commit_transaction)()
            time.sleep(0.2)

    def audit() -> None:
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=bootstrap, client_id="audit", group_id="audit", auto_offset_reset="earliest"
        )
        end, count = time.monotonic() + 8, 0
        while time.monotonic() < end:
            count += sum(map(len, consumer.poll(timeout_ms=200).values()))
        consumer.close()
        print(f"fact: 20 records are of aborted transactions; audit (read_uncommitted) was given {count} of 60")

    return [transfer, audit]


together(*{"added": added, "away": away, "early": early, "aborted": aborted}[what]())
