"""Results with the names of the addresses in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kwiresniff.base.flows import host_of

if TYPE_CHECKING:
    from kwiresniff.base.address_names import AddressNames, Name
    from kwiresniff.identity.addresses import AddressBook
    from kwiresniff.results.clients import Client
    from kwiresniff.results.findings import Finding
    from kwiresniff.results.stats import StatRow
    from kwiresniff.results.topics import Topic, TopicClient

#: Addresses of a finding that get their names.
MAX_ADDRESSES: Final = 8

#: An address in a sentence, with or without a port.
_ADDRESS: Final = re.compile(r"(?<![\w.:\[])(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?(?![\w.]*\w)")


def client_with_names(client: Client, book: AddressBook) -> Client:
    """A client of the inventory with the names of its ends."""
    node = book.node(client.broker)
    return client._replace(
        address_names=book.client_names(client.client_id, client.address),
        broker_names=book.broker_names(client.broker),
        node_id=None if node is None else node.node_id,
    )


def topic_with_names(topic: Topic, names: AddressNames) -> Topic:
    """A topic whose producers and consumers have the names of their hosts."""

    def named(clients: tuple[TopicClient, ...]) -> tuple[TopicClient, ...]:
        return tuple(client._replace(names=tuple(names.of_address(client.address))) for client in clients)

    return topic._replace(producers=named(topic.producers), consumers=named(topic.consumers))


def row_with_names(row: StatRow, names: AddressNames) -> StatRow:
    """A row of statistics with the names of the addresses in its key, by dimension."""
    found = [(by, names_of_key(by, part, names)) for by, part in zip(row.by, row.key, strict=True)]
    named = tuple((by, called) for by, called in found if called)
    return row._replace(names=named) if named else row


def names_of_key(by: str, part: str, names: AddressNames) -> tuple[Name, ...]:
    """The names of the address in a part of the key of a row, which is of the dimension ``by``."""
    if by in ("broker", "host"):
        return tuple(names.of(part) if by == "broker" else names.of_address(part))
    if by == "client":  # its id and its host
        return tuple(names.of_address(part.rpartition(" ")[2]))
    if by == "connection":  # its number, client and broker
        return tuple(names.of(part.split(" ")[1]))
    return ()


def finding_with_names(finding: Finding, names: AddressNames) -> Finding:
    """A finding with the names of the addresses that it mentions."""
    texts = (finding.subject, finding.title, *finding.details, *finding.named("client"), *finding.named("broker"))
    addresses = dict.fromkeys(match[0] for text in texts for match in _ADDRESS.finditer(text))
    told: list[str] = []
    for address in addresses:
        called = names.of(address) if ":" in address.rpartition("]")[2] else names.of_address(address)
        if called and len(told) < MAX_ADDRESSES and host_of(address) not in addresses:
            told.append(f"{address} is {', '.join(f'{one.name} ({one.source})' for one in called)}")
    return finding._replace(details=(*finding.details, *told)) if told else finding
