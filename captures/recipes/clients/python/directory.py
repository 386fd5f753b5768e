"""A job that is started again and again and authenticates each time, beside a client that keeps its connections.

Usage: directory.py BOOTSTRAP TIMES; the broker asks a slow directory for the password of alice alone.
"""

from __future__ import annotations

import sys
import threading
import time

import confluent_kafka
import kafka

bootstrap, times = sys.argv[1:]
over = threading.Event()


def steady() -> None:
    """Writes a record every fifth of a second."""
    user = {"sasl.username": "broker", "sasl.password": "not-a-secret", "sasl.mechanism": "PLAIN"}
    more = {"security.protocol": "SASL_PLAINTEXT", "client.id": "till", "linger.ms": 0, **user}
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **more})
    while not over.is_set():
        producer.produce("orders", b"value")
        producer.poll(0)
        time.sleep(0.2)
    producer.flush(10)


till = threading.Thread(target=steady)
till.start()
time.sleep(2)
for _ in range(int(times)):
    job = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        client_id="mailer",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password="not-a-secret",
    )
    job.send("orders", b"value").get(20)
    job.close()
    time.sleep(1)
over.set()
till.join()
print(f"fact: mailer (alice) was started {times} times")
