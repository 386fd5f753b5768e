"""Clients whose requests or bytes make others wait."""

from __future__ import annotations

from kwiresniff.analysis.doctor.cause import WASTE, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import duration, listed


@cause("request_load", explains=("client_load", "metadata_requests"))
def asking_clients(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`request_load` (warning where others wait twice as long meanwhile, else info): clients that are alike send more
    than half of all requests, most of which only ask: offsets of groups, lists, descriptions, metadata. Seen must be
    other clients, too. That others wait longer is seen by their Produce requests before, during and after; a broker
    that is slow in just that time for another reason looks the same.
    """
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
    return told(
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


@cause("byte_load", explains=("byte_load", "late_writes"))
def heavy_clients(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`byte_load` (warning): clients that are alike send and receive more than half of all bytes, and others wait for
    their writes 5 ms longer meanwhile, and twice as long, than while they are idle: a bulk load, a backfill, a consumer
    that reads a topic again from its beginning. A broker that is slow in just that time for another reason looks the
    same.
    """
    numbers = one.numbers
    does, quota = ("writes", "producer") if numbers["mostly"] == "Produce" else ("reads", "consumer")
    hurt = [
        f"Produce of {slowed['client']} waits {duration(slowed['during_ns'])} meanwhile instead of "
        f"{duration(slowed['before_ns'])} (p50)"
        for slowed in numbers["slowed"]
    ]
    late = [each for each in observed.of("late_writes") if _is_within(each, one)]
    return told(
        one,
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
