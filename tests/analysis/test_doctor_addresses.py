"""Addresses as their packets show them: listeners advertised wrongly, brokers that are away or never were."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Connection, Event, Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import BROKER, CLIENT, SECOND, attempt, closed, codes, findings, lost, metadata, partition


@pytest.mark.parametrize("refused", [False, True])
def test_an_advertised_address_that_nobody_reaches_is_a_wrong_listener(refused: bool) -> None:
    """With the address dialled and the one advertised; the storms of the client are its symptoms."""
    asked = [metadata(hosts={1: "10.9.9.9"}, at_ns=number * SECOND // 20) for number in range(60)]
    found = findings(*asked, attempt("10.9.9.9:9092", refused=refused), closed(1, "client", bytes=[100, 100]))
    assert [(one.code, one.severity) for one in found] == [("advertised_listener", "error")]
    assert "10.0.0.1:9092" in found[0].title and "10.9.9.9:9092" in found[0].title
    assert found[0].numbers["dialled"] == BROKER and found[0].numbers["advertised"] == ["10.9.9.9:9092"]
    assert found[0].evidence == ((51, START_NS + SECOND),)
    assert [one.code for one in found[0].symptoms] == ["metadata_storm"]


@pytest.mark.parametrize(
    ("advertised", "client", "expected"),
    [
        ("localhost", CLIENT, ["advertised_listener"]),
        ("127.0.0.1", CLIENT, ["advertised_listener"]),
        ("127.0.0.1", "127.0.0.1", []),
        ("10.1.1.1", CLIENT, []),
    ],
)
def test_a_loopback_address_is_nobody_elses(advertised: str, client: str, expected: list[str]) -> None:
    """Without a SYN in the capture, since it never left the client's machine."""
    on = connection(1, f"{client}:5000", "127.0.0.1:9092" if client.startswith("127") else BROKER)
    asked = [metadata(hosts={1: advertised}, on=on, at_ns=at_ns) for at_ns in (0, 2 * SECOND)]
    assert [code for code, _ in codes(*asked)] == expected
    # Some clients ask once, and try to get there without a packet until the capture ends.
    assert [code for code, _ in codes(asked[0])] == expected


def test_a_private_address_handed_out_from_a_public_one_is_wrong() -> None:
    """A client outside cannot reach the private address behind an address translation."""
    on = connection(1, "93.184.216.1:5000", "93.184.216.34:9092")
    asked = [metadata(hosts={1: "10.1.1.1"}, on=on, at_ns=at_ns) for at_ns in (0, 2 * SECOND)]
    assert [code for code, _ in codes(*asked)] == ["advertised_listener"]
    # At its end a capture does not show yet whether the client could reach it.
    assert codes(asked[0]) == []


def test_a_bootstrap_address_of_its_own_is_no_wrong_listener() -> None:
    """A load balancer is dialled, the brokers behind it are reached."""
    asked = metadata(hosts={1: "10.0.0.1"}, on=connection(1, f"{CLIENT}:5000", "10.0.0.200:9092"))
    assert findings(asked, closed(1, "client", bytes=[100, 100])) == []


@pytest.mark.parametrize(("lasting", "severity"), [(5, "warning"), (60, "error")])
def test_a_broker_that_is_away_is_told_as_such(lasting: int, severity: str) -> None:
    """The other brokers are there, and it is known by what it answered before."""
    before = exchange("ApiVersions", 18, 3, response={}, on=connection(1, f"{CLIENT}:5000", "10.0.0.2:9092"))
    refused = [attempt("10.0.0.2:9092", at * SECOND, refused=True, number=at) for at in range(1, lasting)]
    (found,) = findings(metadata(partition(0, 1, 0)), before, *refused)
    assert (found.code, found.severity, found.subject) == ("broker_unreachable", severity, "10.0.0.2:9092 (node 2)")
    assert "refuses connections" in found.title


def test_a_broker_that_served_in_between_was_away_twice() -> None:
    """A minute lies between its start and its stop, in which it was there; without that it was away all the time."""
    before = [attempt(BROKER, at_s * SECOND, refused=True) for at_s in (1, 2)]
    after = [attempt(BROKER, at_s * SECOND, refused=True) for at_s in (60, 61)]
    there = Connection(7, "10.0.0.5:50000", BROKER)
    there.first_ns, there.last_ns, there.bytes = START_NS + 9 * SECOND, START_NS + 50 * SECOND, [100, 100]
    metadata_answer = exchange("Metadata", 3, response={"brokers": []}, start_ns=START_NS + 10 * SECOND)
    twice: list[Event] = [*before, metadata_answer, there, *after]
    once: list[Event] = [metadata_answer, *before, *after]
    for events, severities in ((twice, ["warning", "info"]), (once, ["error"])):
        found = [one for one in findings(*events) if one.code == "broker_unreachable"]
        assert [one.severity for one in found] == severities
        assert all(("then is back" in one.title) == (one.severity == "info") for one in found)


