"""What clients do to others and to themselves by how they ask: too often, too late, on ever new connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import WASTE, Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.metadata_requests import ALIKE
from kwiresniff.analysis.doctor.observers.opened_connections import CONNECTIONS_PER_MINUTE, ENOUGH_CONNECTIONS
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.base.time_units import MILLISECOND_NS

#: A client may ask for metadata so often in a second before it is waste.
METADATA_PER_SECOND: Final = 5.0
#: A connection that lasts is there for more than such a part of the time in which its client is.
SHORT_PART: Final = 4

#: How libraries call ``metadata.max.age.ms``.
_MAX_AGE: Final = (
    "metadata.max.age.ms (librdkafka: topic.metadata.refresh.interval.ms; kafkajs: metadataMaxAge; kafka-python and "
    "aiokafka: metadata_max_age_ms; sarama: Metadata.RefreshFrequency)"
)


class MetadataStorm(Cause):
    """`metadata_storm` (warning): a client, or those that ask at the same interval together, ask for metadata more than
    5 times a second. Why is told by when they do, on which connections, and by the answers: at regular intervals on
    connections that stand with good answers it is `metadata.max.age.ms`; with errors in the answers a topic or a leader
    is missing; after failed requests they look for a leader or a coordinator; otherwise the application asks. What is
    asked on new connections each time is a symptom of those (`connection_churn`).
    """

    codes = ("metadata_storm",)
    explains = ("metadata_requests",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By why they ask; clients that do so at the same interval together."""
        regular: list[Observation] = []
        for one in observed.of("metadata_requests"):
            numbers = one.numbers
            few_connections = numbers["connections"] * 2 < one.count
            told = numbers["with_errors"] + numbers["after_failures"]
            if numbers["interval_ns"] and few_connections and told * 10 < one.count:
                regular.append(one)
            elif numbers["per_second"] > METADATA_PER_SECOND:
                yield self._other(one, on_new=not few_connections)
        regular.sort(key=lambda one: int(one.numbers["interval_ns"]))
        while regular:
            limit_ns = regular[0].numbers["interval_ns"] * ALIKE
            count = sum(one.numbers["interval_ns"] <= limit_ns for one in regular)
            alike, regular = regular[:count], regular[count:]
            if sum(one.numbers["per_second"] for one in alike) > METADATA_PER_SECOND:
                yield self._regular(alike)

    def _regular(self, alike: list[Observation]) -> Explanation:
        clients = sorted(name for one in alike for name in one.named("client"))
        interval_ns = alike[len(alike) // 2].numbers["interval_ns"]
        many = len(clients) > 1
        good = ", with good answers" if any(one.numbers["answered"] for one in alike) else ""
        asking = f"{len(clients)} clients ask" if many else "asks"
        return Explanation(
            code="metadata_storm",
            subject=f"{clients[0]} and {counted(len(clients) - 1, 'other')}" if many else clients[0],
            title=f"{asking} for metadata about every {duration(interval_ns)}, at regular intervals on connections "
            f"that stand{good}: {sum(one.count for one in alike):,} requests in all",
            remedy=f"That is their setting: raise {_MAX_AGE}; the default is 5 minutes. Clients learn of a new leader "
            "by the error of the old one, at once.",
            explained=tuple(alike),
            numbers={
                "per_second": round(sum(one.numbers["per_second"] for one in alike), 1),
                "interval_ns": interval_ns,
                "subjects": clients[:100],
                "subject_count": len(clients),
            },
            details=(f"clients: {listed(clients)}",) if many else (),
            severity="warning",
            rank=WASTE,
        )

    def _other(self, one: Observation, *, on_new: bool) -> Explanation:
        numbers = one.numbers
        if numbers["with_errors"] * 2 > one.count:
            why = f", and is answered with {listed(numbers['errors'])}"
            remedy = "It waits for a topic or a leader that is not there: create the topic, or mend its name."
        elif numbers["after_failures"] * 2 > one.count:
            why = f", because its requests fail with {listed(numbers['failures'])}"
            remedy = "It looks for a leader or a coordinator that serves it: mend what those errors say."
        elif on_new:
            why = f", on {counted(numbers['connections'], 'connection')}: a new client each time"
            remedy = "Keep one client for the life of the process: each new one asks for metadata first."
        else:
            why = ", at no regular interval, and is answered without errors"
            remedy = (
                "Its application asks: an admin client in a loop, partitionsFor or a list of topics for each message. "
                "Ask seldom, and keep what was answered."
            )
        return self.told(
            one,
            f"asks for metadata {numbers['per_second']:.0f} times a second, {one.count:,} times in all{why}",
            remedy,
            numbers={"per_second": numbers["per_second"]},
            severity="warning",
            rank=WASTE,
        )


class ConnectionChurn(Cause):
    """`connection_churn` (warning; info for a broker that looks for its controller): a client opens more than 30
    connections a minute, by the time in which it was seen, in place of others that have ended, and none lasts. Seen
    must be the handshakes and the ends: a client that starts opens many at once and keeps them. Its requests for
    metadata are symptoms.
    """

    codes = ("connection_churn",)
    explains = ("connections_opened", "metadata_requests")

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers = one.numbers
        is_short = numbers["mean_lifetime_ns"] * SHORT_PART < numbers["seen_ns"]
        if not is_short or numbers["again"] < ENOUGH_CONNECTIONS or numbers["per_minute"] <= CONNECTIONS_PER_MINUTE:
            return None
        client, brokers = numbers["client"], numbers["brokers"]
        per_broker = listed([f"{broker} {count}" for broker, count in brokers.items()])
        asked = observed.about([f"client:{client}"], "metadata_requests")
        each = _made_for(numbers)
        return self.told(
            one,
            f"opens {numbers['per_minute']:.0f} connections a minute ({numbers['connections']:,} in "
            f"{duration(numbers['seen_ns'])}; {per_broker}), each for "
            f"{numbers['requests'] / numbers['connections']:.1f} requests{each}",
            "Keep one client for the life of the process: each new one costs a handshake with every broker "
            "that it speaks to, ApiVersions, Metadata, and for a producer an id.",
            subject=client,
            explained=(one, *asked),
            numbers={
                "client": client,
                "broker": max(brokers, key=lambda name: brokers[name]),
                "per_minute": numbers["per_minute"],
                "brokers": brokers,
                "new_producers": numbers["new_producers"],
            },
            severity="info" if client.partition(" ")[0].isdigit() else "warning",
            rank=WASTE,
        )


def _made_for(numbers: dict[str, int]) -> str:
    """What a client is made anew for, by what is done on its connections."""
    produces, producers, joins = numbers["produces"], numbers["new_producers"], numbers["joins"]
    if producers * 2 > produces > 0:
        often = "message" if producers >= produces else "few messages"
        return f": a new producer for every {often} ({producers} of them)"
    if produces and produces <= numbers["connections"]:
        return f": a new producer for every message or so ({counted(produces, 'Produce request')})"
    return f": a new consumer each time ({counted(joins, 'join')})" if joins * 4 > numbers["connections"] else ""


class AskingClients(Cause):
    """`request_load` (warning where others wait twice as long meanwhile, else info): clients that are alike send more
    than half of all requests, most of which only ask: offsets of groups, lists, descriptions, metadata. Seen must be
    other clients, too. That others wait longer is seen by their Produce requests before, during and after; a broker
    that is slow in just that time for another reason looks the same.
    """

    codes = ("request_load",)
    explains = ("client_load", "metadata_requests")

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers = one.numbers
        hurts, metadata = bool(numbers["slowed"]), numbers["apis"].get("Metadata", 0)
        if numbers["share"] == 1 or (not hurts and metadata * 2 > numbers["requests"]):
            return None
        clients = [name for name in one.about if name.startswith("client:")]
        apis = [f"{api} ({count:,})" for api, count in numbers["apis"].items()]
        many = f", from {numbers['instances']} instances" if numbers["instances"] > 1 else ""
        hurt = [
            f"Produce of {slowed['client']} waits {duration(slowed['during_ns'])} meanwhile instead of "
            f"{duration(slowed['before_ns'])} (p50)"
            for slowed in numbers["slowed"]
        ]
        return self.told(
            one,
            f"sends {numbers['share']:.0%} of all requests, {numbers['per_second']:,.0f} a second{many}: "
            f"{listed(apis, 5)}{'; ' if hurt else ''}{listed(hurt, 3)}",
            "What it asks changes nothing: let it ask at an interval (an exporter each 15 to 60 s), for the "
            "groups and topics that it needs, and from one instance. A quota on request_percentage holds it back "
            "until then.",
            subject=numbers["subject"],
            explained=(one, *observed.about(clients, "metadata_requests")),
            numbers={name: value for name, value in numbers.items() if name != "subject"},
            rank=WASTE if not hurt else 0,
        )


class HeavyClients(Cause):
    """`byte_load` (warning): clients that are alike send and receive more than half of all bytes, and others wait for
    their writes 5 ms longer meanwhile, and twice as long, than while they are idle: a bulk load, a backfill, a consumer
    that reads a topic again from its beginning. A broker that is slow in just that time for another reason looks the
    same.
    """

    codes = ("byte_load",)
    explains = ("byte_load", "late_writes")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By clients that are alike."""
        for one in observed.of("byte_load"):
            numbers = one.numbers
            does, quota = ("writes", "producer") if numbers["mostly"] == "Produce" else ("reads", "consumer")
            hurt = [
                f"Produce of {slowed['client']} waits {duration(slowed['during_ns'])} meanwhile instead of "
                f"{duration(slowed['before_ns'])} (p50)"
                for slowed in numbers["slowed"]
            ]
            late = [each for each in observed.of("late_writes") if _is_within(each, one)]
            yield Explanation(
                code="byte_load",
                subject=numbers["subject"],
                title=f"{does} {numbers['bytes']:,} bytes, {numbers['byte_share']:.1%} of all that go to and from the "
                f"brokers, {numbers['bytes_per_second']:,} a second, in {numbers['share']:.0%} of the requests; "
                f"{listed(hurt, 3)}",
                remedy=f"Hold it back with a quota ({quota}_byte_rate of its user or client id), let it work when "
                "others do not, or give the brokers more disk and network. A consumer that reads old records also "
                "takes the page cache from those that read new ones.",
                explained=(one, *late),
                doubt="The brokers may have been slow in just that time for another reason." if late else "",
                numbers={name: value for name, value in numbers.items() if name not in ("subject", "mostly")},
                severity="warning",
            )


def _is_within(late: Observation, load: Observation) -> bool:
    """Whether writes of a client that waits for another's load were late while that went on, for the most part."""
    names = {name for name in late.named("client") for one in load.numbers["slowed"] if one["client"] in name}
    both_ns = min(late.last_ns, load.last_ns) - max(late.first_ns, load.first_ns)
    return bool(names) and 2 * both_ns >= late.last_ns - late.first_ns


class LateFetches(Cause):
    """`late_fetches` (warning): a consumer lets its broker hold its fetches for longer than the default of 500 ms until
    many bytes have come together (`fetch.min.bytes`, `fetch.max.wait.ms`), and records wait in the broker meanwhile.
    How long is told by their own timestamps. Must not be seen: waits of consumers that take any record at once.
    """

    codes = ("late_fetches",)
    explains = ("held_fetches",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers = one.numbers
        wait_ns = numbers["max_wait_ms"] * MILLISECOND_NS
        reached = numbers["largest_bytes"] >= numbers["min_bytes"]
        return self.told(
            one,
            f"lets the broker hold its fetches for up to {duration(wait_ns)} until there are "
            f"{numbers['min_bytes']:,} bytes{'' if reached else ', which never come together'}: its records are "
            f"{duration(numbers['mean_late_ns'])} late on average, {duration(numbers['longest_late_ns'])} at most",
            f"Lower fetch.max.wait.ms ({numbers['max_wait_ms']}) and fetch.min.bytes "
            f"({numbers['min_bytes']}) to what the application can wait for; by default the broker answers with "
            "the first record.",
            supports=(f"the largest answer had {numbers['largest_bytes']:,} bytes of records",),
            severity="warning",
        )


class StateRestored(Cause):
    """`state_restored` (info): Kafka Streams reads changelog topics from offset 0, as it does where the state directory
    is new or lost. Until it has reached their end the task does no other work; that it stops there is no lag.
    """

    codes = ("state_restored",)
    explains = ("changelog_restored",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By client, all its changelogs together."""
        clients: dict[str, list[Observation]] = {}
        for one in observed.of("changelog_restored"):
            clients.setdefault(one.name("client"), []).append(one)
        for client, restored in clients.items():
            records = sum(one.numbers["records"] for one in restored)
            first_ns, last_ns = min(one.first_ns for one in restored), max(one.last_ns for one in restored)
            topics = sorted(one.numbers["topic"] for one in restored)
            yield Explanation(
                code="state_restored",
                subject=client,
                title=f"read {counted(len(topics), 'changelog topic')} from offset 0 ({counted(records, 'record')} in "
                f"{duration(last_ns - first_ns)}: {listed(topics)}): its state directory was new or lost",
                remedy="Nothing is wrong. Where restoring takes long, keep state.dir on a disk that outlives restarts, "
                "or run standby replicas (num.standby.replicas).",
                explained=tuple(restored),
                numbers={"topics": topics[:100], "records": records},
                severity="info",
            )
