"""Openers: how a format of embedded bytes says in which messages it is found.

A format is a module of this package, and nothing else has to know of it. Its ``OPENERS`` are by API and direction; its
``QUICK_LOOKS``, if it has any, say whether it is worth while to try. ``kwiresniff.codec.embedded`` collects both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeAlias

from kwiresniff.codec.embedded.struct_view import StructView
from kwiresniff.model import Body, Direction, Exchange, TopicNames

#: ``open(holder, exchange, topic_name)``: opens what the message that ``holder`` stands for holds.
Opener: TypeAlias = Callable[[StructView, Exchange, TopicNames], None]
Openers: TypeAlias = dict[tuple[int, Direction], Opener]
#: ``look(body, topic_name)``: whether a body has something to open or to conceal.
QuickLooks: TypeAlias = dict[tuple[int, Direction], Callable[[Body, TopicNames], bool]]


def request_field(exchange: Exchange, name: str) -> Any:
    """The value of the field ``name`` in the exchange's request."""
    body = exchange.request.body if exchange.request is not None else None
    return body.get(name) if body else None


def collect(package: str, paths: Iterable[str]) -> tuple[Openers, QuickLooks]:
    """The openers and quick looks of all modules in ``paths``. Raises ValueError when two open one message."""
    openers: Openers = {}
    looks: QuickLooks = {}
    names = {name.removesuffix(".py") for path in paths for name in os.listdir(path) if name.endswith(".py")}
    for name in sorted(names - {"__init__"}):
        module = import_module(f"{package}.{name}")
        own: Openers = getattr(module, "OPENERS", {})
        if twice := openers.keys() & own.keys():
            raise ValueError(f"{name} opens what another format opens: {sorted(twice)}")
        openers |= own
        looks |= getattr(module, "QUICK_LOOKS", {})
    return openers, looks
