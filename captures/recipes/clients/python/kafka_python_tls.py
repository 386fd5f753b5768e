"""kafka-python over TLS, with a key log: a topic, a producer, a group.

Usage: kafka_python_tls.py BOOTSTRAP TOPIC KEYLOG
"""

import ssl
import sys

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

bootstrap, topic, keylog = sys.argv[1:]
EACH = 20


def tls(version: ssl.TLSVersion) -> dict[str, object]:
    """The settings for a connection of that version whose keys are logged."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.keylog_filename = keylog
    return {"bootstrap_servers": bootstrap, "security_protocol": "SSL", "ssl_context": context}


admin = KafkaAdminClient(client_id="locksmith", **tls(ssl.TLSVersion.TLSv1_2))
admin.create_topics([NewTopic(topic, 1, 1)])
admin.close()

producer = KafkaProducer(client_id="vault", linger_ms=100, compression_type="gzip", **tls(ssl.TLSVersion.TLSv1_3))
for number in range(EACH):
    producer.send(topic, b"%d" % number * 2000, b"box-%d" % number)
producer.flush()
producer.close()

consumer = KafkaConsumer(
    topic,
    client_id="auditor",
    group_id="auditors",
    auto_offset_reset="earliest",
    fetch_max_wait_ms=200,
    **tls(ssl.TLSVersion.TLSv1_3),
)
seen = 0
while seen < EACH:
    seen += sum(map(len, consumer.poll(500).values()))
consumer.commit()
consumer.close()
