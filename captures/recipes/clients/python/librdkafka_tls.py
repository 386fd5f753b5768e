"""librdkafka over TLS produces to a topic. Usage: librdkafka_tls.py BOOTSTRAP TOPIC"""

import sys

from confluent_kafka import Producer

bootstrap, topic = sys.argv[1:]
producer = Producer(
    {
        "bootstrap.servers": bootstrap,
        "client.id": "jeweller",
        "security.protocol": "SSL",
        "enable.ssl.certificate.verification": False,
        "linger.ms": 50,
    }
)
for number in range(10):
    producer.produce(topic, b"ring " * 400, b"%d" % number)
producer.flush(30)
