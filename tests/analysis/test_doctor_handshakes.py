"""Connections that come to nothing: TLS, SASL and versions that the other side does not take."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Connection, Event
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import CLIENT, SECOND, closed, codes, findings, lost


@pytest.mark.parametrize(
    ("sender", "alert", "words"),
    [
        ("client", "unknown_ca", "does not trust the certificate"),
        ("client", "certificate_expired", "does not take the certificate"),
        ("broker", "bad_certificate", "its certificate is not taken"),
    ],
)
def test_certificates_are_told_by_the_alert(sender: str, alert: str, words: str) -> None:
    """Whose certificate it is follows from who refuses."""
    tls = {"version": "TLSv1.3", "alert": {"sender": sender, "description": alert}}
    (found,) = findings(closed(1, "client", protocol="tls", tls=tls))
    assert found.code == "untrusted_certificate"
    assert words in found.title and alert in found.title


def refused_requests(count: int, sasl: dict[str, Any] | None = None) -> list[Event]:
    """Connections that a broker closes after the first request that is not ApiVersions."""
    events: list[Event] = []
    for number in range(1, count + 1):
        on = closed(number, "broker", SECOND // 100, exchanges={"ok": 1}, bytes=[130, 700], sasl=sasl)
        events += [exchange("ApiVersions", 18, 3, response={}, on=on), lost(on), on]
    return events


def test_a_listener_that_wants_sasl_is_named() -> None:
    """The listener answers ApiVersions and closes; where a client without SASL gets answers, it is no such listener."""
    assert codes(*refused_requests(3)) == [("sasl_wanted", "error")]
    served = exchange("Heartbeat", 12, 4, response={}, on=connection(99, "10.0.0.6:1000"))
    assert codes(served, *refused_requests(3)) == [("closed_by_broker", "warning")]


def test_a_version_that_the_broker_does_not_offer_is_named() -> None:
    """Produce is named from v0 on by brokers of 4.x and taken from v3 on (KAFKA-18659)."""
    offer = [{"api_key": 0, "min_version": 0, "max_version": 13}, {"api_key": 1, "min_version": 4, "max_version": 18}]
    asked = exchange("ApiVersions", 18, 3, response={"api_keys": offer}, on=connection(9, "10.0.0.7:1000"))
    on = closed(1, "broker", SECOND // 100, exchanges={})
    (found,) = findings(asked, lost(on, "Produce", 0, 2), on)
    assert (found.code, found.subject) == ("unsupported_version", "billing-1 10.0.0.5")
    assert "Produce v2" in found.title and "closes the connection" in found.title
    on = closed(2, "broker", SECOND // 100, exchanges={})
    assert [code for code, _ in codes(asked, lost(on, "Produce", 0, 3), on)] != ["unsupported_version"]


@pytest.mark.parametrize("asks", [True, False])
def test_a_client_that_does_not_go_by_the_versions_it_asked_for_is_told_that(asks: bool) -> None:
    """It asked on the same connection: nobody tells it to ask."""
    offer = [{"api_key": 0, "min_version": 0, "max_version": 13}, {"api_key": 1, "min_version": 4, "max_version": 18}]
    on = closed(1, "broker", SECOND // 100, exchanges={"ok": 1} if asks else {})
    elsewhere = connection(9, "10.0.0.7:1000")
    answered = exchange("ApiVersions", 18, 3, response={"api_keys": offer}, on=on if asks else elsewhere)
    (found,) = findings(answered, lost(on, "Fetch", 1, 3), on)
    assert found.code == "unsupported_version"
    assert ("does not go by the answer" in found.remedy) is asks
    assert ("let it ask for ApiVersions" in found.remedy) is not asks


def test_a_version_that_newer_brokers_gave_up_is_named_without_knowing_the_broker() -> None:
    """Produce v1 went with 4.0: whoever closes on it is newer, but for a broker that has answered such requests."""
    on, other = closed(1, "broker", SECOND // 100), closed(2, "client")
    (found,) = findings(exchange("Metadata", 3, 0, response={"brokers": []}, on=other), lost(on, "Produce", 0, 1), on)
    assert (found.code, found.severity) == ("unsupported_version", "error")
    assert "v3" in found.title
    served = exchange("Produce", 0, 1, response={"responses": []}, on=other)
    assert codes(served, lost(on, "Produce", 0, 1), on) == [("closed_by_broker", "warning")]
    # One that closes later has another reason, and one that is older than the capture may have answered such before.
    for doubtful in (closed(1, "broker", SECOND), closed(1, "broker", SECOND // 100, handshake_seen=False)):
        assert codes(lost(doubtful, "Produce", 0, 1), doubtful) == [("closed_by_broker", "warning")]


def test_a_broker_that_closes_again_and_again_is_told_with_the_request() -> None:
    """Of a size that it does not take, it says so."""
    on = closed(1, "broker", SECOND // 100, exchanges={"ok": 5})
    large = lost(on, "Produce", 0, 9, request_bytes=150 << 20)
    (found,) = findings(exchange("Heartbeat", 12, 4, response={}), large, on)
    assert (found.code, found.severity) == ("closed_by_broker", "error")
    assert "Produce v9 of 157,286,400 bytes" in found.title and "socket.request.max.bytes" in found.remedy


def test_a_client_that_closes_when_it_has_the_certificate_does_not_trust_it() -> None:
    """Once it may have been ended by somebody; what the capture has of the certificate is told."""
    tls: dict[str, Any] = {"version": "TLSv1.3", "alert": None, "abandoned": True}
    given: dict[str, Any] = {"protocol": "tls", "tls": tls, "bytes": [500, 800]}
    (once,) = findings(closed(1, "client", **given))
    assert (once.code, once.severity) == ("untrusted_certificate", "info")
    (found,) = findings(*(closed(number, "client", **given) for number in (1, 2)))
    assert (found.code, found.severity) == ("untrusted_certificate", "error")
    assert "without an alert, twice" in found.title and "openssl s_client" in found.remedy
    tls |= {"server_certificate_names": ["broker-1.test"], "server_certificate_not_after": "2020-01-01T00:00:00Z"}
    (found,) = findings(*(closed(number, "client", **given) for number in (1, 2)))
    assert "expired on 2020-01-01" in found.title


def hidden(number: int, by: str = "broker", at_ns: int = SECOND, **more: Any) -> Connection:
    """A connection that was encrypted to its end."""
    tls = {"version": "TLSv1.3", "alert": None, "abandoned": False, "decrypted": False}
    given: dict[str, Any] = {"protocol": "tls", "tls": tls, "bytes": [900, 2500], **more}
    return closed(number, by, at_ns, **given)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([hidden(number) for number in range(3)], [("tls_closed", "info")], id="again and again"),
        pytest.param([hidden(number) for number in range(31)], [("tls_closed", "warning")], id="all the time"),
        pytest.param([hidden(number) for number in range(2)], [], id="twice"),
        pytest.param(
            [hidden(1), hidden(2, "client"), hidden(3, "client")], [("tls_closed", "info")], id="by whoever is faster"
        ),
        pytest.param([hidden(number, at_ns=9 * SECOND) for number in range(3)], [], id="when they were idle"),
        pytest.param([hidden(number, bytes=[900, 90_000]) for number in range(3)], [], id="that had worked"),
        pytest.param(
            [*(hidden(number) for number in range(3)), hidden(9, "", closed_ns=0, last_ns=START_NS + 60 * SECOND)],
            [],
            id="where another lasts",
        ),
        pytest.param([hidden(number, handshake_seen=False) for number in range(3)], [], id="older than the capture"),
    ],
)
def test_encrypted_connections_that_a_broker_closes_soon(events: list[Event], expected: list[tuple[str, str]]) -> None:
    assert codes(*events) == expected


def test_a_host_that_closes_what_it_opens_to_several_brokers_is_told_once() -> None:
    """It gets the addresses of the others when it works; of one broker it may be refused each time."""
    opened = [hidden(number, "client", broker=f"10.0.0.{number % 3 + 1}:9092") for number in range(33)]
    (found,) = findings(*opened)
    assert (found.code, found.severity, found.subject, found.count) == ("tls_closed", "warning", CLIENT, 33)
    assert "a client for each message" in found.title and "10.0.0.3:9092" in found.title
    for one in opened[:3]:
        one.closed_by = "broker"
    assert all("→" in one.subject for one in findings(*opened) if one.code == "tls_closed")


@pytest.mark.parametrize(
    ("times", "words"), [(1, "a listener without it"), (3, "on a connection where it has just done so")]
)
def test_sasl_at_the_wrong_time_is_another_thing_on_a_listener_that_has_taken_it(times: int, words: str) -> None:
    on = connection(1)
    on.sasl = {"mechanism": "PLAIN", "outcome": "failed", "authentication_count": times}
    errors = [("error_code", 34, "ILLEGAL_SASL_STATE", False)]
    (found,) = findings(
        exchange("SaslHandshake", 17, 1, response={"error_code": 34}, errors=errors, outcome="error", on=on)
    )
    assert found.code == "illegal_sasl_state" and words in found.title