@pytest.mark.parametrize(("until_s", "is_way"), [(12, True), (4, False)])
def test_a_broker_that_other_hosts_work_with_is_not_the_one_that_is_away(until_s: int, is_way: bool) -> None:
    """For ten seconds SYNs of one host are not answered, while another host has a connection, on which the broker
    answers for most of that time, or less."""
    refused = [attempt(BROKER, at * SECOND, number=at) for at in range(2, 13)]
    there = Connection(7, "10.0.0.6:50000", BROKER)
    there.first_ns, there.last_ns, there.bytes = START_NS + SECOND, START_NS + 12 * SECOND, [100, 100]
    (found,) = findings(metadata(on=there), *refused, metadata(on=there, at_ns=until_s * SECOND), there)
    assert found.code == "broker_unreachable"
    assert ("does not answer SYNs of 10.0.0.5" in found.title) == is_way
    assert ("while 10.0.0.6 works with it" in found.title) == is_way == ("firewall, a security" in found.remedy)


def test_what_is_no_broker_is_not_told() -> None:
    """Other servers refuse connections too."""
    assert findings(*[attempt("10.0.0.50:5432", at * SECOND, refused=True, number=at) for at in range(40)]) == []


@pytest.mark.parametrize(("times", "severity"), [(2, "info"), (10, "warning"), (40, "error")])
def test_a_usual_port_where_nobody_answers_is_told_with_the_doubt(times: int, severity: str) -> None:
    """The only broker that a client knows is down: nothing in the capture says that it is one."""
    refused = [attempt("10.0.0.50:9092", at * SECOND, refused=True, number=at) for at in range(times)]
    (found,) = findings(*refused)
    assert (found.code, found.severity) == ("broker_unreachable", severity)
    assert "refuses connections" in found.title and "whether it is a broker, the capture does not show" in found.title
    served = Connection(99, f"{CLIENT}:6000", BROKER)
    served.bytes, served.first_ns, served.last_ns = [100, 100], START_NS, START_NS + SECOND
    assert [one.severity for one in findings(*refused, served)] == ["info"]


def test_an_old_bootstrap_address_costs_its_clients_time() -> None:
    """Where they work with brokers and waited for it three times; a refusal costs nothing."""
    served = Connection(99, f"{CLIENT}:6000", BROKER)
    served.bytes, served.first_ns, served.last_ns = [100, 100], START_NS, START_NS + SECOND
    silent = [attempt("10.0.0.50:9092", 20 * at * SECOND, number=at) for at in range(4)]
    (found,) = findings(*silent, served)
    assert (found.code, found.severity) == ("broker_unreachable", "warning")
    assert "none of the brokers that its clients work with" in found.title and "bootstrap.servers" in found.remedy
    assert [one.severity for one in findings(*silent[:2], served)] == ["info"]


def test_a_version_of_ip_that_leads_nowhere_is_told_by_the_other() -> None:
    """Brokers answer on the same port, and none by that version."""
    served = Connection(99, f"{CLIENT}:6000", BROKER)
    served.bytes, served.first_ns, served.last_ns = [100, 100], START_NS, START_NS + SECOND
    silent = [attempt("[fd00::1]:9092", at * SECOND, number=at)._replace(client=f"[fd00::5]:{at}") for at in range(4)]
    (found,) = findings(*silent, served)
    assert found.severity == "warning" and f"by the other version of IP {BROKER} answers" in found.title
    assert "AAAA" in found.remedy
    served.broker = "[fd00::2]:9092"
    assert "AAAA" not in findings(*silent, served)[0].remedy, "another broker is reached by IPv6"


