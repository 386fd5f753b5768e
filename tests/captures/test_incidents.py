"""What the doctor says of incidents that were provoked on a real broker.

``captures/recipes/analysis/incidents.py`` made the recordings; what really happened is known from what it did, and
stands in the manifest. What must be said first is written here by hand from that, not taken from what the doctor says.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Connection
from tests.support.command import Run
from tests.support.events import analyze
from tests.support.paths import CAPTURES
from tests.support.tshark_view import by_tshark

FOLDER = CAPTURES / "incidents"
ROWS = {row["file"]: row for row in tomllib.loads((FOLDER / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]}

#: By recording: code and severity of what must be said first, and words that must stand with it.
FIRST = {
    "topic-deleted": ("topic_deleted", "error", ["orders", "cleanup-job", "billing", "report"]),
    "hot-partition": ("hot_partition", "warning", ["clicks-", "tracker"]),
    "record-too-large": ("message_too_large", "error", ["uploader", "small-0"]),
    "request-too-large": ("closed_by_broker", "error", ["uploader", "Produce", "socket.request.max.bytes"]),
    "churn-classic": (
        "rebalances", "warning",
        ["packers", "packer-restless 10.9.0.2 joined 4 times, left 4 times", "consumer poll timeout has expired",
         "packer-crashed 10.9.0.2 joined once, closed its connection", "max.poll.interval.ms (4 s)"],
    ),
    "churn-consumer": (
        "rebalances", "warning",
        ["packers", "the consumer group", "packer-restless 10.9.0.2 joined 4 times, left 4 times",
         "packer-lazy 10.9.0.2 left and came back on the same connection twice", "max.poll.interval.ms (4 s)",
         "packer-crashed 10.9.0.2 joined once, closed its connection"],
    ),
    "churn-share": (
        "rebalances", "warning", ["workers", "the share group", "worker-restless 10.9.0.2 joined 5 times, left 5"],
    ),
    "churn-streams": (
        "rebalances", "warning",
        ["word-count", "the streams group", "counter-restless-StreamThread-1-consumer 10.9.0.2 joined 4 times, left 4"],
    ),
    "same-instance": ("fenced_instance_id", "error", ["packer-1", "pod-a", "pod-b", "packers"]),
    "transaction-left-open": (
        "invalid_txn_state", "error", ["payments-left", "transaction.timeout.ms is 4 s: the coordinator had"],
    ),
    "fenced": ("producer_fenced", "error", ["payments-tx", "payments-old", "payments-new"]),
    "listener-refused": ("advertised_listener", "error", ["10.9.0.1:9092", "10.9.0.1:9999", "refused", "billing"]),
    "listener-unresolvable": ("advertised_listener", "error", ["10.9.0.1:9092", "kafka-1.internal:9092", "billing"]),
    "listener-unresolvable-librdkafka": (
        "advertised_listener", "error", ["10.9.0.1:9092", "kafka-1.internal:9092", "sensor"],
    ),
    "listener-unresolvable-aiokafka": (
        "advertised_listener", "warning",
        ["tram 10.9.0.2", "10.9.0.1:9092", "kafka-1.internal:9092", "left 5 times", "or brokers that the capture does"],
    ),
    "listener-unresolvable-kafka-python": (
        "advertised_listener", "warning",
        ["board 10.9.0.2", "10.9.0.1:9092", "kafka-1.internal:9092", "left once", "for 12.9 s already"],
    ),
    "listener-absent-sarama": ("advertised_listener", "error", ["10.9.0.1:9092", "10.9.0.77:9092", "crane 10.9.0.2"]),
    "listener-absent-sarama-group": (
        "advertised_listener", "error", ["10.9.0.1:9092", "10.9.0.77:9092", "yard 10.9.0.2"],
    ),
    "syn-lost": ("syn_retransmits", "warning", ["10.9.0.1:9092", "1 of 8 connections", "3 times", "3.07 s"]),
    "stale-metadata": ("stale_metadata", "warning", ["old-dashboard", "orders-0"]),
    "sasl-on-plaintext": ("illegal_sasl_state", "error", ["billing", "PLAIN", "10.9.0.1:9092", "listener without it"]),
    "no-sasl": ("sasl_wanted", "error", ["billing", "10.9.0.1:9092", "does not authenticate"]),
    "untrusted-certificate": ("untrusted_certificate", "error", ["10.9.0.2", "10.9.0.1:9092", "certificate"]),
    "not-authorized": ("cluster_authorization_failed", "error", ["billing", "user alice", "ACLs"]),
    "no-coordinator": ("coordinator_not_available", "warning", ["report", "__consumer_offsets"]),
    "certificate-wanted": ("untrusted_certificate", "error", ["10.9.0.2", "10.9.0.1:9092", "client certificates"]),
    "tls-on-plaintext": ("tls_to_plaintext", "error", ["10.9.0.2", "10.9.0.1:9092", "speaks TLS"]),
    "plaintext-on-tls": ("plaintext_to_tls", "error", ["billing", "10.9.0.1:9092", "wants TLS"]),
    "fetch-quota": ("throttled", "error", ["replayer", "fetch quota of user alice"]),
    "missing-topic": ("unknown_topic_or_partition", "warning", ["report", "orders"]),
    "broker-killed": ("leader_change", "warning", ["orders-", "node 2 (10.9.0.1:9094)", "the old leader had gone"]),
    "broker-restarted": ("leader_change", "warning", ["orders-", "node 2 (10.9.0.1:9094)", "order-svc", "needed"]),
    "replicas-left": ("not_enough_replicas", "error", ["orders-0", "node 3 (10.9.0.1:9096) left", "order-svc"]),
    "log-directory-failed": (
        "partition_offline", "error", ["orders-0", "node 1 (10.9.0.1:9092)", "a log directory of it failed"],
    ),
    "controller-gone": ("unanswered", "error", ["deployer", "CreateTopics", "the controller does not"]),
    "produce-quota": ("throttled", "error", ["loader", "produce quota of user alice", "before the broker reads them"]),
    "produce-quota-1.1": ("throttled", "error", ["none 10.9.0.2", "produce quota", "holds its responses back"]),
    "request-quota": ("throttled", "error", ["hasty", "produce quota or the request quota of user ANONYMOUS"]),
    "retention": ("offset_out_of_range", "warning", ["report", "orders-0 from offset 2", "the log holds 7 to"]),
    "transaction-stuck": (
        "transaction_open", "error", ["payments-stuck 10.9.0.2", "parcels-0 at 0", "600 s", "ledger 10.9.0.2"],
    ),
    "held-up": ("long_rebalance", "warning", ["packers", "waited for packer-slow 10.9.0.2", "14 s"]),
    "wrong-password": ("sasl_authentication_failed", "error", ["billing", "user alice", "PLAIN"]),
    "old-client": ("unsupported_version", "error", ["none 10.9.0.2", "Produce v1", "4.0", "10.9.0.1:9092"]),
    "consumer-behind": (
        "consumer_lag", "warning", ["report 10.9.0.2", "clicks", "group reports", "commits", "clicks-0", "clicks-1"],
    ),
    "slow-polls-classic": (
        "rebalances", "warning",
        ["packers", "packer-slow 10.9.0.2 was longer between polls", "max.poll.interval.ms (3 s)",
         "consumer poll timeout has expired"],
    ),
    "slow-polls-consumer": (
        "rebalances", "warning",
        ["packers", "the consumer group", "packer-slow 10.9.0.2 left and came back on the same connection 5 times",
         "max.poll.interval.ms (3 s)"],
    ),
    "frozen-member": (
        "rebalances", "warning", ["packers", "packer-frozen 10.9.0.2 was removed 4 times", "no heartbeat"],
    ),
    "small-fetches": (
        "small_fetches", "warning", ["report 10.9.0.2", "clicks", "one record", "no more than 100 bytes"],
    ),
    "impatient-consumer": (
        "request_timeout", "warning", ["report 10.9.0.2", "gives up on Fetch", "may take 8", "request.timeout.ms"],
    ),
    "two-assignors": ("inconsistent_group_protocol", "error", ["packer-new", "group packers", "no assignor"]),
    "group-full": ("group_max_size_reached", "error", ["packer-2", "group packers", "group.max.size"]),
    "clock-ahead": ("invalid_timestamp", "error", ["sensor 10.9.0.2", "readings-0", "23 h ahead", "clock"]),
    "no-key": ("invalid_record", "error", ["profiles-svc", "profiles-0", "without key", "compacted"]),
    "zstd-old-reader": ("zstd_not_known", "error", ["archive 10.9.0.2", "orders-0", "zstd", "Fetch v7", "Kafka 2.1"]),
    "transaction-timed-out": (
        "producer_fenced", "error",
        ["payments-tx", "payments-slow 10.9.0.2", "fenced by its coordinator", "transaction.timeout.ms is 3 s"],
    ),
    "transactional-id-denied": (
        "transactional_id_authorization_failed", "error", ["user alice", "transactional id payments-tx", "ACLs"],
    ),
    "connections-per-ip": (
        "connections_refused", "error", ["10.9.0.2", "10.9.0.1:9092", "at once", "3 others", "max.connections.per.ip"],
    ),
    "connection-rate": (
        "connections_refused", "error", ["10.9.0.2", "10.9.0.1:9092", "a second", "connection_creation_rate"],
    ),
    "user-removed": (
        "sasl_authentication_failed", "error",
        ["user alice", "SCRAM-SHA-256", "it could", "user-admin 10.9.0.2 removed the SCRAM credentials of user alice"],
    ),
    "expired-token": (
        "sasl_authentication_failed", "error",
        ["billing", "user alice", "OAUTHBEARER", "its token had expired", "invalid_token"],
    ),
    "expired-certificate": ("untrusted_certificate", "error", ["10.9.0.2", "10.9.0.1:9092", "has expired", "names"]),
    "expired-certificate-tls-1.2": (
        "untrusted_certificate", "error", ["10.9.0.1:9092", "broker-1.test", "expired on 2025-06-30", "renew it"],
    ),
    "other-host": ("untrusted_certificate", "error", ["10.9.0.2", "10.9.0.1:9092", "does not name the host"]),
    "other-host-tls-1.2": (
        "untrusted_certificate", "error", ["kafka.example", "does not name the host that it dials (10.9.0.1)"],
    ),
    "reassignment": (
        "leader_change", "warning", ["orders-", "node 1 (10.9.0.1:9092)", "ops 10.9.0.2 asked for it", "Reassignments"],
    ),
    "broker-frozen": (
        "broker_stalled", "error", ["10.9.0.1:9094 (node 2)", "answered nothing for 15.4 s", "stopped process"],
    ),
    "unclean-election": (
        "records_lost", "error",
        ["orders-0", "node 1", "node 2", "was made leader without them", "unclean.leader.election.enable"],
    ),
    "coordinator-gone": (
        "coordinator_not_available", "error",
        ["report 10.9.0.2", "group reports", "was 10.9.0.1:9092 (node 1)", "__consumer_offsets", "single replica"],
    ),
    "coordinator-killed": (
        "leader_change", "warning",
        ["orders-", "node 1 (10.9.0.1:9092) closed its connections", "coordinator of group reports moved as well",
         "10.9.0.1:9094 (node 2)"],
    ),
    "topic-recreated": ("topic_deleted", "error", ["orders", "deployer 10.9.0.2", "made anew afterwards"]),
    "directory-slow": (
        "slow_authentication", "error",
        ["mailer 10.9.0.2", "user alice", "1.5 s to 1.53 s", "8 connections", "answers nobody meanwhile", "LDAP"],
    ),
    "silence": ("retransmits", "warning", ["10.9.0.2", "10.9.0.1:9092", "sent twice", "network"]),
    "streams-missing-topic": (
        "streams_group_not_ready", "error", ["word-count", "topics that it reads from are missing", "lines"],
    ),
    "broker-down": (
        "broker_unreachable", "warning", ["10.9.0.1:9094", "refuses connections", "the capture does not show"],
    ),
    "idle-forgotten": (
        "idle_forgotten", "warning",
        ["heartbeat 10.9.0.2", "10.9.0.1:9999", "are reset when they are used again", "4 s or more", "NAT, firewall"],
    ),
    "slow-reader": (
        "slow_transfer", "warning",
        ["slow-report 10.9.0.2", "10.9.0.1:9092", "5.2 s to receive", "3 times", "zero_window"],
    ),
    "poison-record": (
        "no_progress", "warning",
        ["packer 10.9.0.2", "parcels-0 at offset 3", "5 times", "group packers", "rebalances"],
    ),
    "record-retried": (
        "no_progress", "warning", ["packer 10.9.0.2", "parcels-1 at offset 5", "13 times", "group packers"],
    ),
    "stuck-consumer-classic": (
        "not_polling", "warning", ["report 10.9.0.2", "for 19.9 s", "heartbeats went on", "group reports"],
    ),
    "stuck-consumer-consumer": (
        "not_polling", "warning", ["report 10.9.0.2", "for 20 s", "heartbeats went on", "group reports"],
    ),
    "narrow-path": (
        "path_mtu", "error", ["10.9.0.2 to 10.9.0.1:9092", "1,448 bytes", "on 4 connections", "MTU", "billing"],
    ),
    "load-balanced": (
        "shared_address", "error",
        ["nodes 1, 2, 3 all advertise 10.9.0.1:9999", "REBOOTSTRAP_REQUIRED", "load balancer"],
    ),
    "far-away": (
        "long_path", "warning",
        ["10.9.0.2 to 10.9.0.1:9092", "is 241 ms there and back", "billing 10.9.0.2", "report 10.9.0.2"],
    ),
    "untrusted-certificate-aiokafka": (
        "untrusted_certificate", "error", ["10.9.0.2", "10.9.0.1:9092", "without an alert", "openssl s_client"],
    ),
    "wrong-password-tls": (
        "tls_closed", "info", ["10.9.0.2", "10.9.0.1:9092", "soon after their TLS handshake", "wrong password"],
    ),
    "follower-killed": (
        "replica_wait", "warning",
        ["10.9.0.1:9094 (node 2) closed its connections", "10.9.0.1:9092 (node 1)", "order-svc 10.9.0.2", "Produce"],
    ),
    "broker-pauses": (
        "replica_wait", "warning", ["10.9.0.1:9094 (node 2) stood still", "order-svc 10.9.0.2", "Produce"],
    ),
    "follower-pauses": (
        "replica_wait", "warning",
        ["10.9.0.1:9092 (node 1)", "3 times", "it answered others meanwhile", "node 2 (10.9.0.1:9094) was slow to copy",
         "order-svc 10.9.0.2"],
    ),
    "offsets-set": (
        "commit_from_outside", "warning", ["ops 10.9.0.2", "group reports", "without being one of them, 3 times"],
    ),
    "too-large-unasked": (
        "acks_0_refused", "error", ["metrics 10.9.0.2", "acks=0", "6 times", "lost", "max.message.bytes"],
    ),
    "right-removed": (
        "topic_authorization_failed", "error",
        ["billing 10.9.0.2", "topic orders", "Produce", "acl-admin 10.9.0.2 denied it to User:ANONYMOUS at 08:41:43"],
    ),
    "partition-paused": (
        "partition_not_read", "warning", ["group mail", "mailer 10.9.0.2", "orders-1", "reads 2 other partitions"],
    ),
    "application-hangs": (
        "commits_stopped", "warning", ["group mail", "mailer 10.9.0.2", "fetches on and commits nothing", "for 11 s"],
    ),
    "group-shared": (
        "shared_group", "info", ["group backend", "order-app 10.9.0.2 to orders", "payment-app 10.9.0.2 to payments"],
    ),
    "listener-unresolvable-of-one": (
        "broker_not_dialled", "error",
        ["kafka-3.internal:9096 (node 3)", "shop 10.9.0.2", "not even with a SYN", "orders-1", "10.9.0.1:9094"],
    ),
    "protocol-not-enabled": ("unsupported_version", "error", ["report", "ConsumerGroupHeartbeat", "not enabled"]),
    "loss-to-one-broker": (
        "retransmits", "warning", ["only on the way between 10.9.0.2 and 10.9.0.1:9094 (node 2)", "elsewhere"],
    ),
    "narrow-link": (
        "slow_transfer", "warning",
        ["warehouse 10.9.0.2", "10.9.0.1:9092", "10.9.0.1:9094", "10.9.0.1:9096", "all 3 brokers together",
         "10.9.0.3 is not slow", "segments were lost on the way to it"],
    ),
    "bytes-flood": ("byte_load", "warning", ["backfill 10.9.0.2", "writes 24,", "Produce of checkout waits"]),
    "begins-at-the-end": (
        "records_skipped", "info", ["group newsletter", "newsletter 10.9.0.2", "orders-0", "auto.offset.reset=latest"],
    ),
    "pattern-without-topic": (
        "nothing_assigned", "warning", ["group mailer", "mailer 10.9.0.2", "has not joined", "matches no topic"],
    ),
    "share-late": (
        "share_lock_expired", "warning",
        ["group workers", "worker-slow 10.9.0.2", "parcels", "INVALID_RECORD_STATE", "the lock on them lasts (2 s)"],
    ),
    "share-poison": (
        "share_redelivery", "warning",
        ["group workers", "worker-strict 10.9.0.2", "1 record of parcels was delivered up to 5 times", "released",
         "rejected"],
    ),
    "clock-behind": (
        "clock_skew", "warning", ["sensor 10.9.0.2", "readings", "300 s behind", "till 10.9.0.2 have the right time"],
    ),
    "addresses-swapped": (
        "wrong_address", "error",
        ["10.9.0.1:9094 is not node 3", "10.9.0.1:9096 is not node 2", "swapped", "shop 10.9.0.2", "not_coordinator"],
    ),
    "one-host-shut-out": (
        "broker_unreachable", "warning",
        ["10.9.0.3 to 10.9.0.1:9094 (node 2)", "while 10.9.0.2 works with it", "between 10.9.0.3 and it"],
    ),
    "followers-denied": (
        "replication_denied", "error",
        ["10.9.0.1:9192", "10.9.0.1:9194", "10.9.0.1:9196", "orders", "ClusterAction", "Produce was not answered"],
    ),
    "partitions-added": (
        "records_skipped", "warning",
        ["group mail", "mailer 10.9.0.2", "after ops 10.9.0.2 added them", "orders-2, orders-3", "up to 35 records"],
    ),
    "member-away": (
        "member_away", "warning",
        ["group mail", "mailer-1 10.9.0.2 (static member mailer-1)", "14", "session.timeout.ms 45 s", "nobody read"],
    ),
    "committed-early": (
        "committed_early", "warning",
        ["shipper 10.9.0.2", "group shipping", "orders-1 at 31, read to 29", "2 records between are not read"],
    ),
    "aborted-records": (
        "aborted_records_read", "warning",
        ["audit 10.9.0.2", "20 records of orders", "transfer-tx", "isolation.level=read_uncommitted"],
    ),
}  # fmt: skip
#: What else is said of a recording above info: other people whom the same thing happens to.
ALSO = {
    "coordinator-gone": {("leader_change", "warning")},
    "not-authorized": {("group_authorization_failed", "error"), ("topic_authorization_failed", "error")},
}
HEALTHY = ("idle-connections", "listener-named", "old-client-negotiates", "rolling-restart")


def test_every_recording_has_a_row_and_an_expectation() -> None:
    """The manifest has as many rows as there are recordings, and each row has its file."""
    assert set(ROWS) == {path.name for path in FOLDER.glob("*.pcap.xz")}
    assert set(ROWS) == {f"{name}.pcap.xz" for name in (*FIRST, *HEALTHY)}
    for name, row in ROWS.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == row["sha256"]


def test_a_rolling_restart_costs_each_time_what_it_did(kwiresniff: Run) -> None:
    """Both nodes moved their partitions, one there and back; clients were served in between."""
    changes = [one for one in findings(kwiresniff, "rolling-restart") if one["code"] == "leader_change"]
    assert sorted(one["numbers"]["from"] for one in changes) == [2, 3]
    assert all(one["numbers"]["longest_ns"] < 1_000_000_000 for one in changes)


def test_a_transaction_that_is_left_open_is_open_until_the_capture_ends(kwiresniff: Run) -> None:
    """Its producer said nothing more after 16:10:00.6; the last packet with data is of 16:10:26."""
    out = kwiresniff("producers", str(FOLDER / "transaction-stuck.pcap.xz")).out
    (line,) = [line for line in out.splitlines() if line.startswith("  open ")]
    assert "16:10:00.510  25.6 s at least" in line


def findings(kwiresniff: Run, name: str) -> list[dict[str, Any]]:
    done = kwiresniff("doctor", "-o", "jsonl", str(FOLDER / f"{name}.pcap.xz"))
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize("name", FIRST)
def test_the_cause_is_said_first_and_what_follows_from_it_not_again(kwiresniff: Run, name: str) -> None:
    """By its code, its severity, and those whom it concerns; one incident is one finding."""
    code, severity, words = FIRST[name]
    first, *more = findings(kwiresniff, name)
    assert (first["code"], first["severity"]) == (code, severity)
    told = json.dumps(first, ensure_ascii=False)
    assert [word for word in words if word not in told] == []
    assert first["evidence"]
    assert {(one["code"], one["severity"]) for one in more if one["severity"] != "info"} == ALSO.get(name, set())


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_where_nothing_is_wrong(kwiresniff: Run, name: str) -> None:
    """Above what is good to know."""
    assert [one for one in findings(kwiresniff, name) if one["severity"] != "info"] == []


def test_a_segment_that_never_arrived_is_counted_as_tshark_shows_it(tmp_path: Path) -> None:
    """How often the data was sent again that the broker waits for to the end, since other data was."""
    plain = tmp_path / "narrow-path.pcap"
    plain.write_bytes(lzma.decompress((FOLDER / "narrow-path.pcap.xz").read_bytes()))
    expected: dict[str, list[tuple[int, int]]] = {}
    acks: dict[str, int] = {}
    for one in by_tshark(plain):
        if one.payload and one.destination.endswith(" 9092"):
            expected.setdefault(one.source, []).append((one.seq, len(one.payload)))
        elif one.source.endswith(" 9092"):
            acks[one.destination] = one.ack
    stuck: dict[str, tuple[int, int]] = {}
    for client, segments in expected.items():
        known, again = set(), []
        for seq, size in segments:
            if seq in known:
                again.append((seq, size))
            known.add(seq)
        awaited = acks[client]
        last = again[len(again) - next((n for n, one in enumerate(reversed(again)) if one[0] != awaited), len(again)) :]
        if last:
            stuck[client] = min(size for _, size in last), len(last)
    assert len(stuck) == 4
    found = {
        one.client.replace(":", " "): (one.unacknowledged.size_bytes, one.unacknowledged.retransmits)
        for one in analyze(open_captures([str(plain)]))
        if isinstance(one, Connection) and one.unacknowledged is not None
    }
    assert found == stuck
