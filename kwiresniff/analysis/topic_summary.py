"""One topic as a result: its rows in order, lags worked out, what was known under its id and its name together."""

from __future__ import annotations

from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.topic_state import ClientState, Flow, Identity, TopicState
from kwiresniff.results.topics import Topic, TopicClient, TopicFlow, TopicGroup, TopicPartition

#: The software of a client that has not named it.
_UNNAMED = (None, None)
#: How the client ids of consumers end with which Kafka Streams restores its state.
_RESTORE = "-restore-consumer"


class TopicSummary:
    """One topic, from what is known under its name and under its id."""

    def __init__(
        self, name: str, topic_id: str | None, parts: list[TopicState], groups: dict[Identity, dict[str, None]]
    ) -> None:
        self._name, self._topic_id = name, topic_id
        self._parts, self._groups = parts, groups
        #: The groups of clients with which others have been joined.
        self._joined: dict[Identity, dict[str, None]] = {}
        self._high_watermarks: dict[int, int] = {}
        #: Of the members of a group that have fetched a partition, who did so last: (group, partition) -> (time, who).
        self._readers: dict[tuple[str, int], tuple[int, Identity]] = {}
        for part in parts:
            for index, partition in part.partitions.items():
                known = self._high_watermarks.get(index, -1)
                self._high_watermarks[index] = max(known, partition.high_watermark)

    def result(self, seconds: float) -> Topic:
        clients: dict[tuple[str, Identity], list[ClientState]] = {}
        for part in self._parts:
            for key, client in part.clients.items():
                clients.setdefault(key, []).append(client)
        self._join_unnamed(clients)
        self._find_readers(clients)
        rows = [self._client(identity, found) for (_, identity), found in clients.items()]
        rows.sort(key=lambda row: (-row.flow.size_bytes, row.client_id or "", row.address))
        waits = Histogram()
        for found in clients.values():
            for client in found:
                waits.merge(client.waits)
        partitions = tuple(self._partition(index) for index in sorted(self._high_watermarks))
        errors: dict[str, int] = {}
        for part in self._parts:
            for code, count in part.errors.items():
                errors[code] = errors.get(code, 0) + count
        consumers = tuple(row for row in rows if row.role != "producer")
        lags = [row.lag for row in consumers if row.role == "consumer" and row.lag is not None]
        return Topic(
            name=self._name,
            topic_id=self._topic_id,
            partitions=partitions,
            produced=_sum([partition.produced for partition in partitions]),
            consumed=_sum([partition.consumed for partition in partitions]),
            producers=tuple(row for row in rows if row.role == "producer"),
            consumers=consumers,
            groups=self._committed(),
            errors=tuple(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
            lag=sum(lags) if lags else None,
            produce_to_consume=waits.summary(),
            seconds=seconds,
            first_ns=min(part.first_ns for part in self._parts),
            last_ns=max(part.last_ns for part in self._parts),
            refused=_sum([row.refused for row in rows]),
            repeated=_sum([row.repeated for row in rows]),
        )

    def _join_unnamed(self, clients: dict[tuple[str, Identity], list[ClientState]]) -> None:
        """Joins clients without a software name (their connection is older than the capture) with the one client of
        that name at that address whose software is known, where there is only one."""
        unnamed = [key for key in clients if key[1][2] == _UNNAMED]
        named: dict[tuple[str, Identity], list[Identity]] = {}
        for role, identity in clients if unnamed else ():
            if identity[2] != _UNNAMED:
                named.setdefault((role, _without_software(identity)), []).append(identity)
        for role, identity in unnamed:
            found = named.get((role, identity), [])
            if len(found) == 1:
                clients[role, found[0]] += clients.pop((role, identity))
                self._joined[found[0]] = {**self._groups_of(found[0]), **self._groups_of(identity)}

    def _groups_of(self, identity: Identity) -> dict[str, None]:
        """The groups that a client is a member of."""
        return self._joined.get(identity) or self._groups.get(identity, {})

    def _find_readers(self, clients: dict[tuple[str, Identity], list[ClientState]]) -> None:
        for (_, identity), found in clients.items():
            for group in self._groups_of(identity):
                for client in found:
                    for index, partition in client.partitions.items():
                        ns = partition.fetched_ns
                        if ns >= 0 and ns >= self._readers.get((group, index), (-1, identity))[0]:
                            self._readers[group, index] = ns, identity

    def _still_reads(self, identity: Identity, index: int) -> bool:
        """Whether no other member of the client's group has taken a partition over."""
        groups = self._groups_of(identity)
        return not groups or any(self._readers[group, index][1] == identity for group in groups)

    def _partition(self, index: int) -> TopicPartition:
        produced, consumed = Flow(), Flow()
        for part in self._parts:
            if (partition := part.partitions.get(index)) is not None:
                produced.merge(partition.produced)
                consumed.merge(partition.consumed)
        high_watermark = self._high_watermarks[index]
        return TopicPartition(
            index, high_watermark if high_watermark >= 0 else None, produced.result(), consumed.result()
        )

    def _lag(self, index: int, offset: int) -> int | None:
        high_watermark = self._high_watermarks.get(index, -1)
        return max(high_watermark - offset, 0) if high_watermark >= 0 and offset >= 0 else None

    def _client(self, identity: Identity, found: list[ClientState]) -> TopicClient:
        client_id, address, software, principal = identity
        flow, refused, repeated, waits, lags = Flow(), Flow(), Flow(), Histogram(), []
        compression: dict[str, int] = {}
        for client in found:
            flow.merge(client.flow)
            refused.merge(client.refused)
            repeated.merge(client.repeated)
            waits.merge(client.waits)
            for codec, count in client.compression().items():
                compression[codec] = compression.get(codec, 0) + count
            lags += [
                self._lag(index, partition.position)
                for index, partition in client.partitions.items()
                if partition.fetched_ns >= 0 and self._still_reads(identity, index) and not _restores(client_id)
            ]
        known = [lag for lag in lags if lag is not None]
        return TopicClient(
            role=found[0].role,
            client_id=client_id,
            software=software,
            principal=principal,
            address=address,
            flow=flow.result(),
            errors=sum(client.errors for client in found),
            unanswered=sum(client.unanswered for client in found),
            compression=tuple(sorted(compression.items(), key=lambda item: (-item[1], item[0]))),
            acks=tuple(sorted({acks for client in found for acks in client.acks})),
            idempotent=any(client.idempotent for client in found) and found[0].role == "producer",
            transactional_ids=tuple(dict.fromkeys(one for client in found for one in client.transactional_ids)),
            groups=() if found[0].role in ("producer", "replica") else tuple(self._groups_of(identity)),
            partitions=tuple(sorted({index for client in found for index in client.partitions})),
            lag=sum(known) if known else None,
            produce_to_consume=waits.summary(),
            first_ns=min(client.first_ns for client in found),
            last_ns=max(client.last_ns for client in found),
            refused=refused.result(),
            repeated=repeated.result(),
        )

    def _committed(self) -> tuple[TopicGroup, ...]:
        committed: dict[str, dict[int, int]] = {}
        for part in self._parts:
            for group, offsets in part.committed.items():
                committed.setdefault(group, {}).update(offsets)
        rows = []
        for group, offsets in sorted(committed.items()):
            partitions = tuple((index, offset, self._lag(index, offset)) for index, offset in sorted(offsets.items()))
            known = [lag for _, _, lag in partitions if lag is not None]
            if partitions:
                rows.append(TopicGroup(group, partitions, sum(known) if known else None))
        return tuple(rows)


def _restores(client_id: str | None) -> bool:
    """Whether a consumer is one with which Kafka Streams restores its state (``ClientUtils.restoreConsumerClientId``).

    It stops where the log ended when the task was given out; what its own task writes behind that is no lag.
    """
    return client_id is not None and client_id.endswith(_RESTORE)


def _without_software(identity: Identity) -> Identity:
    return identity[0], identity[1], _UNNAMED, identity[3]


def _sum(flows: list[TopicFlow]) -> TopicFlow:
    return TopicFlow(
        sum(flow.requests for flow in flows),
        sum(flow.batches for flow in flows),
        sum(flow.records for flow in flows),
        sum(flow.size_bytes for flow in flows),
    )
