"""Authentications that take a broker long, as where it asks a directory that is slow.

A broker checks passwords and tokens in the thread that serves its connections (``num.network.threads``), which does
nothing else meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.stalls import writes_within
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.base.api_keys import SASL_AUTHENTICATE
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import scope_of
from kwiresniff.schema import API_NAMES

#: An authentication takes milliseconds; so many that took so long are no chance, where nine in ten of a client did.
SLOW_NS: Final = 1_000_000_000
OFTEN: Final = 3
PROMPT_PART: Final = 10
#: Findings that follow where a broker answers nobody meanwhile.
_FOLLOW: Final = ("slow", "broker_stalled", "replica_wait", "request_timeout", "unanswered", "slow_broker")
#: Connections that authenticate at one time.
MAX_OPEN: Final = 5_000


@dataclass(slots=True, eq=False)
class _Login:
    """The authentication of a connection: who, and how long its longest round took the broker."""

    client: str
    who: str
    packet: int
    first_ns: int
    last_ns: int
    took_ns: int


@dataclass(slots=True, eq=False)
class _User:
    """The authentications of a user: how many there are, and the slow ones, of which ``apart`` did not overlap."""

    case: Case
    count: int = 0
    shortest_ns: int = 0
    apart: int = 0
    over_ns: int = 0


class SlowAuthentications(Observer):
    """``authentication_slow``: nine in ten authentications of a user took the brokers a second or more, three or more
    of them one after the other.

    By user, or by client where none is named. Numbers: ``of`` (all of that user), ``longest_ns``, ``shortest_ns``.
    """

    kinds = ("authentication_slow",)
    apis = frozenset({SASL_AUTHENTICATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._logins: dict[int, _Login] = {}
        self._users: Subjects[str, _User] = context.subjects(lambda: _User(context.case()), 5)

    def exchange(self, exchange: Exchange) -> None:
        request, response, took_ns = exchange.request, exchange.response, exchange.broker_ns
        if request is None or response is None or took_ns is None:
            return
        number = exchange.connection.id
        login = self._logins.get(number)
        if login is None:
            if len(self._logins) >= MAX_OPEN:
                return
            client, sasl = client_of(exchange), exchange.connection.sasl or {}
            who = clipped(str(sasl.get("principal") or client))
            login = self._logins[number] = _Login(client, who, request.first_packet, request.first_ns, 0, 0)
        login.took_ns = max(login.took_ns, took_ns)
        login.last_ns = response.first_ns

    def connection(self, connection: Connection) -> None:
        login = self._logins.pop(connection.id, None)
        user = self._users.of(login.who) if login is not None else None
        if login is None or user is None:
            return
        user.count += 1
        if login.took_ns < SLOW_NS:
            return
        user.case.add(login.packet, login.first_ns, login.took_ns, until_ns=login.last_ns)
        user.case.note("brokers", [connection.broker])
        user.case.note("clients", [login.client])
        user.shortest_ns = min(user.shortest_ns or login.took_ns, login.took_ns)
        if login.first_ns >= user.over_ns:
            user.apart, user.over_ns = user.apart + 1, login.last_ns

    def observations(self) -> Iterator[Observation]:
        for who, user in self._users.items():
            case = user.case
            if user.apart >= OFTEN and (user.count - case.count) * PROMPT_PART <= user.count:
                late = Harm(requests_late=case.count, late_ns=case.total)
                numbers = {"of": user.count, "longest_ns": case.most, "shortest_ns": user.shortest_ns}
                yield observation_of("authentication_slow", case, [f"user:{who}"], numbers, late)


class SlowAuthentication(Cause):
    """`slow_authentication` (error where a broker answers nobody meanwhile, else warning): brokers need a second or
    more for each authentication of a user: they ask a directory, a database or an OAuth server that is slow. A broker
    does so in a thread that serves connections (`num.network.threads`), and all others of that thread wait. Seen must
    be 3 of them one after the other, and nine in ten of the user; silences of a broker are its symptoms where
    one was under way nearly all the time. A broker that is slow in everything is prompt with some.
    """

    codes = ("slow_authentication",)
    explains = ("authentication_slow", "broker_silent", "slow_answer", "late_writes")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """All users together, whom the same directory knows."""
        slow = observed.of("authentication_slow")
        if slow:
            yield self._explanation(slow, observed)

    def _explanation(self, slow: list[Observation], observed: Observed) -> Explanation:
        cluster, name = self.context.cluster, API_NAMES[SASL_AUTHENTICATE]
        clients = sorted({client for one in slow for client in one.named("client")})
        brokers = sorted({broker for one in slow for broker in one.named("broker")})
        users = [one.name("user") for one in slow]
        of_brokers = scope_of("broker", brokers)
        silences = [one for one in observed.about(of_brokers, "broker_silent") if one.numbers["authenticating"]]
        answers = [one for one in observed.about(of_brokers, "slow_answer") if one.numbers["api"] == name]
        count, longest_ns = sum(one.count for one in slow), max(one.numbers["longest_ns"] for one in slow)
        lost_ns = sum(one.numbers["lasted_ns"] for one in silences)
        title = f"each authentication takes the broker {duration(min(one.numbers['shortest_ns'] for one in slow))} to "
        title += f"{duration(longest_ns)} ({counted(count, 'connection')}, user {listed(users)})"
        if silences:
            title += f", and it answers nobody meanwhile: {counted(len(silences), 'silence')}, {duration(lost_ns)}"
        silent = {broker for one in silences for broker in one.named("broker")}
        waiting = silent.union(*[cluster.addresses(cluster.of(broker)) for broker in silent])
        return Explanation(
            code="slow_authentication",
            subject=listed(clients),
            title=title,
            remedy="See what the broker asks to check a password or token (a callback handler with LDAP, a database, "
            "an OAuth server and its keys), and how long that takes. Let it keep answers for a while, raise "
            "num.network.threads, whose threads wait for it, and let clients keep their connections.",
            explained=(
                *slow,
                *silences,
                *answers,
                *(late for one in silences for late in writes_within(observed, one)),
            ),
            supports=tuple(one.sentence for one in (*slow, *silences)),
            numbers={"brokers": brokers, "users": users, "clients": clients, "longest_ns": longest_ns},
            severity="error" if silences else "warning",
            scope=of_brokers,
            explains={
                **dict.fromkeys(_FOLLOW, scope_of("broker", waiting)),
                "own_queue": scope_of("client", clients),
            },
        )
