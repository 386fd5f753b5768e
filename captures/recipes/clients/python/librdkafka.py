"""librdkafka: a producer per codec, a group that reads it all, a look at a topic that is not there.

Usage: librdkafka.py BOOTSTRAP TOPIC [SETTING=VALUE]...  (settings of the consumer)
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer

bootstrap, topic, *words = sys.argv[1:]
settings = dict(word.split("=", 1) for word in words)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
EACH = 10

for codec in CODECS:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": codec, "compression.type": codec, "linger.ms": 100}
    )
    for number in range(EACH):
        value = f'{{"page": "/article/{number}", "status": 200, "codec": "{codec}"}}'
        producer.produce(topic, value, f"visit-{number}", headers={"agent": "probe"}, timestamp=1767265200000 + number)
    producer.flush(30)

producer = Producer({"bootstrap.servers": bootstrap, "client.id": "idempotent", "enable.idempotence": True})
producer.produce(topic, None, "tombstone")
producer.flush(30)
producer = Producer({"bootstrap.servers": bootstrap, "client.id": "acks-0", "acks": 0})
producer.produce(topic, "gone", "fire and forget")
producer.flush(30)

consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "client.id": "statistics",
        "group.id": "statistics",
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 200,
        **settings,
    }
)
consumer.subscribe([topic])
seen = 0
while seen < EACH * len(CODECS) + 2:
    message = consumer.poll(1.0)
    seen += message is not None and message.error() is None
consumer.commit(asynchronous=False)
try:
    consumer.list_topics("no-such-topic", 10)
except KafkaException as error:
    print(error)
consumer.close()
