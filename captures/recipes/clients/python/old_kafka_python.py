"""kafka-python 1.4.7 as to a broker of some version. Usage: old_kafka_python.py BOOTSTRAP TOPIC VERSION"""

import sys

from kafka import KafkaConsumer, KafkaProducer

bootstrap, topic, version = sys.argv[1:]
api_version = tuple(int(part) for part in version.split("."))
CODECS = (None, "gzip", "snappy", "lz4")
EACH = 6

for codec in CODECS:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        client_id=f"codec-{codec}",
        compression_type=codec,
        linger_ms=100,
        api_version=api_version,
    )
    for number in range(EACH):
        producer.send(topic, b"reading number %d" % number, b"gauge-%d" % number)
    producer.flush()
    producer.close()

consumer = KafkaConsumer(
    topic,
    bootstrap_servers=bootstrap,
    client_id="archive",
    group_id="archive",
    auto_offset_reset="earliest",
    fetch_max_wait_ms=200,
    api_version=api_version,
)
seen = 0
while seen < EACH * len(CODECS):
    seen += sum(map(len, consumer.poll(500).values()))
consumer.commit()
consumer.close()
