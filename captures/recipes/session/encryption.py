"""TLS by clients that have to be helped to a key log."""

from __future__ import annotations

from dataclasses import replace

from captures.recipes.shared.scenario import JAVA, KEYLOG, TLS, Scenario

WITH_TOPICS = replace(TLS, settings=TLS.settings | {"auto.create.topics.enable": "true"})

SCENARIOS = (
    Scenario(
        "java-tls",
        "Java over TLS 1.2 and 1.3; an agent logs the keys.",
        ("java-keylog:4.4.0:Tls", "{bootstrap}", "valuables"),
        JAVA,
        broker=WITH_TOPICS,
        tls=True,
    ),
    Scenario(
        "franz-go-tls",
        "franz-go over TLS 1.2 and 1.3, with a cache of sessions that the broker does not resume.",
        ("go:franztls", "{bootstrap}", "valuables", KEYLOG),
        "franz-go 1.22.2",
        broker=WITH_TOPICS,
        tls=True,
    ),
    Scenario(
        "kcat-tls",
        "kcat, which is librdkafka with the system's OpenSSL, over TLS; a preloaded library logs the keys.",
        ("kcat_tls.py", "{bootstrap}", "valuables", KEYLOG),
        "librdkafka 2.0.2 (kcat 1.7.1)",
        broker=WITH_TOPICS,
        tls=True,
    ),
)
