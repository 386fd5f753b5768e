"""aiokafka authenticates and looks at the topics. Usage: aio_sasl.py BOOTSTRAP MECHANISM"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer

bootstrap, mechanism = sys.argv[1:]


async def main() -> None:
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id="alice",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password="not-a-secret",
    ) as consumer:
        print(await consumer.topics())


asyncio.run(main())
