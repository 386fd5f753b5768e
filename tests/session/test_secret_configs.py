"""Which configs hold a secret.

Expected values: the types in Kafka's own ConfigDefs, DescribeConfigsResponse's is_sensitive, and the names that plugins
of Kafka have given to their credentials.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Connection, Exchange, Message
from kwiresniff.schema.apis import read_data
from kwiresniff.schema.password_configs import FILE
from kwiresniff.session import secret_configs
from kwiresniff.session.decode import BodyDecoder
from kwiresniff.session.secret_configs import SensitiveNames, is_secret_config, is_secret_name
from kwiresniff.session.secrets import conceal
from kwiresniff.session.topic_ids import TopicNameTable
from tests.support.encoding import encoder

#: ConfigDef.Type.
TYPES = {"BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}


def test_the_data_file_has_each_config_once_with_a_type_of_kafkas() -> None:
    lines = [line.split() for line in read_data(FILE).splitlines()]
    assert [(name, kind) for name, kind in lines] == sorted({(name, kind) for name, kind in lines})
    assert {kind for _, kind in lines} <= TYPES
    passwords = {name for name, kind in lines if kind == "PASSWORD"}
    assert passwords >= {
        "delegation.token.master.key",
        "delegation.token.secret.key",
        "password.encoder.secret",
        "sasl.jaas.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "zookeeper.ssl.keystore.password",
    }


def test_what_kafka_types_as_anything_else_is_shown() -> None:
    """Every config whose name sounds like a secret, by itself and behind a listener's name."""
    others = [name for name, kind in map(str.split, read_data(FILE).splitlines()) if kind != "PASSWORD"]
    assert len(others) > 20
    assert not [name for name in others if is_secret_name(name) or is_secret_name(f"listener.name.internal.{name}")]


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "listener.name.internal.ssl.key.password",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
        "ssl.keystore.certificate.chain",
        "delegation.token.master.key",
        "rsm.config.storage.aws.secret.access.key",
        "confluent.license.token",
        "azure.storage.accountKey",
        "gcs.credentials.json",
        "s3AccessKeyId",
        "my_client_secret_2",
        "PRIVATE-KEY",
        "connection.passwd.file.content",
        "key.private",
        "storage.encryption.private_key_pem",
        "producer.override.sasl.jaas.config",
        "custom.secret.password.encoder.iterations",
        "db.pass",
        "db.psw",
        "dbPw",
        "user.pw",
        "basic.auth.user.info",
        "schemaRegistryUserInfo",
        "BASIC_AUTH_USERINFO",
        "confluent.license",
        "authorization",
        "http.header.Authorization",
        "auth.header",
        "zookeeper.auth",
        "jwt",
        "master.key",
        "masterKey",
        "rsa-key",
        "APIKey",
        "X-Api-Key",
        "ACCESSKEY",
        "key_master",
        "kms.key",
        "pin",
        "cardPin",
        "session.id",
        "SESSION_ID",
        "s3.sse.customer.key",
        "keyfile",
        "gcp.bigquery.keyfile",
        "cipher_data_keys",
        "datadog.app.key",
        "ocp-apim-subscription-key",
        "pagerduty.integration.key",
        "function.key",
        "ldap.bindpw",
        "kinesis.creds",
        "gitlab.pat",
        "privKey",
        "custom.pass.ssl.client.auth",
    ],
)
def test_these_names_are_those_of_secrets(name: str) -> None:
    """Kafka's own behind any prefix, and the words of others wherever they stand and however they are joined."""
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "retention.ms",
        "password.encoder.iterations",
        "delegation.token.max.lifetime.ms",
        "sasl.oauthbearer.token.endpoint.url",
        "listener.name.internal.sasl.oauthbearer.token.endpoint.url",
        "ssl.keystore.location",
        "key.serializer",
        "compression.type",
        "ssl.client.auth",
        "listener.name.external.ssl.client.auth",
        "inter.worker.signature.algorithm",
        "group.assignment.interval",
        "spin.lock",
        "pinned.partitions",
        "session.idle.timeout.ms",
        "obsession.identifier",
        "salted.hash.buckets",
        "keyboard.access.log",
        "file.name.pattern",
        "map.key.converter",
        "incredible.mode",
        "",
        None,
        b"\xff",
    ],
)
def test_these_are_not(name: Any) -> None:
    """What only sounds like a secret, and Kafka types as something else."""
    assert not is_secret_name(name)


#: Tokens by the forms that their issuers publish for scanners of secrets; made up of letters in a row.
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
ISSUED = [
    f"cflt{LETTERS[:58]}+/",
    f"ghp_{LETTERS[:36]}",
    f"github_pat_{LETTERS[:22]}_{LETTERS[:59]}",
    f"glpat-{LETTERS[:20]}",
    f"xoxb-0123-0123-{LETTERS[:24]}",
    f"sk_live_{LETTERS[:24]}",
    f"AIza{LETTERS[:35]}",
    f"hvs.{LETTERS[:24]}",
    f"dapi{'0123456789abcdef' * 2}",
    f"npm_{LETTERS[:36]}",
    f"glsa_{LETTERS[:32]}_01234567",
    f"SG.{LETTERS[:22]}.{LETTERS[:43]}",
]


