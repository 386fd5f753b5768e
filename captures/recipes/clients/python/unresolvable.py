"""librdkafka, whose broker advertises a name that does not resolve. Usage: unresolvable.py BOOTSTRAP TOPIC SECONDS"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer

bootstrap, topic, seconds = sys.argv[1:]
producer = Producer({"bootstrap.servers": bootstrap, "client.id": "sensor", "message.timeout.ms": 3000})
producer.produce(topic, b"value")
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    producer.poll(0.2)
print("fact: the broker advertises kafka-1.internal, which does not resolve where the client is")
