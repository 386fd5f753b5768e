"""Clients whose broker advertises what they cannot reach, such as a name that does not resolve.

Usage: unresolvable.py CLIENT BOOTSTRAP TOPIC SECONDS, CLIENT being one of the functions here.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

import kafka
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from confluent_kafka import Producer

client, bootstrap, topic, seconds = sys.argv[1:]
end = time.monotonic() + float(seconds)


def librdkafka() -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "sensor", "message.timeout.ms": 3000})
    producer.produce(topic, b"value")
    while time.monotonic() < end:
        producer.poll(0.2)


def aiokafka() -> None:
    """A service that ends when it cannot send, and is started again."""

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="tram", request_timeout_ms=2000)
        await producer.start()
        try:
            await producer.send_and_wait(topic, b"value")
        except KafkaError as failed:
            print(failed)
        finally:
            await producer.stop()

    while time.monotonic() < end:
        asyncio.run(send())


def kafka_python() -> None:
    """A consumer that goes on polling, while somebody else writes by another listener."""
    clock = Producer({"bootstrap.servers": "10.9.0.1:9192", "client.id": "clock"})
    consumer = kafka.KafkaConsumer(topic, bootstrap_servers=bootstrap, client_id="board", group_id="boards")
    while time.monotonic() < end:
        clock.produce(topic, b"tick")
        clock.flush()
        try:
            consumer.poll(1000)
        except kafka.errors.KafkaError as failed:
            print(failed)
        time.sleep(0.2)


globals()[client.replace("-", "_")]()
print("fact: the broker advertises kafka-1.internal, which does not resolve where the client is")
sys.stdout.flush()
os._exit(0)  # what cannot reach its broker would try for long to close in order
