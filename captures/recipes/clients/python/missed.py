"""Consumers that miss records, get them late, or get some that do not count, beside a producer that goes on.

Usage: missed.py BOOTSTRAP added|away|early|aborted. ``added`` learns late of partitions that are added to its topic,
and begins at their end; ``away`` is a static member that is stopped for a while; ``early`` commits the highest offset
of all partitions for each of them, and is started again; ``aborted`` reads what is not committed of transactions.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka import KafkaConsumer, OffsetAndMetadata

Act = Callable[[], None]


def produce(bootstrap: str, topic: str, seconds: float, per_second: float, after: float = 0) -> None:
    """Writes a record at a time, and learns within a second of new partitions."""
    time.sleep(after)
    settings = {"bootstrap.servers": bootstrap, "client.id": "shop", "topic.metadata.refresh.interval.ms": 1000}
    producer = Producer(settings)
    begin, count = time.monotonic(), 0
    while count < seconds * per_second:
        producer.produce(topic, key=b"key-%d" % count, value=b"v" * 60)
        count += 1
        while (left := begin + count / per_second - time.monotonic()) > 0:
            producer.poll(left)
    producer.flush(5)


def consume(bootstrap: str, client: str, topic: str, seconds: float, **settings: str | int) -> int:
    """Reads in the group ``mail``; how many records it got."""
    given = {"bootstrap.servers": bootstrap, "client.id": client, "group.id": "mail", "auto.offset.reset": "earliest"}
    consumer = Consumer(given | {name.replace("_", "."): value for name, value in settings.items()})
    consumer.subscribe([topic])
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        message = consumer.poll(0.1)
        count += message is not None and message.error() is None
    consumer.close()
    return count


def added(bootstrap: str) -> list[Act]:
    """A group learns after eight seconds of partitions that are written for as long."""

    def grow() -> None:
        time.sleep(4)
        admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "ops"})
        for done in admin.create_partitions([NewPartitions("orders", 4)]).values():
            done.result(10)

    def mailer() -> None:
        settings: dict[str, str | int] = {"topic_metadata_refresh_interval_ms": 12_000, "auto_offset_reset": "latest"}
        count = consume(bootstrap, "mailer", "orders", 20, **settings)
        print(f"fact: mailer read {count} of 160 records")

    print("fact: ops adds two partitions to orders; mailer begins at their end (auto.offset.reset=latest)")
    return [lambda: produce(bootstrap, "orders", 16, 10, after=2), grow, mailer]


def away(bootstrap: str) -> list[Act]:
    """One of two static members is stopped, and started again after fourteen seconds."""

    def restarted() -> None:
        consume(bootstrap, "mailer-1", "orders", 6, group_instance_id="mailer-1")
        time.sleep(14)
        consume(bootstrap, "mailer-1", "orders", 4, group_instance_id="mailer-1")

    def stays() -> None:
        consume(bootstrap, "mailer-0", "orders", 25, group_instance_id="mailer-0")

    print("fact: mailer-1, a static member, is stopped and started again after 14 s (session.timeout.ms 45 s)")
    return [
        lambda: produce(bootstrap, "orders", 20, 8, after=3),
        stays,
        restarted,
    ]


def early(bootstrap: str) -> list[Act]:
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

    return [lambda: produce(bootstrap, "orders", 11, 12), shipper]


def aborted(bootstrap: str) -> list[Act]:
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


def main() -> None:
    bootstrap, what = sys.argv[1:]
    acts = {"added": added, "away": away, "early": early, "aborted": aborted}[what](bootstrap)
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
