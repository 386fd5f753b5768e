"""Consumers that assign the same partitions to themselves and commit for one group.

They are no members: their OffsetCommit has no member id, and is stored while the group has no members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kwiresniff.analysis.doctor.bodies import group_of, request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import OFFSET_COMMIT
from kwiresniff.model import Exchange

#: A takeover changes the client that commits a partition once, a tool that sets offsets twice.
TURNS: Final = 6


@dataclass(slots=True, eq=False)
class _Turns:
    """The client that committed a partition last, and how often that changed."""

    client: str = ""
    count: int = 0


class StandaloneCommits(Observer):
    """``commits_by_turns``: clients that are no members of a group committed the same partition for it by turns.

    Numbers: ``turns`` of the partition that has most.
    """

    kinds = ("commits_by_turns",)
    apis = frozenset({OFFSET_COMMIT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._partitions: Subjects[tuple[str, str, int], _Turns] = context.subjects(_Turns, 3)
        self._groups = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        request = request_body(exchange)
        if not request or request.get("member_id") or exchange.errors or exchange.response is None:
            return
        group, client = group_of(request), client_of(exchange)
        others: dict[str, None] = {}
        topics: dict[str, None] = {}
        for name, one in self.context.members(request):
            turns = self._partitions.of((group, name, one.get("partition_index", -1)))
            if turns is None:
                return
            if turns.client not in ("", client):
                turns.count += 1
                others[turns.client] = topics[name] = None
            turns.client = client
        if others:
            case = self._groups.case(group)
            case.add(*place_of(exchange))
            case.note("clients", [*others, client])
            case.note("topics", topics)

    def observations(self) -> Iterator[Observation]:
        most: dict[str, int] = {}
        for (group, _, _), turns in self._partitions.items():
            most[group] = max(most.get(group, 0), turns.count)
        for group, _, case in self._groups:
            yield observation_of("commits_by_turns", case, {f"group:{group}"}, {"turns": most.get(group, 0)})


@cause("standalone_consumers", explains=("commits_by_turns",))
def standalone_consumers(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`standalone_consumers` (warning): clients commit the same partitions for a group by turns, 6 times and more, and
    are no members of it: each assigns the partitions to itself. All handle the same records, and where one begins again
    is what another has committed.
    """
    group, clients, topics, turns = one.name("group"), one.named("client"), one.named("topic"), one.numbers["turns"]
    return told(
        one,
        f"{listed(clients)} commit the same partitions of {listed(topics)} by turns, {times(turns)}, and are no "
        "members of the group: each assigns them to itself, handles the same records, and begins again where another "
        "has committed",
        "Let them subscribe, so that the group divides the partitions among them; or give each a group.id of its own "
        "where all are to handle every record.",
        subject=f"group {group}",
        numbers={"group": group, "clients": clients, "topics": topics, "turns": turns},
        severity="warning",
        stands=turns >= TURNS,
    )
