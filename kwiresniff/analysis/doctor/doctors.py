"""One examination for each cluster, so that nothing is compared across clusters, and what they find together.

Topics, groups and nodes have the same names in several clusters. What leads from one cluster to another is told by
``cluster_changed``, which takes what went wrong in both of them for its symptoms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.doctor.examine import Doctor, Maker
from kwiresniff.analysis.doctor.judgement import AFTER_NS, BEFORE_NS, MAX_SYMPTOMS, Judgement, in_order
from kwiresniff.analysis.doctor.troubles.clusters import cluster_changed
from kwiresniff.base.needs import Needs
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, Problem, TopicNames
from kwiresniff.results.findings import Finding

#: Clusters that are examined each by itself; further ones are examined with the first.
MAX_CLUSTERS: Final = 16


class Doctors:
    """Takes in events with decoded bodies, each for the cluster that it belongs to as far as that is known by then."""

    NEEDS: ClassVar[Needs] = Doctor.NEEDS

    def __init__(
        self, topic_name: TopicNames | None = None, more: Iterable[Maker] = (), clusters: Clusters | None = None
    ) -> None:
        """``clusters`` are those of other analyses of the same exchanges."""
        self._topic_name = topic_name
        self._more = tuple(more)
        self._clusters = clusters or Clusters()
        self._first = Doctor(topic_name, self._more, clusters=self._clusters)
        self._doctors = {0: self._first}
        self._nodes = {0: 0}

    def add(self, event: Event) -> None:
        """An exchange, an ended connection, an attempt at one, or a problem."""
        if isinstance(event, Exchange):
            self.exchange(event)
            return
        address = ""
        if isinstance(event, Connection):
            address = event.broker
        elif isinstance(event, ConnectionAttempt):
            address = event.server
        elif isinstance(event, Problem) and event.details is not None:
            address = str(event.details.get("broker", ""))
        self._doctors.get(self._clusters.scope(self._clusters.node_at(address)), self._first).add(event)

    def exchange(self, exchange: Exchange) -> None:
        """An exchange."""
        node = cluster_of(self._clusters, exchange)
        cluster = self._clusters.scope(node)
        doctor = self._doctors.get(cluster)
        if doctor is None:
            doctor = self._first
            if len(self._doctors) < MAX_CLUSTERS:
                doctor = self._doctors[cluster] = Doctor(self._topic_name, self._more, beside=self._first)
                self._nodes[cluster] = node
        doctor.exchange(exchange)

    def findings(self) -> list[Finding]:
        """The findings of the judgement."""
        return self.judgement().findings

    def judgement(self) -> Judgement:
        """The findings in all clusters, the worst first, with all that led to them."""
        labels = self._clusters.labels()
        if len(self._doctors) == 1:
            return self._first.judgement()
        found: list[Finding] = []
        rejected: list[Finding] = []
        for cluster, doctor in self._doctors.items():
            label = labels.get(self._clusters.scope(self._nodes[cluster]) if cluster else 0)
            judged = doctor.judgement()
            found += [one._replace(cluster=label) for one in judged.findings]
            rejected += [one._replace(cluster=label) for one in judged.rejected]
        changes = [one for one in found if one.code in cluster_changed.codes]
        others = [one for one in found if one.code not in cluster_changed.codes]
        for place, change in enumerate(changes):
            symptoms = [one for one in others if _belongs_to(one, change)]
            others = [one for one in others if one not in symptoms]
            changes[place] = _with_symptoms(change, symptoms)
        return Judgement(in_order([*changes, *others]), rejected)


def _belongs_to(finding: Finding, change: Finding) -> bool:
    """Whether a finding concerns the clients of an address that became another cluster, or one of the two clusters and
    nobody in particular, and began about then."""
    if finding.first_ns and not change.first_ns - BEFORE_NS <= finding.first_ns <= change.last_ns + AFTER_NS:
        return False
    if not finding.scope.isdisjoint(change.scope):
        return True
    names_nobody = not any(one.startswith(("client:", "broker:")) for one in finding.scope)
    return names_nobody and finding.cluster in (change.numbers["before"], change.numbers["after"])


def _with_symptoms(change: Finding, symptoms: list[Finding]) -> Finding:
    flat = [inner for one in symptoms for inner in (one._replace(symptoms=()), *one.symptoms)]
    ordered = sorted(flat, key=lambda one: one.first_ns)
    return change._replace(symptoms=(*change.symptoms, *ordered)[:MAX_SYMPTOMS], cluster=None)
