"""The traffic of one client while it is collected: what it sent, the versions it uses, the names it mentions.

Bounded in bytes, for each client and for all: what comes later is not remembered, and the client says so (``cut``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kwiresniff.analysis.body_entities import replica_id_of
from kwiresniff.analysis.client_settings import SETTINGS_BYTES, TELLING_APIS, ClientSettings
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.offered_versions import Offer, OfferReader
from kwiresniff.base import api_keys
from kwiresniff.model import Exchange, Message

#: Memory of all clients. One takes some 5 kB.
MAX_INVENTORY_BYTES = 64 << 20
#: Memory of one client: room for its names, were each as long as Kafka lets it be.
MAX_CLIENT_BYTES = 2 << 20
#: Topics, groups and transactional ids that are kept of one client, each.
MAX_NAMES = 1_000

#: The object with its dicts, a version in use beside its key, a name's place in a dict of names, an API on offer.
_CLIENT_BYTES = 1_200
_USE_BYTES = 300
_NAME_BYTES = 40
_OFFER_BYTES = 200

#: Offers that are shared, of how many APIs each: brokers of a cluster are of one or two releases.
MAX_SHARED_OFFERS = 64
MAX_SHARED_APIS = 500

#: APIs with which only nodes of a cluster talk to each other.
CLUSTER_APIS: Final = frozenset({
    api_keys.LEADER_AND_ISR, api_keys.STOP_REPLICA, api_keys.UPDATE_METADATA, api_keys.CONTROLLED_SHUTDOWN,
    api_keys.WRITE_TXN_MARKERS, api_keys.VOTE, api_keys.BEGIN_QUORUM_EPOCH, api_keys.END_QUORUM_EPOCH,
    api_keys.ALTER_PARTITION, api_keys.ENVELOPE, api_keys.FETCH_SNAPSHOT, api_keys.BROKER_REGISTRATION,
    api_keys.BROKER_HEARTBEAT, api_keys.ALLOCATE_PRODUCER_IDS, api_keys.CONTROLLER_REGISTRATION,
    api_keys.ASSIGN_REPLICAS_TO_DIRS, api_keys.UPDATE_RAFT_VOTER, api_keys.INITIALIZE_SHARE_GROUP_STATE,
    api_keys.READ_SHARE_GROUP_STATE, api_keys.WRITE_SHARE_GROUP_STATE, api_keys.DELETE_SHARE_GROUP_STATE,
    api_keys.READ_SHARE_GROUP_STATE_SUMMARY,
})  # fmt: skip

#: APIs in whose requests a follower gives its node id.
_BY_REPLICAS: Final = frozenset({api_keys.FETCH, api_keys.LIST_OFFSETS, api_keys.OFFSET_FOR_LEADER_EPOCH})


class InventoryMemory:
    """The memory budget of all clients of an inventory, and the versions that brokers offer, which
    many clients share.
    """

    def __init__(self) -> None:
        self.budget = MemoryBudget(MAX_INVENTORY_BYTES)
        self._offers: dict[frozenset[tuple[int, tuple[int, int]]], Offer] = {}
        self._last: Offer = {}
        self._reader = OfferReader()

    def offer_in(self, response: Message) -> Offer:
        """The versions by API in an ApiVersions response."""
        offer: Offer = self._reader.offer_in(response)
        return offer

    def shared(self, offer: Offer) -> Offer | None:
        """The offered versions as one object for all clients that got the same; None when they are to be kept with the
        client.
        """
        if offer == self._last:  # as most are
            return self._last
        if len(offer) > MAX_SHARED_APIS:
            return None
        key = frozenset(offer.items())
        found = self._offers.get(key)
        if found is None and len(self._offers) < MAX_SHARED_OFFERS:
            self.budget.charge(2 * _OFFER_BYTES * len(offer))
            found = self._offers[key] = offer
        if found is not None:
            self._last = found
        return found


class ClientMemory:
    """What one client takes of the budget of all, and whether it needed more than it may have."""

    __slots__ = ("_budget", "cut", "held_bytes")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.held_bytes = 0
        self.cut = False  # whether there were more versions or names than are remembered

    def admit(self, size: int) -> bool:
        """Whether there is room for ``size`` bytes more, which are taken then."""
        if self.held_bytes + size > MAX_CLIENT_BYTES or not self._budget.admit(size):
            return False
        self.held_bytes += size
        return True

    def admit_identity(self, texts: Iterable[str]) -> bool:
        """Whether there is room to remember who the client is, whatever it has taken already."""
        size = ENTRY_BYTES + text_bytes(*texts)
        admitted = self._budget.admit(size)
        self.held_bytes += size * admitted
        return admitted

    def release(self) -> None:
        """Gives back to the budget what was taken of it."""
        self._budget.release(self.held_bytes)
        self.held_bytes = 0


class TrafficCounts:
    """How much a client has sent and received on how many connections, and from when to when it was seen.

    ``handshakes`` are the connections whose beginning is in the capture, ``negotiated`` those on which ApiVersions was
    asked for.
    """

    __slots__ = (
        "connections", "errors", "exchanges", "first_ns", "handshakes", "last_ns", "negotiated", "request_bytes",
        "response_bytes", "unanswered",
    )  # fmt: skip

    def __init__(self) -> None:
        self.connections = 0
        self.negotiated = 0
        self.handshakes = 0
        self.exchanges = 0
        self.errors = 0
        self.unanswered = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.first_ns = -1
        self.last_ns = -1

    def add(self, exchange: Exchange, failed: bool) -> None:
        """Counts an exchange."""
        request, response = exchange.request, exchange.response
        message = request or response
        assert message is not None
        self.exchanges += 1
        self.errors += failed
        self.unanswered += exchange.outcome == "unanswered" and not exchange.is_negotiation
        self.span(message.first_ns, (response or message).last_ns)
        if request is not None:
            self.request_bytes += request.size_bytes
        if response is not None:
            self.response_bytes += response.size_bytes

    def span(self, first_ns: int, last_ns: int) -> None:
        """Widens the time in which the client was seen."""
        self.first_ns = first_ns if self.first_ns < 0 else min(self.first_ns, first_ns)
        self.last_ns = max(self.last_ns, last_ns)

    def merge(self, other: TrafficCounts) -> None:
        """Adds what was counted elsewhere."""
        self.connections += other.connections
        self.negotiated += other.negotiated
        self.handshakes += other.handshakes
        self.exchanges += other.exchanges
        self.errors += other.errors
        self.unanswered += other.unanswered
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        if other.first_ns >= 0:
            self.span(other.first_ns, other.last_ns)


class UseCounts:
    """How often a client has used one version of an API; ``packet`` and ``first_ns`` are of the first time."""

    __slots__ = ("api", "count", "errors", "first_ns", "packet")

    def __init__(self, api: str, packet: int, first_ns: int) -> None:
        self.api = api
        self.count = 0
        self.errors = 0
        self.packet = packet
        self.first_ns = first_ns

    def merge(self, other: UseCounts) -> None:
        """Adds what was counted elsewhere."""
        self.count += other.count
        self.errors += other.errors
        if other.first_ns < self.first_ns:
            self.packet, self.first_ns = other.packet, other.first_ns


class ClientTraffic:
    """What is known of one client so far: counts, versions in use and on offer, and the names it mentions."""

    __slots__ = (
        "_last_key", "_last_use", "_may_replicate", "client_id", "cluster", "counts", "groups", "memory",
        "offer_is_own", "offered", "settings", "shared", "topics", "transactional_ids", "uses",
    )  # fmt: skip

    def __init__(self, client_id: str | None, shared: InventoryMemory) -> None:
        self.client_id = client_id
        self.shared = shared
        self.memory = ClientMemory(shared.budget)
        self.counts = TrafficCounts()
        self.cluster = False
        self.offered: Offer = {}
        self.offer_is_own = False  # and not shared with others
        self.uses: dict[tuple[int, int], UseCounts] = {}  # by API key and version
        self._last_key = (-1, -1)
        self._last_use: UseCounts | None = None
        self._may_replicate = False  # whether followers send requests of the last key, too
        self.topics: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}
        self.settings: ClientSettings | None = None

    def admit(self) -> bool:
        """Whether there is room to remember the client at all."""
        return self.memory.admit(_CLIENT_BYTES + text_bytes(self.client_id))

    def add(self, exchange: Exchange) -> bool:
        """Take in an exchange of the client; whether it tells what the client names (``note``)."""
        request, response = exchange.request, exchange.response
        failed = bool(exchange.errors) and not exchange.is_negotiation
        self.counts.add(exchange, failed)
        if request is None:
            return False
        use = self._last_use
        if use is None or self._last_key[0] != exchange.api_key or self._last_key[1] != exchange.api_version:
            use = self._turn_to(exchange, request)
        if use is not None:
            use.count += 1
            use.errors += failed
        if exchange.api_key in TELLING_APIS and (settings := self._settings()) is not None:
            settings.take(exchange)
        if self._may_replicate and not self.cluster and replica_id_of(request) >= 0:  # consumers give -1
            self.cluster = True
        if exchange.api_key == api_keys.API_VERSIONS and response is not None:
            self._take_offer(self.shared.offer_in(response))
        return True

    def note(self, topics: list[str], groups: list[str], transactional_ids: list[str]) -> None:
        """Remember what the client names."""
        if topics:
            self._keep(self.topics, topics)
        if groups:
            self._keep(self.groups, groups)
        if transactional_ids:
            self._keep(self.transactional_ids, transactional_ids)

    def _turn_to(self, exchange: Exchange, request: Message) -> UseCounts | None:
        """The counts of another version of an API than the last one; None where there is no room for them."""
        api_key, version = exchange.api_key, exchange.api_version
        if _is_of_cluster(api_key, version):
            self.cluster = True
        self._may_replicate = api_key in _BY_REPLICAS
        self._last_key = (api_key, version)
        self._last_use = self._use(self._last_key, exchange.api, request.first_packet, request.first_ns)
        return self._last_use

    def _settings(self) -> ClientSettings | None:
        """What takes the settings; None where there is no room for them."""
        if self.settings is None:
            if self.memory.admit(SETTINGS_BYTES):
                self.settings = ClientSettings()
            else:
                self.memory.cut = True
        return self.settings

    def _use(self, key: tuple[int, int], api: str, packet: int, ns: int) -> UseCounts | None:
        """The counts of a version of an API; None where there is no room for them."""
        use = self.uses.get(key)
        if use is None:
            if not self.memory.admit(_USE_BYTES + text_bytes(api)):
                self.memory.cut = True
                return None
            use = self.uses[key] = UseCounts(api, packet, ns)
        return use

    def _take_offer(self, offer: Offer) -> None:
        known = self.offered
        if offer.items() <= known.items():
            return
        if not known and (shared := self.shared.shared(offer)) is not None:
            self.offered = shared
            return
        if not self.offer_is_own:
            if not self.memory.admit(_OFFER_BYTES * len(known)):
                self.memory.cut = True
                return
            self.offered = known = dict(known)
            self.offer_is_own = True
        for api_key, versions in offer.items():
            if api_key in known or self.memory.admit(_OFFER_BYTES):
                known[api_key] = versions
            else:
                self.memory.cut = True

    def _keep(self, kept: dict[str, None], found: list[str]) -> None:
        for name in found:
            if name not in kept:
                if len(kept) >= MAX_NAMES or not self.memory.admit(_NAME_BYTES + text_bytes(name)):
                    self.memory.cut = True
                    return
                kept[name] = None

    def merge(self, other: ClientTraffic) -> None:
        """Take in what another connection of the same client has shown."""
        self.counts.merge(other.counts)
        self.cluster |= other.cluster
        self.memory.cut |= other.memory.cut
        self._take_offer(other.offered)
        # What is moved from one to the other is not charged twice.
        other.memory.release()
        for key, use in other.uses.items():
            mine = self._use(key, use.api, use.packet, use.first_ns)
            if mine is not None:
                mine.merge(use)
        if other.settings is not None and (settings := self._settings()) is not None:
            settings.merge(other.settings)
        self._keep(self.topics, list(other.topics))
        self._keep(self.groups, list(other.groups))
        self._keep(self.transactional_ids, list(other.transactional_ids))


def _is_of_cluster(api_key: int, version: int) -> bool:
    """Whether only nodes of a cluster send such requests; versions of AddPartitionsToTxn from 4 on are for brokers
    alone (KIP-890).
    """
    return api_key in CLUSTER_APIS or (api_key == api_keys.ADD_PARTITIONS_TO_TXN and version >= 4)
