"""Clients: who they are, what they use, and what an audit says of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from kwiresniff.base.address_names import Name


class ApiUse(NamedTuple):
    """One version of an API as one client used it.

    ``packet`` is the reference of the first request's first packet (of the response's where only that was seen),
    ``first_ns`` its time.
    """

    api: str
    api_key: int
    version: int
    count: int  # type: ignore[assignment]  # not the method of tuples
    errors: int
    packet: int
    first_ns: int


class Setting(NamedTuple):
    """A setting of a client by its name in Kafka's configuration; ``estimated`` from what it does, else as it says.

    ``since_ns`` is the time of the first request that tells it. A setting that was changed is there once for each
    value.
    """

    name: str
    value: str | int | bool
    estimated: bool
    since_ns: int


class Client(NamedTuple):
    """A client of a broker: one client id from one address to one broker, with one software and identity.

    ``address`` is without the port. ``software`` is what the client called itself (KIP-511), ``(name, version)``, and
    ``(None, None)`` when it did not. ``negotiates`` says whether it asks for ApiVersions before it picks versions;
    None when the beginning of its connections is not in the capture. ``offered`` holds the versions its broker said
    it can, ``api_key -> (lowest, highest)``, empty when that was not seen. ``kind`` is ``client``, ``broker`` for
    nodes of the cluster that talk to each other, or ``encrypted`` for TLS that was not decrypted. ``proxied`` is what a
    proxy's preamble tells: the ``client``, without its port, the ``broker``, and ``by`` what. ``address_names`` and
    ``broker_names`` are what the ends are called, ``node_id`` is the broker's, where it is known. ``cluster`` is None
    where all brokers are taken for one cluster. ``settings`` are those of its producer and consumer, by name, several
    values of one in the order of time.
    """

    kind: str
    client_id: str | None
    address: str
    broker: str
    software: tuple[str | None, str | None]
    sasl: dict[str, Any] | None
    tls: dict[str, Any] | None
    negotiates: bool | None
    offered: dict[int, tuple[int, int]]
    uses: tuple[ApiUse, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    connections: int
    exchanges: int
    errors: int
    unanswered: int
    request_bytes: int
    response_bytes: int
    first_ns: int
    last_ns: int
    proxied: dict[str, Any] | None = None
    address_names: tuple[Name, ...] = ()
    broker_names: tuple[Name, ...] = ()
    node_id: int | None = None
    cluster: str | None = None
    settings: tuple[Setting, ...] = ()


class AuditFinding(NamedTuple):
    """One use of an API that a version of Kafka does not take, or may not.

    ``breaks`` says that it will fail; else it is not known. ``offered`` are the versions of the target,
    None when it does not have the API.
    """

    use: ApiUse
    breaks: bool
    offered: tuple[int, int] | None
    reason: str


class AuditRow(NamedTuple):
    """A client and what an audit says of it: ``breaks``, ``unknown``, ``ok`` or ``not_judged``, and why."""

    client: Client
    verdict: str
    reason: str
    findings: tuple[AuditFinding, ...]
