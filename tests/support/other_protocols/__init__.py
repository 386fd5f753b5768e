"""Conversations in protocols that are not Kafka, built from their specifications.

Those with a length of 32 bits in front, as Kafka has one, are at their most alike: small numbers, names that are text,
ids that the answer repeats. ``CONVERSATIONS`` has one function for each; it takes a seeded source of chance and gives
up to some two hundred messages.
"""

from tests.support.other_protocols import calls, messaging, networks, stores, text, web
from tests.support.other_protocols.making import CONVERSATIONS, Said, Speaker

__all__ = ["CONVERSATIONS", "Said", "Speaker", "calls", "messaging", "networks", "stores", "text", "web"]
