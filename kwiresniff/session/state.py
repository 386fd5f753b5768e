"""What an analyzer knows between two files, as bytes and back: for reading that is interrupted and goes on later.

The form is explicit. Besides numbers, texts, bytes and Python's own containers only objects of the classes named here
are written, by the names of their fields, and a callback as the object and the name of its method; reading makes
nothing else and calls nothing. So the form follows the classes, and a file made by classes with other fields is
refused, not guessed at.

    uint64, little-endian: bytes of the text; the text, JSON; what the text refers to as bytes, one behind the other

The whole is deflated (RFC 1950). In the text ``objects`` is a list of ``[class, content...]``; the analyzer is number
0, its topics are number 1. A value is a JSON number, text, boolean or null, or ``["b", offset, length]`` (bytes),
``["t", value...]`` (tuple), ``["o", number]`` (object), ``["m", number, name]`` (method), ``["u"]`` (the connection of
a link that is not settled), ``["-"]`` (field not set).
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Iterator
from struct import Struct
from types import FunctionType, MethodType
from typing import Any

from kwiresniff.errors import KwiresniffError
from kwiresniff.model import Connection, Exchange, Message, Problem
from kwiresniff.session.analyzer import Analyzer
from kwiresniff.session.link import Link
from kwiresniff.session.pairing import Pending
from kwiresniff.session.roles import UNSETTLED, Roles
from kwiresniff.session.sasl import Sasl
from kwiresniff.session.tls import Tls
from kwiresniff.session.tls_hello import Front
from kwiresniff.session.topics import Topics
from kwiresniff.stream.half import Half

#: What of an analyzer is state; the rest is what was wanted of it.
ANALYZER_FIELDS = (
    "_edges", "_ended", "_halves", "_ignored", "_lingering", "_not_kafka", "_now_ns", "client_ids", "connections",
    "topics",
)  # fmt: skip
_OBJECTS = (Connection, Exchange, Front, Half, Link, Message, Pending, Problem, Roles, Sasl, Tls)
_CLASSES: dict[str, type] = {cls.__name__: cls for cls in (Analyzer, Topics, *_OBJECTS)}
_PLAIN = frozenset({int, str, bool, float, type(None)})
_length = Struct("<Q")


def _fields(cls: type) -> tuple[str, ...]:
    if cls is Analyzer:
        return ANALYZER_FIELDS
    if cls is Topics:
        return ("_names",)
    return tuple(name for base in reversed(cls.__mro__) for name in getattr(base, "__slots__", ()))


_FIELDS = {cls: _fields(cls) for cls in _CLASSES.values()}
_LAYOUT = {cls.__name__: list(names) for cls, names in _FIELDS.items()}


class StateError(KwiresniffError):
    """A state that cannot be written or read."""


def dump(analyzer: Analyzer) -> bytes:
    """Everything the analyzer knows, between two segments."""
    writer = _Writer()
    for known in (analyzer, analyzer.topics):
        writer.number(known)
    objects = [writer.entry(one) for one in writer.pending()]
    text = json.dumps({"layout": _LAYOUT, "objects": objects}, separators=(",", ":")).encode()
    return zlib.compress(b"".join([_length.pack(len(text)), text, *writer.pieces]), 1)


def load(analyzer: Analyzer, state: bytes) -> None:
    """Puts a new analyzer, made with the same arguments, where another was when its state was dumped.

    Raises StateError for what ``dump`` did not write, or wrote with other classes.
    """
    try:
        whole = zlib.decompress(state)
        (size,) = _length.unpack_from(whole)
        text = json.loads(whole[_length.size : _length.size + size])
        if text["layout"] != _LAYOUT:
            raise StateError("the state was written by another version of kwiresniff")
        _Reader(analyzer, text["objects"], whole[_length.size + size :]).fill()
    except (zlib.error, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise StateError(f"the state is damaged ({type(error).__name__})") from None
    except Exception as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"the state is damaged ({error})") from None


class _Writer:
    """Gives every object a number when it is first met; ``pending`` are those whose content is still to be written."""

    def __init__(self) -> None:
        self._objects: list[Any] = []  # which also keeps their identities from being given to others
        self._numbers: dict[int, int] = {}
        self.pieces: list[bytes] = []
        self._size = 0

    def pending(self) -> Iterator[Any]:
        yield from self._objects  # it grows meanwhile

    def number(self, one: Any) -> int:
        number = self._numbers.get(id(one))
        if number is None:
            number = self._numbers[id(one)] = len(self._objects)
            self._objects.append(one)
        return number

    def entry(self, one: Any) -> list[Any]:
        """Class and content of an object."""
        cls = one.__class__
        names = _FIELDS.get(cls)
        if names is not None:
            return [cls.__name__, *[self._value(getattr(one, name)) if hasattr(one, name) else ["-"] for name in names]]
        if cls is list or cls is deque:
            return [cls.__name__, *map(self._value, one)]
        if cls is dict:
            return ["dict", *[self._value(part) for item in one.items() for part in item]]
        if cls is bytearray:
            return ["bytearray", self._value(bytes(one))]
        raise StateError(f"{cls.__qualname__} has no written form")

    def _value(self, value: Any) -> Any:
        cls = value.__class__
        if cls in _PLAIN:
            return value
        if cls is bytes:
            start = self._size
            self.pieces.append(value)
            self._size += len(value)
            return ["b", start, len(value)]
        if cls is tuple:
            return ["t", *map(self._value, value)]
        if cls is MethodType:
            return ["m", self.number(value.__self__), value.__name__]
        if value is UNSETTLED:
            return ["u"]
        return ["o", self.number(value)]


class _Reader:
    """Makes all objects empty, then fills them, since they refer to each other in circles."""

    def __init__(self, analyzer: Analyzer, entries: list[list[Any]], data: bytes) -> None:
        if [entry[0] for entry in entries[:2]] != ["Analyzer", "Topics"]:
            raise StateError("the state is damaged (it is of something else)")
        self._entries = entries
        self._data = data
        self._objects = [analyzer, analyzer.topics, *(_empty(entry[0]) for entry in entries[2:])]

    def fill(self) -> None:
        value = self._value
        for one, (_, *content) in zip(self._objects, self._entries, strict=True):
            names = _FIELDS.get(one.__class__)
            if names is not None:
                for name, written in zip(names, content, strict=True):
                    if written != ["-"]:
                        object.__setattr__(one, name, value(written))
            elif isinstance(one, dict):
                for at in range(0, len(content), 2):
                    one[value(content[at])] = value(content[at + 1])
            else:
                one.extend(*map(value, content)) if isinstance(one, bytearray) else one.extend(map(value, content))

    def _value(self, written: Any) -> Any:
        if written.__class__ is not list:
            return written
        kind = written[0]
        if kind == "b":
            start, length = written[1:]
            return self._data[start : start + length]
        if kind == "o":
            return self._objects[written[1]]
        if kind == "t":
            return tuple([self._value(part) for part in written[1:]])
        if kind == "m":
            one, name = self._objects[written[1]], written[2]
            if not isinstance(getattr(one.__class__, name, None), FunctionType):
                raise StateError(f"the state is damaged (no method {name})")
            return MethodType(getattr(one.__class__, name), one)
        if kind == "u":
            return UNSETTLED
        raise StateError(f"the state is damaged (value {kind})")


def _empty(name: str) -> Any:
    if name in ("list", "deque", "dict", "bytearray"):
        return {"list": list, "deque": deque, "dict": dict, "bytearray": bytearray}[name]()
    return object.__new__(_CLASSES[name])