def test_brokers_behind_one_address_are_told_with_their_nodes() -> None:
    """What a client meets that reaches the wrong one is a symptom."""
    behind = {1: "10.0.0.9", 2: "10.0.0.9", 3: "10.0.0.3"}
    refused = [("error_code", 129, "REBOOTSTRAP_REQUIRED", False)]
    wrong = exchange("ApiVersions", 18, 5, response={"error_code": 129}, errors=refused, start_ns=START_NS + SECOND)
    (found,) = findings(metadata(hosts=behind), wrong, wrong)
    assert (found.code, found.severity, found.subject) == ("shared_address", "error", "10.0.0.9:9092")
    assert found.numbers["nodes"] == [1, 2]
    assert [one.code for one in found.symptoms] == ["rebootstrap_required"]
    assert findings(metadata()) == []


@pytest.mark.parametrize(
    ("coordinators", "worked", "expected"),
    [
        pytest.param(3, False, [("advertised_listener", "error")], id="again and again"),
        pytest.param(2, False, [], id="three times in three seconds"),
        pytest.param(3, True, [], id="and gets to work there"),
    ],
)
@pytest.mark.parametrize("host", ["kafka-1.internal", "10.0.0.77"])
def test_a_client_that_only_asks_where_to_go_cannot_get_there(
    coordinators: int, worked: bool, expected: list[tuple[str, str]], host: str
) -> None:
    """Its group's coordinator is at the address that it does not reach, too, and there is no SYN."""
    hosts = {1: host}
    leaders = metadata(partition(0, 1, 0), hosts=hosts)
    assert leaders.request is not None
    leaders.request.body = {"topics": [{"name": "orders"}]}
    answer = {"coordinators": [{"key": "g", "node_id": 1, "host": host, "port": 9092, "error_code": 0}]}
    asked: list[Event] = [
        exchange("FindCoordinator", 10, 4, request={}, response=answer, start_ns=START_NS + (1 + 2 * at) * SECOND)
        for at in range(coordinators)
    ]
    there = connection(5, broker=f"{host}:9092")
    there.bytes = [100, 100]
    assert codes(leaders, *asked, *([there] if worked else [])) == expected


def asks_for_brokers(
    number: int, at_s: int, host: str = "kafka-1.internal", topics: list[Any] | None = None, by: str = "client"
) -> list[Event]:
    """A client asks a bootstrap address for the brokers and closes the connection."""
    on = closed(number, by, at_s * SECOND + SECOND // 10)
    asked = metadata(hosts={1: host}, on=on, at_ns=at_s * SECOND)
    assert asked.request is not None
    asked.request.body = {"topics": topics if topics is not None else []}
    on.exchanges, on.bytes = {"ok": 1}, [100, 100]
    return [asked, on]


def clock_at(at_s: int) -> Exchange:
    """Somebody else, who shows that the capture goes on."""
    return exchange(on=connection(90, "10.0.0.8:1", "10.0.0.7:9092"), response={}, start_ns=START_NS + at_s * SECOND)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(asks_for_brokers(1, 0), "info", id="once"),
        pytest.param([*asks_for_brokers(1, 0), clock_at(20)], "warning", id="and is silent"),
        pytest.param([e for at in range(3) for e in asks_for_brokers(at + 1, at)], "warning", id="three times"),
        pytest.param(asks_for_brokers(1, 0, by="broker"), None, id="closed by the broker"),
        pytest.param(asks_for_brokers(1, 0, topics=[{"name": "orders"}]), None, id="asks for a topic"),
        pytest.param(asks_for_brokers(1, 0, "10.0.0.1"), None, id="the address that it dialled"),
        pytest.param(
            [
                *asks_for_brokers(1, 0),
                closed(2, "client", exchanges={"ok": 5}, bytes=[100, 100], broker="10.0.0.3:9092"),
            ],
            None,
            id="and works elsewhere",
        ),
        pytest.param(
            [*asks_for_brokers(1, 0), closed(2, "client", client_id=None, bytes=[100, 0], broker="10.0.0.3:9092")],
            None,
            id="and may be the one without a name",
        ),
    ],
)
def test_who_asks_for_the_brokers_and_is_gone_may_not_get_there(events: list[Event], expected: str | None) -> None:
    """aiokafka and kafka-python send nothing more where the name does not resolve; so it is told, with the doubt."""
    found = findings(*events)
    assert [(one.code, one.severity) for one in found] == ([("advertised_listener", expected)] if expected else [])
    assert all("the capture does not have" in one.title and one.evidence for one in found)


def test_who_leaves_one_of_several_brokers_may_be_at_the_others() -> None:
    """A capture at one broker has nothing of what its clients do at the others."""
    events = [event for at in range(3) for event in asks_for_brokers(at + 1, at)]
    for event in events:
        if isinstance(event, Exchange) and event.response is not None and event.response.body is not None:
            event.response.body["brokers"].append({"node_id": 2, "host": "kafka-2.internal", "port": 9092})
    assert codes(*events) == [("advertised_listener", "info")]


