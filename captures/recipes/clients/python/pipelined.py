"""Six bursts of sixty requests, of one record each, sent as fast as one can. Usage: pipelined.py BOOTSTRAP TOPIC."""

import sys
import time

from confluent_kafka import Producer

bootstrap, topic = sys.argv[1:]
settings = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 60, "acks": 1}
producer = Producer({"bootstrap.servers": bootstrap, "client.id": "pipelined", **settings})
for _burst in range(6):
    for _record in range(60):
        producer.produce(topic, bytes(100))
    producer.flush()
    time.sleep(0.1)
