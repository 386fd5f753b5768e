"""Members of groups that do not do what they joined for, beside a producer that goes on.

Usage: members.py BOOTSTRAP paused|hanging|sharing|unresolved. ``paused`` pauses a partition and never resumes it;
``hanging`` stops polling for longer than its commits take; ``sharing`` are two applications with one ``group.id``;
``unresolved`` cannot look up one of the brokers.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, Message
from workload import consume, produce, together

PER_SECOND = 50

bootstrap, what = sys.argv[1:]


def write(seconds: float, client: str = "shop", topic: str = "orders") -> None:
    produce(bootstrap, client, topic, seconds, PER_SECOND)


def read(client: str, group: str, seconds: float, act: Any = None, topic: str = "orders") -> None:
    consume(bootstrap, client, topic, seconds, act, group_id=group)


def pause(consumer: Consumer, message: Message, count: int) -> None:
    if count == 2 * PER_SECOND:
        consumer.pause([one for one in consumer.assignment() if one.partition == 1])


def hang(consumer: Consumer, message: Message, count: int) -> None:
    if count == 6 * PER_SECOND:
        time.sleep(14)


if what == "paused":
    print("fact: mailer pauses orders-1 after 2 s and never resumes it")
    together(lambda: write(14), lambda: read("mailer", "mail", 14, pause))
elif what == "hanging":
    print("fact: mailer does not poll for 14 s once it has 300 records; before, it commits every 5 s")
    together(lambda: write(21), lambda: read("mailer", "mail", 21, hang), lambda: read("audit", "audit", 21))
elif what == "sharing":
    print("fact: order-app reads orders and payment-app reads payments, both in the group backend")
    together(
        lambda: write(8),
        lambda: write(8, "bank", "payments"),
        lambda: read("order-app", "backend", 8),
        lambda: read("payment-app", "backend", 8, topic="payments"),
    )
elif what == "unresolved":
    print("fact: shop cannot look up the name that node 3 advertises")
    write(10)
