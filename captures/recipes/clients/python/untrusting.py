"""aiokafka, which trusts nobody but the authorities that its machine knows. Usage: untrusting.py BOOTSTRAP SECONDS"""

from __future__ import annotations

import asyncio
import sys
import time

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.helpers import create_ssl_context

bootstrap, seconds = sys.argv[1:]
end = time.monotonic() + float(seconds)


async def main() -> None:
    while time.monotonic() < end:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id="tracker", security_protocol="SSL", ssl_context=create_ssl_context()
        )
        try:
            await producer.start()
        except KafkaError as refused:
            print(refused)
        finally:
            await producer.stop()
        await asyncio.sleep(1)


asyncio.run(main())
