"""librdkafka authenticates with a token that has expired an hour ago. Usage: expired_token.py BOOTSTRAP"""

import base64
import json
import sys
import time

from confluent_kafka import Producer


def encoded(part: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def token(_: str) -> tuple[str, float]:
    """An unsecured token of an hour ago, which librdkafka is told to be good for another one."""
    now = time.time()
    claims = {"sub": "alice", "iat": int(now) - 7200, "exp": int(now) - 3600}
    return f"{encoded({'alg': 'none'})}.{encoded(claims)}.", now + 3600


producer = Producer(
    {
        "bootstrap.servers": sys.argv[1],
        "client.id": "billing",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
    }
)
producer.produce("orders", b"value")
producer.flush(6)
print("fact: the token of billing (alice) had expired an hour ago")
