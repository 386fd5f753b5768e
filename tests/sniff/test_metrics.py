"""``sniff --metrics``, collected over HTTP from a real run and read by Prometheus' own parser."""

from __future__ import annotations

import re
import socket
import sys
import tomllib
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click import BadParameter
from prometheus_client.parser import text_string_to_metric_families

from kwiresniff.cli.metrics import AddressType
from kwiresniff.errors import ExportError
from kwiresniff.export.prometheus import MetricsServer
from kwiresniff.results.metrics import Metric
from tests.support.replay import listener
from tests.support.sniffing import Sniffer, capturing, replay

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
Samples = dict[str, list[tuple[dict[str, str], float]]]


def scrape(url: str) -> Samples:
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert re.fullmatch(r"(kwiresniff|process)_[a-z_]+", family.name), family.name
        assert family.documentation
        for sample in family.samples:
            assert family.type != "counter" or sample.name.endswith("_total")
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def serve(metrics: list[Metric]) -> Samples:
    server = MetricsServer("127.0.0.1", 0, lambda: metrics)
    try:
        return scrape(f"http://{server.address}/metrics")
    finally:
        server.close()


def logged(name: str) -> Counter[str]:
    """How many requests of each API the broker had in its own log, by the API's name in small letters."""
    rows = tomllib.loads((CAPTURES / "MANIFEST.toml").read_text())["capture"]
    (row,) = [row for row in rows if row["file"] == name]
    counts: Counter[str] = Counter()
    for api, count in row["requests"].items():
        counts[api.split()[0].replace("_", "").lower()] += count
    return counts


@pytest.mark.capturing
@pytest.mark.parametrize(("host", "form"), [("127.0.0.1", "stats"), ("[::1]", "summary")])
def test_a_run_is_collected_while_it_goes_on(start: Callable[..., Sniffer], host: str, form: str) -> None:
    expected = logged("java-produce.pcap")
    with listener() as server:
        arguments = ["-i", "lo", "--port", str(server.getsockname()[1]), "-o", form, "--metrics", f"{host}:0"]
        sniffer = start("sniff", *arguments)
        capturing(sniffer)
        sniffer.wait_for(lambda: bool(sniffer.err))
        url = sniffer.err[0].removeprefix("kwiresniff: metrics at ")
        assert url.startswith(f"http://{host}:")
        replay(server, str(CAPTURES / "java-produce.pcap"))

        def seen() -> Counter[str]:
            counts: Counter[str] = Counter()
            for labels, value in scrape(url).get("kwiresniff_exchanges_total", ()):
                counts[labels["api"].lower()] += int(value)
            return counts

        sniffer.wait_for(lambda: seen().total() >= expected.total())
        assert seen() == expected
        found = scrape(url)
        assert sniffer.interrupt() == 130
    assert found["kwiresniff_packets_dropped_total"] == [({"by": "kernel"}, 0), ({"by": "sniffer"}, 0)]
    assert ({"api": "Produce", "error": "MESSAGE_TOO_LARGE"}, 1) in found["kwiresniff_errors_total"]
    about_topics = sum(value for _, value in found["kwiresniff_topic_exchanges_total"])
    assert about_topics == expected["produce"] + expected["metadata"]
    whole = {labels["api"]: value for labels, value in found["kwiresniff_latency_seconds_count"]}
    assert whole["Metadata"] == expected["metadata"]
    packets = int(sniffer.err[-1].split(" packets, ")[0].rpartition(" ")[2].replace(",", ""))
    # The last acknowledgements may come after the last visit.
    assert expected.total() < found["kwiresniff_packets_total"][0][1] <= packets


def test_the_buckets_of_a_histogram_add_up() -> None:
    metric = Metric(
        "wait_seconds", "Waits.", "histogram", ("api",), [(("Fetch",), ([2, 0, 3, 1], 9.5))], (0.1, 1.0, 5.0)
    )
    found = serve([metric])
    assert [(labels["le"], value) for labels, value in found["kwiresniff_wait_seconds_bucket"]] == [
        ("0.1", 2),
        ("1.0", 2),
        ("5.0", 5),
        ("+Inf", 6),
    ]
    assert found["kwiresniff_wait_seconds_count"] == [({"api": "Fetch"}, 6)]
    assert found["kwiresniff_wait_seconds_sum"] == [({"api": "Fetch"}, 9.5)]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ('quote" and \\ and \n', 'quote" and \\ and \n'),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\ud800", "\\ud800"),
        ("é", "é"),
    ],
)
def test_hostile_client_ids_come_out_as_harmless_labels(sent: str, shown: str) -> None:
    found = serve([Metric("clients", "Clients.", "counter", ("client_id",), [((sent,), 3)])])
    assert found["kwiresniff_clients_total"] == [({"client_id": shown}, 3)]


def test_labels_that_would_read_the_same_stand_once() -> None:
    found = serve([Metric("clients", "Clients.", "counter", ("id",), [(("\x1b",), 3), (("\\x1b",), 4)])])
    assert found["kwiresniff_clients_total"] == [({"id": "\\x1b"}, 3)]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.mark.capturing
def test_a_port_in_use_is_one_line(start: Callable[..., Sniffer], taken: int) -> None:
    sniffer = start("sniff", "-i", "lo", "--metrics", f"127.0.0.1:{taken}")
    assert sniffer.end() == 1
    assert sniffer.err == [
        f"kwiresniff: --metrics 127.0.0.1:{taken}: address already in use; name another address or port"
    ]


def test_an_address_of_another_machine_is_one_line() -> None:
    with pytest.raises(ExportError, match=r"^--metrics 192\.0\.2\.1:9308: cannot assign requested address; name"):
        MetricsServer("192.0.2.1", 9308, list)


def test_without_the_library_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ExportError, match=r'pip install "kwiresniff\[metrics\]"'):
        MetricsServer("127.0.0.1", 0, list)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9308", ("127.0.0.1", 9308)),
        ("[::1]:9308", ("::1", 9308)),
        ("localhost:0", ("localhost", 0)),
        (":9308", ("", 9308)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert AddressType().convert(text, None, None) == address


@pytest.mark.parametrize("text", ["9308", "::1:9308", "localhost:", "localhost:http", "localhost:65536", "[::1]"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadParameter, match="9308"):
        AddressType().convert(text, None, None)
