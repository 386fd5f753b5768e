"""Programs that ask something and are done, again and again: commands, health checks, a job that writes a record.

Usage: short_lived.py BOOTSTRAP TOPIC TIMES; the group jobs must be there.
"""

from __future__ import annotations

import asyncio
import sys
import time

import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka.admin import AdminClient

bootstrap, topic, times = sys.argv[1:]


async def aiokafka(number: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="job") as producer:
        await producer.send_and_wait(topic, b"value")
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, client_id=f"check-{number}") as consumer:
        print(await consumer.topics())


for number in range(int(times)):
    listing = AdminClient({"bootstrap.servers": bootstrap, "client.id": "lister"})
    print(listing.list_topics(topic, timeout=10).topics)
    for future in listing.describe_consumer_groups(["jobs"]).values():
        print(future.result())
    office = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, client_id="office")
    print(office.list_topics())
    office.close()
    asyncio.run(aiokafka(number))
    time.sleep(0.5)
