"""What is told of segments that are sent again where no other cause explains them."""

from __future__ import annotations

from kwiresniff.analysis.doctor.cause import SYMPTOM, Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.segments import BAD_PER_THOUSAND, FEW_SYNS
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.results.findings import scope_of


class LossyPath(Cause):
    """`retransmits` (warning; info below 2 %): more than 1 % of a connection's packets were sent again, of one with
    fewer than 1,000 3 %, at least ten and some in either direction, or one in ten; segments that were lost before the
    capture point count as well. The path loses packets, in the direction that is named. Late acknowledgements make TCP
    send again, too (tail loss probes), as when a machine is short of CPU, and a receiver that takes no more is asked
    again and again. Where it is one in ten, slow and missing answers of that broker are symptoms.
    """

    codes = ("retransmits",)
    explains = ("segments_resent",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        per_thousand, brokers = one.numbers["per_thousand"], one.named("broker")
        to_broker, to_client = one.numbers["to_broker"], one.numbers["to_client"]
        # Answers that were lost on the way are late without the broker's doing.
        late = ("slow", "unanswered", "syn_retransmits", "broker_stalled") if one.numbers["much"] else ()
        return self.told(
            one,
            f"{per_thousand / 10:.1f} % of the packets are sent twice: {to_broker} to the broker, "
            f"{to_client} to the client",
            "The network between the two loses packets; or they are acknowledged so late that TCP sends "
            "them again (tail loss probes), as when a machine is short of CPU.",
            subject=one.name("connection"),
            severity="warning" if per_thousand >= BAD_PER_THOUSAND else "info",
            numbers={"per_thousand": per_thousand, "to_broker": to_broker, "to_client": to_client},
            rank=SYMPTOM,
            explains=dict.fromkeys(late, scope_of("broker", brokers)),
        )


class LateSyns(Cause):
    """`syn_retransmits` (warning from 3 SYNs on, else info): connections to a broker came to be only at a later SYN,
    one in twenty or more. Its queue of connections overflows, or SYNs are lost on the path.
    """

    codes = ("syn_retransmits",)
    explains = ("syns_resent",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        again, opened, longest_ns = (one.numbers[name] for name in ("retransmits", "connections", "longest_ns"))
        took = f", which took {duration(longest_ns)} at most" if longest_ns else ""
        return self.told(
            one,
            f"answers SYNs late: for {one.count} of {max(opened, one.count)} connections they had to be sent "
            f"again, {times(again)}{took}",
            "The listener's queue of connections overflows (socket.listen.backlog.size, net.core.somaxconn; "
            "many clients that reconnect at once), or packets are lost on the way.",
            subject=one.name("broker"),
            severity="warning" if again >= FEW_SYNS else "info",
            numbers={
                "retransmits": again,
                **({"longest_ns": longest_ns} if longest_ns else {}),
                "clients": one.named("client"),
                "connections": opened,
            },
            rank=SYMPTOM,
        )
