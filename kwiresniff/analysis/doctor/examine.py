"""The examination: observers are given the events that they ask for, then causes are weighed and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Final, TypeAlias

from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.doctor import troubles
from kwiresniff.analysis.doctor.cause import Cause
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Endings
from kwiresniff.analysis.doctor.judgement import Judgement, judged
from kwiresniff.analysis.doctor.observation import Observation
from kwiresniff.analysis.doctor.observer import SLOW_NS, Observer
from kwiresniff.analysis.late_names import renamer
from kwiresniff.base.api_keys import API_VERSIONS, FETCH, METADATA, PRODUCE
from kwiresniff.base.needs import Needs
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, Problem, TopicNames
from kwiresniff.results.findings import Finding


def _classes() -> Iterator[type]:
    """The classes of all modules in ``troubles``, by name of the module, in their order there."""
    for _, name, _ in iter_modules(troubles.__path__):
        module = import_module(f"{troubles.__name__}.{name}")
        yield from (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)


#: The observers and the causes of an examination.
OBSERVERS: Final[tuple[type[Observer], ...]] = tuple(one for one in _classes() if issubclass(one, Observer))
CAUSES: Final[tuple[type[Cause], ...]] = tuple(one for one in _classes() if issubclass(one, Cause))

#: Makes an observer or a cause, as plugins register it; see ``kwiresniff.plugins``.
Maker: TypeAlias = Callable[[Context], Observer | Cause]


class Doctor:
    """Takes in events with decoded bodies; the observers bound the memory, see ``evidence``."""

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True, attempts=True, clusters=True, digests=True)

    def __init__(
        self,
        topic_name: TopicNames | None = None,
        more: Iterable[Maker] = (),
        clusters: Clusters | None = None,
        beside: Doctor | None = None,
    ) -> None:
        """``beside`` is the first doctor, where each cluster has one (``doctors``)."""
        context = Context(topic_name, clusters, None if beside is None else beside.context)
        self.context: Context = context
        self._endings = Endings()
        makers: list[Maker] = [*OBSERVERS, *CAUSES, *more]
        made = [make(context) for make in makers]
        self._causes = [one for one in made if isinstance(one, Cause)]
        observers = [one for one in made if isinstance(one, Observer)]
        context.judged = frozenset().union(*(one.judges for one in observers))
        self._observers = observers
        #: By hook, the methods of the observers that override it.
        self._takers_of: dict[str, list[Callable[[Any], None]]] = {
            hook: [getattr(one, hook) for one in observers if getattr(type(one), hook) is not getattr(Observer, hook)]
            for hook in ("slow", "failure", "connection", "connection_anywhere", "ending", "attempt", "problem")
        }
        #: By API; APIs that no observer names, of which an attacker can invent 65,536, are ``_others``.
        self._takers = {
            api_key: [one for one in observers if one.apis is None or api_key in one.apis]
            for api_key in frozenset[int]().union(*(one.apis for one in observers if one.apis is not None))
        }
        self._others = [one for one in observers if one.apis is None]

    def add(self, event: Event) -> None:
        """Takes in an exchange, an ended connection, an attempt at one, or a problem."""
        if isinstance(event, Exchange):
            self.exchange(event)
        elif isinstance(event, Connection):
            self.context.cluster.ended(event)
            ending = self._endings.end(event, self.context.cluster, self.context.end_ns)
            self._give("connection", event)
            if ending is not None:
                self._give("ending", ending)
        elif isinstance(event, ConnectionAttempt):
            self._give("attempt", event)
        elif isinstance(event, Problem):
            self.context.gaps += self._endings.mark_gap(event)
            self._give("problem", event)

    def add_anywhere(self, connection: Connection) -> None:
        """Takes in an ended connection in whatever cluster, beside what ``add`` is given."""
        self._give("connection_anywhere", connection)

    def _give(self, hook: str, event: object) -> None:
        for take in self._takers_of[hook]:
            take(event)

    def exchange(self, exchange: Exchange) -> None:
        """Takes in an exchange."""
        context, api_key = self.context, exchange.api_key
        cluster_of(context.clusters, exchange)
        if exchange.problems:
            context.note_cut(exchange)
        response = exchange.response
        message = response if response is not None else exchange.request
        if message is not None:
            if message.last_ns > context.end_ns:
                context.end_ns = message.last_ns
            if not context.begin_ns:
                context.begin_ns = message.first_ns
        if response is not None:
            context.cluster.answered(exchange, response.first_ns)
        if api_key in (METADATA, API_VERSIONS) or (exchange.errors and api_key in (PRODUCE, FETCH)):
            context.cluster.learn(exchange)
        for observer in self._takers.get(api_key, self._others):
            observer.exchange(exchange)
        if _took_ns(exchange) >= SLOW_NS:
            self._give("slow", exchange)
        if exchange.errors or exchange.problems:
            self._give("failure", exchange)
        if exchange.outcome == "unanswered":
            self._endings.add(exchange)
            if not exchange.problems:
                self._give("failure", exchange)

    def findings(self) -> list[Finding]:
        """The findings of the judgement."""
        return self.judgement().findings

    def judgement(self) -> Judgement:
        """The findings, the worst first, incidents before what follows from them, and the rejected causes."""
        rename = renamer(self.context.topic_name)
        observations = [_renamed(one, rename) for observer in self._observers for one in observer.observations()]
        return judged(self._causes, observations)


def _took_ns(exchange: Exchange) -> int:
    """The time from the first byte of an exchange to its last, as far as it was seen."""
    request, response = exchange.request, exchange.response
    if request is None or response is None:
        one = request or response
        return one.last_ns - one.first_ns if one is not None else 0
    return max(request.last_ns, response.last_ns) - min(request.first_ns, response.first_ns)


def _renamed(one: Observation, rename: Callable[[Any], Any]) -> Observation:
    """An observation whose topic ids are replaced by names that became known later."""
    return replace(one, **{name: rename(getattr(one, name)) for name in ("about", "text", "numbers", "notes")})
