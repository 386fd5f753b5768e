"""``kwiresniff report``: the page, checked as a browser would take it apart."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.analysis.report import Reporter
from kwiresniff.render.page import page
from tests.support.capture_files import irc, save
from tests.support.command import Run
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.html_pages import HOSTILE, Page

CAPTURES = Path(__file__).resolve().parents[2] / "captures"


def test_the_page_holds_what_the_other_commands_say(kwiresniff: Run, tmp_path: Path) -> None:
    capture, out = str(CAPTURES / "java-transactions.pcap"), tmp_path / "report.html"
    done = kwiresniff("report", "-O", str(out), "--title", "Friday <night>", capture)
    assert (done.code, done.out) == (0, "")
    found = Page(out.read_text("utf-8"))
    assert "Friday <night>" in found.text
    for finding in map(json.loads, kwiresniff("doctor", "-o", "jsonl", capture).out.splitlines()):
        assert finding["title"] in found.text and finding["remedy"] in found.text
    for row in map(json.loads, kwiresniff("stats", "-o", "jsonl", capture).out.splitlines()):
        assert row["api"] in found.text
    for client in map(json.loads, kwiresniff("clients", "-o", "jsonl", capture).out.splitlines()):
        assert client["client_id"] in found.text
    assert "generation 1" in found.text
    # Three plots over time, and who produces and consumes.
    assert found.tags["svg"] == 4


def test_the_page_fetches_and_runs_nothing(kwiresniff: Run, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    kwiresniff("report", "-O", str(out), str(CAPTURES / "java-produce.pcap"))
    html = out.read_text("utf-8")
    found = Page(html)
    assert found.active == []
    assert not {"link", "iframe", "img", "object", "embed", "form"} & set(found.tags)
    assert "@import" not in html and "url(http" not in html
    assert "default-src 'none'" in html


def test_the_page_lets_no_script_run_but_its_own(kwiresniff: Run, tmp_path: Path) -> None:
    """Browsers compare each script with the hash that the policy has (CSP level 3)."""
    out = tmp_path / "report.html"
    kwiresniff("report", "-O", str(out), str(CAPTURES / "java-produce.pcap"))
    html = out.read_text("utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    allowed = re.search(r"script-src ([^\"]*)\"", html)
    assert allowed is not None
    assert allowed[1] == f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
    assert "innerHTML" not in script


@pytest.mark.parametrize("command", ["report", "export"])
def test_a_capture_is_not_written_over(command: str, kwiresniff: Run, tmp_path: Path) -> None:
    """A slip of the fingers must not cost the evidence."""
    capture = tmp_path / "incident.jsonl"
    capture.write_bytes((CAPTURES / "first-look.pcap").read_bytes())
    done = kwiresniff(command, str(capture), "-O", str(capture))
    assert done.code == 1 and "this is one of the captures that are read; name another file" in done.err
    assert capture.read_bytes() == (CAPTURES / "first-look.pcap").read_bytes()


def test_findings_are_marked_in_the_plots(kwiresniff: Run, tmp_path: Path) -> None:
    """Each mark leads to the finding of that number, from each of the three plots over time."""
    out = tmp_path / "report.html"
    capture = str(CAPTURES / "incidents" / "broker-killed.pcap.xz")
    kwiresniff("report", "-O", str(out), capture)
    html = out.read_text("utf-8")
    found = [json.loads(line) for line in kwiresniff("doctor", "-o", "jsonl", capture).out.splitlines()]
    timed = [str(number) for number, one in enumerate(found, 1) if one["first_timestamp_ns"]]
    assert timed
    assert sorted(re.findall(r'href="#finding-(\d+)"', html)) == sorted(timed * 3)
    assert set(timed) <= set(re.findall(r'id="finding-(\d+)"', html))


def test_nothing_from_the_wire_becomes_markup() -> None:
    reporter = Reporter()
    on = connection()
    on.client_software = {"name": HOSTILE, "version": HOSTILE}
    on.sasl = {"mechanism": HOSTILE, "principal": HOSTILE, "outcome": "ok", "duration_ns": 1}
    errors = [("error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False)]
    topics = {"topics": [{"topic": HOSTILE}], "group_id": HOSTILE, "reason": HOSTILE}
    reporter.add(exchange(client_id=HOSTILE, on=on, request=topics, response={}, errors=errors, outcome="error"))
    joined = {"generation_id": 1, "member_id": HOSTILE, "protocol_name": HOSTILE}
    reporter.add(exchange("JoinGroup", 11, 9, client_id=HOSTILE, on=on, request=topics, response=joined))
    reporter.add(exchange(f"UNKNOWN_API_{9}", 9, 1, client_id=HOSTILE, on=on, start_ns=START_NS + 10**9))
    reporter.add(on)
    html = page(reporter.report(HOSTILE, [HOSTILE]))
    found = Page(html)
    assert found.active == []
    assert (found.tags["script"], "img" in found.tags) == (1, False)
    assert "\x1b" not in html and "\u202e" not in html
    assert "{{ 7*7 }}" in found.text


def test_tables_are_cut_and_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwiresniff.analysis.report.MAX_STAT_ROWS", 3)
    reporter = Reporter()
    for number in range(10):
        reporter.add(exchange(client_id=f"client-{number}", on=connection(number)))
    report = reporter.report("t", [])
    assert report.left_out == {"rows by client": 7}
    assert "7 more rows by client" in Page(page(report)).text


def test_a_capture_without_kafka_gives_a_page_that_says_so(kwiresniff: Run, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = kwiresniff("report", "-O", str(out), save(tmp_path / "irc.pcap", irc()))
    assert done.code == 0
    assert "no Kafka in it" in done.err
    assert "Nothing was found." in out.read_text("utf-8")


def test_without_its_libraries_one_line_says_what_to_install(
    kwiresniff: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kwiresniff.render.page.html.find_spec", lambda name: None)
    done = kwiresniff("report", "-O", str(tmp_path / "r.html"), str(CAPTURES / "java-produce.pcap"))
    assert (done.code, done.out) == (1, "")
    assert done.err == 'kwiresniff: a page needs jinja2: pip install "kwiresniff[report]"\n'


def test_a_page_is_bounded_whatever_things_are_called() -> None:
    """Names of 30 KB everywhere, events and clients of many such names: a page that a browser opens."""
    reporter = Reporter()
    for number in range(40):
        name = f"{number:06}" * 5_000
        topics = [{"topic": f"{at}{name}"} for at in range(4)]
        subscribed = [{"metadata_decoded": {"data": {"topics": [topic["topic"] for topic in topics]}}}]
        asked = {"group_id": name, "member_id": name, "topics": topics, "protocols": subscribed}
        failed = [("error_code", 15, "COORDINATOR_NOT_AVAILABLE", True)]
        reporter.add(exchange("JoinGroup", 11, 5, client_id=name, request=asked, response={"generation_id": 1}))
        told = {"error_message": name}
        more: dict[str, Any] = {"request": asked, "response": told, "errors": failed, "outcome": "error"}
        reporter.add(exchange("JoinGroup", 11, 5, client_id=name, **more))
    html = page(reporter.report("hostile", ["capture.pcap"]))
    assert len(html) < 5 << 20
    assert "more characters)" in Page(html).text


def test_the_page_has_a_section_of_topics(kwiresniff: Run, tmp_path: Path) -> None:
    """With who produces, who consumes, and the groups, as ``topics`` says."""
    out = tmp_path / "report.html"
    kwiresniff("report", "-O", str(out), str(CAPTURES / "java-group-cooperative.pcap"))
    section = out.read_text("utf-8").partition("<h2>Topics</h2>")[2].partition("<h2>")[0]
    cells = [cell.partition("<")[0] for cell in section.split("<td")[1:]]
    assert [cell.partition(">")[2] for cell in cells][:2] == ["shelves", "4"]
    for who in ("shop [fd09::2]", "member-1 [fd09::2]", "member-2 [fd09::2]", "warehouse"):
        assert who in section
