"""Groups that are not one application's."""

from __future__ import annotations

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.results.findings import scope_of


class SharedGroup(Cause):
    """`shared_group` (info; warning where the group rebalances again and again): two applications have the same
    `group.id`: members subscribe to topics of which they have none in common. Each start and stop of one rebalances the
    other, its lag stands among theirs, and an assignor that expects equal subscriptions leaves partitions to nobody.
    A consumer that changes its subscription while others have not yet looks the same for a moment.
    """

    codes = ("shared_group",)
    explains = ("subscriptions_differ",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        group, kinds = one.numbers["group"], one.numbers["topics"]
        said = [f"{listed(kind['clients'])} to {listed(kind['topics'])}" for kind in kinds]
        storms = observed.about([f"group:{group}"], "rebalances")
        return self.told(
            one,
            f"applications that have nothing in common share the group: {listed(said)}; each start and stop "
            "of one rebalances the others",
            f"Give each application a group.id of its own in place of {group}; set the offsets of the new "
            "group to those that were committed before it starts.",
            subject=f"group {group}",
            supports=tuple(each.text for each in storms),
            numbers={"group": group, "subscriptions": kinds},
            severity="warning" if storms else "info",
            explains={"rebalances": scope_of("group", [group])} if storms else {},
        )
