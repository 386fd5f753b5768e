"""One examination for each cluster, as topics, groups and nodes of several clusters have the same names.

``cluster_changed`` is the finding on an address that became another cluster; findings of both are its symptoms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.doctor.examine import Doctor, Maker
from kwiresniff.analysis.doctor.judgement import AFTER_NS, BEFORE_NS, MAX_SYMPTOMS, Judgement, in_order
from kwiresniff.analysis.doctor.troubles.clusters import cluster_changed
from kwiresniff.analysis.doctor.troubles.mixed_clusters import mixed_bootstrap
from kwiresniff.base.needs import Needs
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, Problem, TopicNames
from kwiresniff.results.findings import Finding

#: Clusters that are examined separately; further ones are examined with the first.
MAX_CLUSTERS: Final = 16


class Doctors:
    """Takes in events with decoded bodies, each for its cluster as far as that is known by then."""

    NEEDS: ClassVar[Needs] = Doctor.NEEDS

    def __init__(
        self, topic_name: TopicNames | None = None, more: Iterable[Maker] = (), clusters: Clusters | None = None
    ) -> None:
        """``clusters`` are shared with other analyses of the same exchanges."""
        self._topic_name = topic_name
        self._more = tuple(more)
        self._clusters = clusters or Clusters()
        self._first = Doctor(topic_name, self._more, clusters=self._clusters)
        self._doctors = {0: self._first}
        self._nodes = {0: 0}

    def add(self, event: Event) -> None:
        """Takes in an exchange, an ended connection, an attempt at one, or a problem."""
        if isinstance(event, Exchange):
            self.exchange(event)
            return
        address = ""
        if isinstance(event, Connection):
            address = event.broker
            self._first.add_anywhere(event)
        elif isinstance(event, ConnectionAttempt):
            address = event.server
        elif isinstance(event, Problem) and event.details is not None:
            address = str(event.details.get("broker", ""))
        self._doctors.get(self._clusters.scope(self._clusters.node_at(address)), self._first).add(event)

    def exchange(self, exchange: Exchange) -> None:
        """Takes in an exchange."""
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
        """The findings in all clusters, the worst first, and the rejected causes."""
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
        found = [one._replace(cluster=None) if one.code in mixed_bootstrap.codes else one for one in found]
        changes = [one for one in found if one.code in cluster_changed.codes]
        others = [one for one in found if one.code not in cluster_changed.codes]
        for place, change in enumerate(changes):
            follow = [one for one in others if _belongs_to(one, change)]
            others = [one for one in others if one not in follow]
            changes[place] = _with_symptoms(change, follow)
        return Judgement(in_order([*changes, *others]), rejected)


def _belongs_to(finding: Finding, change: Finding) -> bool:
    """Whether a finding began about then and concerns the clients of the address, or one of the two clusters and no
    client or broker in particular."""
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
