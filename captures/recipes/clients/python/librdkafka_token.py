"""librdkafka authenticates with an unsecured token of its own making. Usage: librdkafka_token.py BOOTSTRAP"""

import sys

from confluent_kafka.admin import AdminClient

admin = AdminClient(
    {
        "bootstrap.servers": sys.argv[1],
        "client.id": "alice",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=alice lifeSeconds=600 extension_shop=greenhouse",
    }
)
print(list(admin.list_topics(timeout=5).topics))
