"""aiokafka: produce in each codec, read in a group, a transaction. Usage: aio.py BOOTSTRAP TOPIC [CODEC]..."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

bootstrap, topic, *codecs = sys.argv[1:]
CODECS = (None, *(codecs or ("gzip", "snappy", "lz4", "zstd")))
EACH = 5


async def main() -> None:
    for codec in CODECS:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id=f"codec-{codec}", compression_type=codec, linger_ms=50
        ) as producer:
            waiting = [
                await producer.send(topic, b'{"tram": %d, "line": "12"}' % number, b"tram-%d" % number)
                for number in range(EACH)
            ]
            await asyncio.gather(*waiting)
    async with (
        AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id="dispatcher", transactional_id="dispatcher-1"
        ) as producer,
        producer.transaction(),
    ):
        await producer.send_and_wait(topic, b"out of service", b"tram-1")
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id="display",
        group_id="display",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        fetch_max_wait_ms=200,
    ) as consumer:
        for _ in range(EACH * len(CODECS) + 1):
            await consumer.getone()
        await consumer.commit()


asyncio.run(main())
