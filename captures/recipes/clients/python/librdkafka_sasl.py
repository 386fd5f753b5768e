"""librdkafka authenticates, looks at the cluster, and is turned away once.

Usage: librdkafka_sasl.py BOOTSTRAP MECHANISM
"""

import sys
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

bootstrap, mechanism = sys.argv[1:]
for password in ("not-a-secret", "wrong"):
    admin = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "alice" if password != "wrong" else "mallory",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": password,
            "reconnect.backoff.ms": 5000,  # one refusal is enough
            "reconnect.backoff.max.ms": 5000,
        }
    )
    try:
        print(list(admin.list_topics(timeout=2).topics))
    except KafkaException as error:
        print(error)
    time.sleep(0.2)
