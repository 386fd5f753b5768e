"""kafka-python: produce in each codec, read in a group, create a topic twice. Usage: kafka_python.py BOOTSTRAP TOPIC"""

import sys

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

bootstrap, topic = sys.argv[1:]
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
EACH = 5

for codec in CODECS:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, client_id=f"codec-{codec}", compression_type=codec, linger_ms=100
    )
    for number in range(EACH):
        producer.send(topic, b'{"lamp": %d, "on": true}' % number, b"lamp-%d" % number, headers=[("room", b"attic")])
    producer.flush()
    producer.close()

consumer = KafkaConsumer(
    topic,
    bootstrap_servers=bootstrap,
    client_id="switchboard",
    group_id="switchboard",
    auto_offset_reset="earliest",
    fetch_max_wait_ms=200,
)
seen = 0
while seen < EACH * len(CODECS):
    seen += sum(map(len, consumer.poll(500).values()))
consumer.commit()
consumer.close()

admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id="caretaker")
for name in ("attic", topic):
    try:
        admin.create_topics([NewTopic(name, 1, 1)])
    except KafkaError as error:
        print(error)
admin.close()
