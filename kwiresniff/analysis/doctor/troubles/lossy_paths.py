"""Packets that paths lose, compared between paths: near a broker, near a client's host, or between all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kwiresniff.analysis.doctor.cause import INCIDENT, SYMPTOM, Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed, grouped
from kwiresniff.analysis.doctor.troubles.segments import (
    BAD_PER_THOUSAND,
    ENOUGH_PACKETS,
    FEW_SYNS,
    LOSSY,
    RETRANSMITS,
    SOME_RETRANSMITS,
)
from kwiresniff.analysis.doctor.wording import duration, listed, times

#: A lossy path loses so many times as much as the others, which get this number added: few packets show little.
TIMES_MORE: Final = 4
BY_CHANCE: Final = 2
#: Half of the packets of a path only acknowledge, and their loss is not seen: this is 1 % of those with data.
POOL_PER_THOUSAND: Final = 5
#: The largest window without window scaling (RFC 9293).
WINDOW_BYTES: Final = 65_536


class _Loss(NamedTuple):
    """The packets of some paths, and those of them that were sent again."""

    packets: int
    again: int

    def is_more_than(self, other: _Loss) -> bool:
        """Whether these lose several times as much as the others, where those are enough."""
        if other.packets < ENOUGH_PACKETS // 4:
            return False
        return self.again * other.packets >= TIMES_MORE * (other.again + BY_CHANCE) * self.packets

    @property
    def per_thousand(self) -> int:
        return self.again * 1_000 // max(self.packets, 1)

    @property
    def is_bad(self) -> bool:
        """Whether a network that loses as much is bad."""
        return self.again >= self.packets * RETRANSMITS

    def text(self) -> str:
        return f"{self.again} of {self.packets:,} packets"


class _Place(NamedTuple):
    """The lossy paths of a place, where that is, and the paths that they are compared with."""

    subject: str
    where: str
    paths: list[Observation]
    others: list[Observation]


class LossyPath(Cause):
    """`retransmits` (warning; info below 2 %, or 1 % where other paths are compared, of one direction alone below 3 %):
    a path loses packets: more than 1 % of those of a connection were sent again, of one with fewer than 1,000 packets 3
    %, at least ten and some in either direction, or one in ten; segments that were lost before the capture point count
    as well. Where the paths of a host to several brokers are alike, they count together, from 0.5 % on.

    Paths are compared: what only the paths to one broker lose is near that broker, what only those of one host lose is
    on the client's side, where there are others of 250 packets and more that lose a fourth as much or less. Late
    acknowledgements make TCP send again, too (tail loss probes, RFC 8985), as when a machine is short of CPU or the
    receiver waits with them, and a receiver that takes no more is asked again and again. Writes that were late on such
    a path are symptoms where no more were late than packets were lost, and so are small messages that took long to
    pass. They make it a warning where other paths are compared, or where a segment was lost before the capture point,
    which shows that the path does lose some. Where one packet in ten is lost, slow and missing answers of that broker
    are symptoms, too.
    """

    codes = ("retransmits",)
    explains = (
        "segments_resent", "segments_arrived", "syns_resent", "late_writes", "slow_transfer",
    )  # fmt: skip

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        paths_of = grouped(
            observed.of("segments_resent", "segments_arrived"), lambda one: self.context.cluster.of(one.name("broker"))
        )
        for paths in paths_of.values():
            for place in self._places(paths):
                yield self._explanation(place, observed)

    def _places(self, paths: list[Observation]) -> Iterator[_Place]:
        """Places near brokers first, then near hosts, then those without a comparison."""
        lossy = _lossy(paths)
        left = paths
        name = self.context.cluster.broker_text
        for broker in sorted({one.name("broker") for one in lossy}):
            of_broker = [one for one in lossy if one.name("broker") == broker]
            hosts = {one.name("host") for one in of_broker}
            others = [one for one in paths if one.name("host") in hosts and one.name("broker") != broker]
            alike = [one for one in paths if one.name("broker") == broker and one.name("host") not in hosts]
            if _lose_more(of_broker, others):
                left = [one for one in left if one not in of_broker]
                fine = alike if _lose_more(of_broker, alike) else []
                where = f"only on the way between {listed(sorted(hosts))} and {name(broker)}"
                subject = f"{listed(sorted(hosts))} to {name(broker)}"
                yield _Place(subject, where, of_broker, [*others, *fine])
        lossy = _lossy(left)
        for host in sorted({one.name("host") for one in lossy}):
            of_host = [one for one in lossy if one.name("host") == host]
            brokers = {one.name("broker") for one in of_host}
            others = [one for one in paths if one.name("broker") in brokers and one.name("host") != host]
            names = listed([name(broker) for broker in sorted(brokers)])
            if _lose_more(of_host, others):
                where = f"on the side of the client's host {host}, to {names} alike"
            else:
                others, where = [], f"to {names} alike" if len(brokers) > 1 else ""
            yield _Place(f"{host} to {names}", where, of_host, others)

    def _explanation(self, place: _Place, observed: Observed) -> Explanation:
        paths = place.paths
        to_broker, to_client, packets = (
            sum(one.numbers[name] for one in paths) for name in ("to_broker", "to_client", "packets")
        )
        loss, much = _Loss(packets, to_broker + to_client), any(one.numbers["much"] for one in paths)
        brokers = sorted({one.name("broker") for one in paths})
        others = _loss_of(place.others)
        compared = f", {place.where}" if place.where else ""
        if place.others:
            compared += f"; elsewhere {others.text()}"
        late = self._late(place, observed, loss)
        both = any(one.numbers["both_ways"] for one in paths)
        enough = BAD_PER_THOUSAND if both else LOSSY * 1_000
        # Late acknowledgements do not explain losses before the capture point, nor that others lose less.
        recovered = sum(one.numbers["recovered"] for one in paths)
        sure, is_lost = bool(place.others) or recovered >= SOME_RETRANSMITS, bool(place.others) or recovered > 0
        # Answers that were lost on the way are not late because of the broker.
        follows = ("slow", "unanswered", "broker_stalled") if much else ()
        return Explanation(
            code="retransmits",
            subject=place.subject,
            title=f"{loss.again / max(packets, 1):.1%} of the packets are sent twice ({to_broker} to the broker, "
            f"{to_client} to the client){compared}",
            remedy="The network between the two loses packets: compare interfaces, links and overlays on that way "
            "(ip -s link, ethtool -S, ping -f). Or they are acknowledged so late that TCP sends them again (tail loss "
            "probes), as when a machine is short of CPU.",
            explained=(*paths, *late, *[one for path in paths for one in small_transfers(observed, path)]),
            supports=tuple(one.sentence for one in place.others),
            severity="warning"
            if much or (late and is_lost) or (sure and both and loss.is_bad) or loss.per_thousand >= enough
            else "info",
            numbers={
                "per_thousand": loss.per_thousand,
                "to_broker": to_broker,
                "to_client": to_client,
                "brokers": brokers,
                "hosts": sorted({one.name("host") for one in paths}),
                **({"others_per_thousand": others.per_thousand} if place.others else {}),
            },
            rank=INCIDENT if place.where else SYMPTOM,
            explains=symptoms("broker", brokers, *follows, "syn_retransmits"),
        )

    def _late(self, place: _Place, observed: Observed, loss: _Loss) -> list[Observation]:
        """The late writes on these paths, where each may have lost a packet."""
        ends = {(one.name("host"), one.name("broker")) for one in place.paths}
        late = [one for one in observed.of("late_writes") if (one.name("host"), one.name("broker")) in ends]
        return late if loss.is_bad and sum(one.count for one in late) <= loss.again else []


def small_transfers(observed: Observed, path: Observation) -> list[Observation]:
    """Slow transfers on a lossy path of less than a window, which did not wait for the window to open."""
    if path.kind != "segments_resent":
        return []
    return [
        one
        for one in observed.about([f"broker:{path.name('broker')}"], "slow_transfer")
        if one.name("host") == path.name("host") and one.numbers["bytes"] < WINDOW_BYTES
    ]


def _lose_more(paths: list[Observation], others: list[Observation]) -> bool:
    """Whether paths lose several times as much as others: of all that was sent again, or of what was lost before the
    capture point, which late acknowledgements do not explain."""
    sure, fewer = (
        _Loss(_loss_of(some).packets, sum(one.numbers["recovered"] for one in some)) for some in (paths, others)
    )
    return _loss_of(paths).is_more_than(_loss_of(others)) or (
        sure.again >= SOME_RETRANSMITS and sure.is_more_than(fewer)
    )


def _loss_of(paths: Iterable[Observation]) -> _Loss:
    pairs = [one.numbers["all"] for one in paths]
    return _Loss(sum(packets for packets, _ in pairs), sum(again for _, again in pairs))


def _lossy(paths: list[Observation]) -> list[Observation]:
    """Those that lose packets, alone or with the others of their host."""
    hosts: dict[str, list[Observation]] = {}
    for one in paths:
        hosts.setdefault(one.name("host"), []).append(one)
    return [
        one for one in paths if one.kind == "segments_resent" or _is_lossy_with_others(one, hosts[one.name("host")])
    ]


def _is_lossy_with_others(path: Observation, of_host: list[Observation]) -> bool:
    """Whether the paths of a host, which lose about as much each, lose many packets together."""
    together, alone = _loss_of(of_host), _loss_of([path])
    return (
        len(of_host) > 1
        and any(one.numbers["both_ways"] for one in of_host)
        and together.packets >= ENOUGH_PACKETS
        and together.again >= SOME_RETRANSMITS
        and together.per_thousand >= POOL_PER_THOUSAND
        and alone.again > 0
        and not together.is_more_than(alone)
    )


@cause("syn_retransmits", explains=("syns_resent",))
def late_syns(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`syn_retransmits` (warning from 3 SYNs on, else info): connections to a broker came to be only at a later SYN,
    one in twenty or more. Its queue of connections overflows, or SYNs are lost on the path.
    """
    again, opened, longest_ns = (one.numbers[name] for name in ("retransmits", "connections", "longest_ns"))
    took = f", which took {duration(longest_ns)} at most" if longest_ns else ""
    return told(
        one,
        subject=one.name("broker"),
        title=f"answers SYNs late: for {one.count} of {max(opened, one.count)} connections they had to be sent "
        f"again, {times(again)}{took}",
        remedy="The listener's queue of connections overflows (socket.listen.backlog.size, net.core.somaxconn; "
        "many clients that reconnect at once), or packets are lost on the way.",
        severity="warning" if again >= FEW_SYNS else "info",
        numbers={
            "retransmits": again,
            **({"longest_ns": longest_ns} if longest_ns else {}),
            "clients": one.named("client"),
            "connections": opened,
        },
        rank=SYMPTOM,
    )
