"""librdkafka as to an old broker: a producer per codec of the time and a group that reads it all.

Usage: librdkafka_old.py BOOTSTRAP TOPIC [SETTING=VALUE]...
With ``assign=PARTITION`` among the settings the partition is taken without asking the group, as before 0.9.
"""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition

bootstrap, topic, *words = sys.argv[1:]
settings = {"bootstrap.servers": bootstrap} | dict(word.split("=", 1) for word in words)
assigned = settings.pop("assign", None)
CODECS = ("none", "gzip", "snappy", "lz4")
EACH = 10

for codec in CODECS:
    producer = Producer({"client.id": codec, "compression.type": codec, "linger.ms": 100, **settings})
    for number in range(EACH):
        producer.produce(topic, f'{{"page": "/article/{number}", "codec": "{codec}"}}', f"visit-{number}")
    producer.flush(30)

consumer = Consumer(
    {
        "client.id": "statistics",
        "group.id": "statistics",
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 200,
        **settings,
    }
)
if assigned is None:
    consumer.subscribe([topic])
else:
    consumer.assign([TopicPartition(topic, int(assigned), 0)])
seen = 0
while seen < EACH * len(CODECS):
    message = consumer.poll(1.0)
    seen += message is not None and message.error() is None
consumer.commit(asynchronous=False)
consumer.close()