@pytest.mark.parametrize(
    "value",
    [
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="u";',
        "username=u password=hunter2",
        "user: u, passwd: hunter2",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "https://u:p@registry:8081",
        "https://a:8081,https://u:p@b:8081",
        "https://ghp_0123456789@example.com/repository",
        "mongodb+srv://u:p/w@a,b/database",
        "redis://:hunter2@cache",
        "https://example.com/hook?a=1&token=hunter2",
        "jdbc:postgresql://db:5432/x?user=u&password=hunter2",
        "jdbc:sqlserver://db:1433;user=u;Password=hunter2;",
        "jdbc:oracle:thin:scott/tiger@db:1521:orcl",
        '{"api_key": "hunter2"}',
        '"{\\"clientSecret\\":\\"hunter2\\"}"',
        "Authorization: Basic dTpodW50ZXIy",
        "Bearer abcdefgh.ijkl",
        "https://hooks.slack.com/services/T0123/B0123/abcdefgh",
        "https://discord.com/api/webhooks/0123/abcdefgh",
        "https://example.webhook.office.com/webhookb2/abcdefgh",
        "https://hooks.slack.com/triggers/T0123/0123/abcdefgh",
        "https://api.telegram.org/bot0123:abcdefgh/sendMessage",
        "jdbc:oracle:oci:scott/tiger@orcl",
        "Accept:*/*,Authorization:Api-Token dt0c01.abcdefgh",
        "PuTTY-User-Key-File-3: ssh-ed25519",
        *ISSUED,
    ],
)
def test_a_value_that_shows_a_secret_is_one_under_any_name(value: str) -> None:
    assert is_secret_config("custom.options", value)


@pytest.mark.parametrize(
    "value",
    [
        "PLAINTEXT://a:9092,SASL_SSL://b:9093",
        "https://registry:8081/subjects?page=1",
        "jdbc:postgresql://db:5432/x?user=${file:/etc/db:user}&password=${file:/etc/db:password}&ssl=true",
        "0:1,0:2",
        "com.example.SG.transforms.first.and.second",
        "dapi-topic,npm_events,hvs.records",
    ],
)
def test_a_value_with_no_credential_in_it_is_shown_under_an_ordinary_name(value: str) -> None:
    """Addresses, and what a config provider puts in (KIP-297)."""
    assert not is_secret_config("custom.options", value)


@pytest.mark.parametrize("value", ["${file:/etc/connect.properties:password}", "${env:A}, ${vault:a/b:c}"])
def test_a_reference_to_a_secret_is_shown_under_the_name_of_a_secret(value: str) -> None:
    """It says where the secret is, and is what somebody with a wrong password looks for (KIP-297)."""
    assert not is_secret_config("connection.password", value)
    assert is_secret_config("connection.password", value + "hunter2")
    assert is_secret_config("connection.password", value, True)


def test_a_long_value_is_searched_once() -> None:
    """Text that nearly is a secret, again and again: a search without bounds takes minutes."""
    for text in ("password", "://a:", "${a:", ":thin:/", "eyJ", "basic ", "SG.", "gh", "xoxb-", "cflt"):
        is_secret_config("custom.options", text * 20_000)


def test_an_ordinary_value_under_an_ordinary_name_is_none() -> None:
    assert not is_secret_config("cleanup.policy", "compact,delete", False, 2)


def entry(**said: Any) -> dict[str, Any]:
    return {"name": "my.custom", "value": "hunter2", "is_sensitive": False, "config_type": 2, "synonyms": [], **said}


@pytest.mark.parametrize("said", [{"is_sensitive": True}, {"config_type": 9}], ids=["sensitive", "password"])
def test_what_the_broker_calls_a_secret_is_one_with_its_synonyms(said: dict[str, Any]) -> None:
    """DescribeConfigs: is_sensitive, or a config_type of 9 (PASSWORD)."""
    synonyms = [{"name": "other", "value": "hunter2", "source": 5}]
    body = {"results": [{"resource_name": "1", "configs": [entry(**said, synonyms=synonyms), entry(value="shown")]}]}
    conceal(32, "response", body)
    assert "hunter2" not in repr(body)
    assert "shown" in repr(body)


def test_what_creating_a_topic_answers_is_covered_as_well() -> None:
    """CreateTopics tells the new topic's configs from version 5 on."""
    body = {"topics": [{"name": "t", "configs": [entry(is_sensitive=True), entry(name="a.token")]}]}
    conceal(19, "response", body)
    assert "hunter2" not in repr(body)


def test_what_nobody_knows_of_a_config_is_covered_as_well() -> None:
    """Tagged fields of newer versions, in the body and in a config: they may be anything."""
    unknown = {"_tagged_fields": {5000: b"hunter2"}}
    body = {"topics": [{"name": "t", "configs": [entry(value="shown", **unknown)]}], **unknown}
    conceal(19, "response", body)
    assert "hunter2" not in repr(body) and "shown" in repr(body)