@pytest.mark.parametrize(("every_s", "told"), [(2, False), (3, True), (8, False)])
def test_three_questions_are_enough_where_they_take_long(every_s: int, told: bool) -> None:
    """Sarama waits three seconds for each connection that does not come to be."""
    on = connection()
    asked = [
        metadata(partition(0, 1, 0), hosts={1: "10.0.0.77"}, on=on, at_ns=at * every_s * SECOND) for at in range(3)
    ]
    for one in asked:
        assert one.request is not None
        one.request.body = {"topics": [{"name": "orders"}]}
    assert codes(*asked) == [("advertised_listener", "error")] * told


def test_a_client_that_asks_two_things_on_each_connection_cannot_get_there() -> None:
    """Its topics' leaders and its group's coordinator, each time anew; asked twice on one, it has got there."""
    for again, expected in ((1, [("advertised_listener", "error")]), (2, [])):
        events: list[Event] = []
        for number in range(3):
            on = connection(number + 1, f"{CLIENT}:{5000 + number}")
            for more in range(again):
                asked = metadata(partition(0, 1, 0), hosts={1: "kafka-1"}, on=on, at_ns=(2 * number + more) * SECOND)
                assert asked.request is not None
                asked.request.body = {"topics": [{"name": "orders"}]}
                events.append(asked)
            ns = START_NS + 2 * number * SECOND + SECOND // 2
            events.append(exchange("FindCoordinator", 10, 4, request={}, response={"port": 9092}, on=on, start_ns=ns))
        assert codes(*events) == expected


def sent_away(number: int, at_s: int, broker: str, header: str = "") -> list[Event]:
    """A connection that is closed at once, without a byte, after ApiVersions."""
    on = closed(number, "broker", at_s * SECOND + SECOND // 100, broker, first_ns=START_NS + at_s * SECOND)
    on.proxied = {"client": "10.9.9.9:4", "broker": None, "by": header} if header else None
    return [lost(on, "ApiVersions", 18, 3, start_ns=START_NS + at_s * SECOND), on]


def served_through(number: int, at_s: int, broker: str, header: str = "") -> list[Event]:
    """A connection on which the brokers of the cluster are learned."""
    times = {"first_ns": START_NS + at_s * SECOND, "bytes": [200, 900]}
    on = closed(number, "client", (at_s + 1) * SECOND, broker, **times)
    on.proxied = {"client": "10.9.9.9:4", "broker": None, "by": header} if header else None
    offered = {"error_code": 0, "api_keys": [{"api_key": 3, "min_version": 0, "max_version": 12}]}
    start_ns = START_NS + at_s * SECOND
    return [
        exchange("ApiVersions", 18, 3, request={}, response=offered, start_ns=start_ns, on=on),
        metadata(partition(0, 1, 0), at_ns=at_s * SECOND, on=on),
        on,
    ]


def by_turns(broker: str, header: str = "", served_header: str = "") -> list[Event]:
    """Three connections that are served, each followed by one that is sent away."""
    events: list[Event] = []
    for number in range(3):
        events += served_through(10 + number, 4 * number, broker, served_header)
        events += sent_away(20 + number, 4 * number + 2, broker, header)
    return events


def test_an_address_before_the_brokers_that_serves_some_has_a_dead_one_behind_it() -> None:
    """An address that a broker advertises is its own, and what closes connections there is a limit."""
    (found,) = [one for one in findings(*by_turns("10.0.0.9:9092")) if one.severity != "info"]
    assert (found.code, found.severity) == ("dead_backend", "warning")
    assert "3 times at once, and serves 3 others" in found.title and "health check" in found.remedy
    assert "connections_refused" in dict(codes(*by_turns("10.0.0.1:9092")))


def test_brokers_take_no_header_of_a_proxy() -> None:
    """All that were closed have one, and none that was served."""
    found = {one.code: one for one in findings(*by_turns("10.0.0.1:9092", "PROXY v2"))}
    assert found["proxy_header"].severity == "error" and "(PROXY v2)" in found["proxy_header"].title
    for events in (
        by_turns("10.0.0.1:9092", "PROXY v2", "PROXY v2"),
        [*by_turns("10.0.0.1:9092", "PROXY v2"), *sent_away(40, 20, "10.0.0.1:9092")],
    ):
        assert "proxy_header" not in dict(codes(*events))
