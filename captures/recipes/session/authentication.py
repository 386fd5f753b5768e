"""Authentications beyond the first: tokens of their own making, Kerberos, and sessions that have to be renewed."""

from __future__ import annotations

from dataclasses import replace

from captures.recipes.shared.kerberos import KEYTAB, KerberosSetup, jaas
from captures.recipes.shared.rig import BrokerSetup
from captures.recipes.shared.scenario import JAVA, LIBRDKAFKA, STRAY_BYTES, Scenario, java, sasl

SECURITY = "org.apache.kafka.common.security"
ALICE = f'{SECURITY}.{{module}} required username="alice" password="not-a-secret";'
BEARER = f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{{name}}" '
BEARER += 'unsecuredLoginLifetimeSeconds="600";'


def renewing(setup: BrokerSetup, session_ms: int) -> BrokerSetup:
    """``setup`` with sessions that must authenticate again after ``session_ms`` milliseconds (KIP-368)."""
    return replace(setup, settings=setup.settings | {"connections.max.reauth.ms": str(session_ms)})


def bearer() -> BrokerSetup:
    """A broker whose clients show unsecured tokens, which it takes at their word."""
    settings = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.client.oauthbearer.sasl.jaas.config": BEARER.format(name="broker"),
    }
    return BrokerSetup(settings=settings)


SCENARIOS = (
    Scenario(
        "java-sasl-oauthbearer",
        "SASL OAUTHBEARER with unsecured tokens that expire in ten minutes; sessions of 1.5 s, so it is done again.",
        java("SaslSession", "OAUTHBEARER", "3.5", BEARER.format(name="alice")),
        JAVA,
        broker=renewing(bearer(), 1500),
    ),
    Scenario(
        "librdkafka-sasl-oauthbearer",
        "librdkafka: SASL OAUTHBEARER with an unsecured token and an extension.",
        ("librdkafka_token.py", "{bootstrap}"),
        LIBRDKAFKA,
        broker=bearer(),
        exceptions=STRAY_BYTES,
    ),
    Scenario(
        "java-sasl-plain-renewed",
        "SASL PLAIN with sessions of 1.5 s: the client authenticates again on the connection that it has (KIP-368).",
        java("SaslSession", "PLAIN", "4", ALICE.format(module="plain.PlainLoginModule")),
        JAVA,
        broker=renewing(sasl("PLAIN", "plain.PlainLoginModule"), 1500),
    ),
    Scenario(
        "java-sasl-scram-renewed",
        "SASL SCRAM-SHA-512 with sessions of 1.5 s.",
        java("SaslSession", "SCRAM-SHA-512", "3", ALICE.format(module="scram.ScramLoginModule")),
        JAVA,
        broker=renewing(sasl("SCRAM-SHA-512", "scram.ScramLoginModule"), 1500),
    ),
    Scenario(
        "java-sasl-gssapi",
        "SASL GSSAPI with a Kerberos realm made for the occasion.",
        java(
            "SaslSession",
            "GSSAPI",
            "0.5",
            jaas("alice", KEYTAB.format(name="alice")),
            "sasl.kerberos.service.name=kafka",
        ),
        JAVA,
        broker=KerberosSetup(),
    ),
)