def described(name: str, *, sensitive: bool) -> dict[str, Any]:
    return {"results": [{"configs": [{"name": name, "value": None, "is_sensitive": sensitive}]}]}


def altered(name: str, value: str) -> dict[str, Any]:
    return {"resources": [{"resource_type": 4, "resource_name": "1", "configs": [{"name": name, "value": value}]}]}


@pytest.mark.parametrize("api_key", [33, 44])
def test_what_a_broker_has_called_sensitive_is_withheld_when_it_is_set(api_key: int) -> None:
    """AlterConfigs and IncrementalAlterConfigs do not say what is a secret; DescribeConfigs has said it before."""
    known, name = SensitiveNames(), "plugin.door"
    before = altered(name, "1234")
    conceal(api_key, "request", before, sensitive=known)
    assert before["resources"][0]["configs"][0]["value"] == "1234"
    conceal(32, "response", described(name, sensitive=True), sensitive=known)
    conceal(32, "response", described("plugin.place", sensitive=False), sensitive=known)
    after, other = altered(name, "1234"), altered("plugin.place", "here")
    conceal(api_key, "request", after, sensitive=known)
    conceal(api_key, "request", other, sensitive=known)
    assert "1234" not in str(after) and other["resources"][0]["configs"][0]["value"] == "here"


def test_the_same_inside_an_envelope() -> None:
    """A controller is sent what a broker was asked."""
    known = SensitiveNames()
    known.learn("plugin.pin")
    inside = {"api_key": 44, "body": altered("plugin.pin", "1234"), "client_id": None}
    body = {"request_data": b"", "request_data_decoded": inside}
    conceal(58, "request", body, sensitive=known)
    assert "1234" not in str(body)


@pytest.mark.parametrize(
    ("name", "is_withheld"),
    [
        ("ssl.keystore.key", True),
        ("ssl.truststore.certificates", True),
        ("plugin.door", True),
        ("cleanup.policy", False),
    ],
)
def test_what_a_broker_says_of_a_secret_config_is_withheld(name: str, is_withheld: bool) -> None:
    """ConfigException quotes the value; the name is one of Kafka's passwords, or was called sensitive before."""
    known = SensitiveNames()
    known.learn("plugin.door")
    text = f"Invalid value MIIEvQ for configuration {name}: nothing fits."
    body = {"responses": [{"error_code": 40, "error_message": text, "resource_type": 4, "resource_name": "1"}]}
    conceal(44, "response", body, sensitive=known)
    assert ("MIIEvQ" not in str(body)) is is_withheld


def test_a_config_that_the_answer_calls_sensitive_is_withheld_from_an_enveloped_request() -> None:
    """CreateTopics that a broker forwards to the controller: its answer comes later than what it is about."""
    topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": [],
               "configs": [{"name": "plugin.door", "value": "hunter2"}]}]  # fmt: skip
    asked = {"topics": topics, "timeout_ms": 5, "validate_only": False}
    created = {"name": "t", "topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "error_code": 0, "error_message": None,
               "num_partitions": 1, "replication_factor": 1,
               "configs": [{"name": "plugin.door", "value": "hunter2", "read_only": False, "config_source": 1,
                            "is_sensitive": True}]}  # fmt: skip
    answered = {"throttle_time_ms": 0, "topics": [created]}
    inner_request = b"\0\x13\0\7\0\0\0\1\0\1c\0" + encoder(19, 7, "request")(asked)
    inner_response = b"\0\0\0\1\0" + encoder(19, 7, "response")(answered)
    envelope = {"request_data": inner_request, "request_principal": b"", "client_host_address": b"\x7f\0\0\1"}
    reply = {"response_data": inner_response, "error_code": 0}
    one = Exchange(
        Connection(1, "a:1", "b:2"), 58, 0, 1, None,
        _message(encoder(58, 0, "request")(envelope)), _message(encoder(58, 0, "response")(reply)),
    )  # fmt: skip
    BodyDecoder("full", TopicNameTable()).decode(one)
    assert one.request is not None and one.request.body is not None and one.response is not None
    assert "plugin.door" in str(one.request.body) and "hunter2" not in str(one.request.body) + str(one.response.body)


def _message(frame: bytes) -> Message:
    return Message(1, 0, 1, 0, len(frame), frame)


def test_when_there_are_too_many_names_what_kafka_does_not_know_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather a place name too much than a password; what is remembered stays within its bytes."""
    monkeypatch.setattr(secret_configs, "MAX_SENSITIVE_BYTES", 2_000)
    known = SensitiveNames()
    for number in range(100):
        known.learn(f"plugin.pin.{number}")
    assert known._bytes <= 2_000 and "plugin.pin.0" in known
    assert "plugin.pin.99" in known and "plugin.other" in known
    assert "delegation.token.max.lifetime.ms" not in known
