"""What an analyzer knows between two files, as bytes and back: for reading that is interrupted and goes on later.

The form is explicit. Besides numbers, texts, bytes and Python's own containers only objects of the classes named here
are written, by the names of their fields, and a callback as the object and the name of its method; reading makes
nothing else and calls nothing. So the form follows the classes, and a file made by classes with other fields is
refused, not guessed at.

    uint64, little-endian: bytes of the text; the text, JSON; what the text refers to as bytes, one behind the other

The whole is deflated (RFC 1950). In the text ``objects`` is a list of ``[class, content...]``; the analyzer is number
0, its topics are number 1. A value is a JSON number, text, boolean or null, or ``["b", offset, length]`` (bytes),
``["t", value...]`` (tuple), ``["p", value...]`` (problem), ``["f", value...]`` (what a fetch session is about),
``["o", number]`` (object), ``["m", number, name]``
(method), ``["u"]`` (the connection of a link that is not settled), ``["-"]`` (field not set).
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from types import BuiltinMethodType, MethodType
from typing import Any, TypeAlias

from kwiresniff.errors import KwiresniffError
from kwiresniff.model import Connection, Exchange, FetchedTopics, Message, Problem
from kwiresniff.session.analyzer import Analyzer
from kwiresniff.session.bare_tokens import BareTokens
from kwiresniff.session.channel import Channel
from kwiresniff.session.early import Early
from kwiresniff.session.fetch_sessions import FetchSession, FetchSessions
from kwiresniff.session.link import Link
from kwiresniff.session.openings import Openings
from kwiresniff.session.pairing import Pending
from kwiresniff.session.roles import UNSETTLED, Roles
from kwiresniff.session.sasl import Sasl
from kwiresniff.session.strangers import Strangers
from kwiresniff.session.tls import Tls
from kwiresniff.session.tls_hello import Front
from kwiresniff.session.topics import Topics
from kwiresniff.session.tracker import Tracker
from kwiresniff.stream.budget import Budget
from kwiresniff.stream.half import Half
from kwiresniff.stream.run import Run
from kwiresniff.stream.waiting import Waiting

_Maker: TypeAlias = Callable[[], Any]


def _plainly(cls: type) -> _Maker:
    return lambda: object.__new__(cls)


@lru_cache(maxsize=1)
def _nobody() -> Analyzer:
    """Whose links are until they are filled."""
    return Analyzer("headers")


def _nobodys_link() -> Link:
    """Of which something is until it is filled."""
    return Link(_nobody(), b"", b"", 0, 0)


def _no_frame(*frame: object) -> None:
    """Stands for a callback until the real one is set."""


def _no_loss(*loss: object) -> None:
    """The same."""


def _no_place(half: Half) -> int:
    """The same."""
    return -1


#: Class -> how an empty one is made, and its fields. Compiled classes are made by their constructors alone.
OBJECTS: dict[type, tuple[_Maker, tuple[str, ...]]] = {
    BareTokens: (_plainly(BareTokens), ("_link", "awaiting", "expected")),
    Budget: (lambda: Budget(_nobody().holders, _nobody().given_up), ("given_up", "held", "holders", "limit")),
    Channel: (Channel, ("free_ns", "least_ns", "lost_ns", "muted_until_ns", "served_ns")),
    Connection: (lambda: Connection(0, "", ""), (
        "broker", "bytes", "client", "client_id", "client_software", "closed_by", "closed_ns", "closed_packet",
        "exchanges", "first_ns", "first_packet", "handshake_rtt_ns", "handshake_seen", "id", "last_ns", "packets",
        "protocol", "retransmits", "sasl", "skipped_bytes", "syn_retransmits", "tls", "was_reset",
    )),
    Early: (lambda: Early(_nobodys_link()), (
        "_ids", "_link", "_releasing", "_resume", "_resume_usual", "held", "held_bytes",
    )),
    Exchange: (lambda: Exchange(UNSETTLED, 0, 0, 0, None, None, None), (
        "api", "api_key", "api_version", "client_id", "connection", "correlation_id", "errors", "fetched", "held",
        "muted_ns", "notes", "outcome", "problems", "queued", "request", "response", "topics", "waiting",
    )),
    FetchSession: (lambda: FetchSession(True), ("is_whole", "partitions", "size_bytes", "told", "topics")),
    FetchSessions: (FetchSessions, ("held_bytes", "sessions")),
    Front: (_plainly(Front), (
        "_buffer", "_messages", "_room", "alert", "certificate", "certificate_requested", "cipher", "clear_bytes",
        "done", "encrypted", "hello", "offered", "protocol", "sent_certificate", "server_name", "version",
    )),
    Half: (lambda: Half(b"", _no_frame, _no_loss, _no_place, 0, _nobody().budget), (
        "_busy", "_head", "_lost_in_frame", "_position", "_search_code", "ack", "at_edge", "behind", "beyond", "budget",
        "bytes", "closed", "fin", "first_ns", "first_packet", "flow", "frame", "granted", "index", "keep", "last_ns",
        "locate", "lost", "min_frame_bytes", "need", "next_seq", "owner", "packets", "parts", "passing", "peer",
        "retransmits", "room", "run", "searching", "sifter", "sifts", "size", "skipped", "syn_seq", "unseen",
        "usual", "waiting", "wanted",
    )),
    Link: (_nobodys_link, (
        "analyzer", "bare_tokens", "broker", "carrier", "channel", "client", "client_ids", "closed", "connection",
        "early", "first_correlation_id", "first_ns", "first_packet", "handshake_rtt_ns", "lingering", "opened_by_syn",
        "parting", "pending", "protocol", "roles", "sasl", "syn_ns", "syn_retransmits", "tls",
    )),
    Message: (lambda: Message(0, 0, 0, 0, 0, None), (
        "body", "body_offset", "end_seq", "first_ns", "first_packet", "frame", "gist", "header_version",
        "last_ns", "last_packet", "size_bytes", "text", "version",
    )),
    Openings: (Openings, ("_held",)),
    Pending: (Pending, ("_gone", "by_id", "bytes", "reused")),
    Roles: (lambda: Roles(_nobodys_link()), ("_believable", "_doubtful", "_link", "ending")),
    Run: (Run, ("_fresh", "_searched", "ahead", "data", "marks", "steps")),
    Sasl: (_plainly(Sasl), ("_connection", "started_ns")),
    Strangers: (Strangers, ("_answers", "_flows", "_hellos", "_kafka", "_servers")),
    Tracker: (lambda: Tracker(_nobody()), (
        "_analyzer", "_edges", "_ended", "_lingering", "_nobody", "_openings", "halves", "now_ns", "strangers",
    )),
    Tls: (_plainly(Tls), ("_answered_bytes", "_fronts", "_link", "carried", "connection")),
    Waiting: (Waiting, ("_acked", "_acked_ns", "_acked_packet", "bytes", "segments")),
}  # fmt: skip
#: What of an analyzer is state; the rest is what was wanted of it.
ANALYZER_FIELDS = (
    "bare_token_bytes", "budget", "client_ids", "connections", "fetch_sessions", "topics", "tracker",
)  # fmt: skip
_PROBLEM_FIELDS = ("code", "message", "offset", "path", "packet", "timestamp_ns", "details")
_FIELDS = {
    Analyzer: ANALYZER_FIELDS,
    Topics: ("_bytes", "_names", "forgotten"),
    **{cls: fields for cls, (_, fields) in OBJECTS.items()},
}
_LAYOUT = {cls.__name__: list(names) for cls, names in _FIELDS.items()}
_CONTAINERS: dict[str, _Maker] = {"list": list, "deque": deque, "dict": dict, "bytearray": bytearray}
_MAKERS = {**{cls.__name__: maker for cls, (maker, _) in OBJECTS.items()}, **_CONTAINERS}
#: What a half may call.
_CALLBACKS = frozenset({
    "_locate", "_lost", "_response_after_loss", "given_up", "holders", "locate", "lost", "request", "response",
})  # fmt: skip
_PLAIN = frozenset({int, str, bool, float, type(None)})
_length = Struct("<Q")


class StateError(KwiresniffError):
    """A state that cannot be written or read."""


def dump(analyzer: Analyzer) -> bytes:
    """Everything the analyzer knows, between two segments.

    Raises StateError for one that reads no further than error codes or topic names: what a sieve has passed over of a
    response is not known any more.
    """
    if analyzer.sifts:
        raise StateError("the state of an analyzer that looks for error codes or topic names alone cannot be written")
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
    except (zlib.error, StructError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise StateError(f"the state is damaged ({type(error).__name__})") from None


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
        if cls is FetchedTopics:
            return ["f", *map(self._value, value)]
        if cls is Problem:
            return ["p", *[self._value(getattr(value, name)) for name in _PROBLEM_FIELDS]]
        if (cls is MethodType or cls is BuiltinMethodType) and value.__name__ in _CALLBACKS:
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
        self._objects = [analyzer, analyzer.topics, *(_MAKERS[entry[0]]() for entry in entries[2:])]

    def fill(self) -> None:
        value = self._value
        for one, (_, *content) in zip(self._objects, self._entries, strict=True):
            names = _FIELDS.get(one.__class__)
            if names is not None:
                for name, written in zip(names, content, strict=True):
                    if written != ["-"]:
                        setattr(one, name, value(written))
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
            if name not in _CALLBACKS:
                raise StateError(f"the state is damaged (no callback {name})")
            return getattr(one, name)
        if kind == "f":
            return FetchedTopics(*map(self._value, written[1:]))
        if kind == "p":
            return Problem(*map(self._value, written[1:]))
        if kind == "u":
            return UNSETTLED
        raise StateError(f"the state is damaged (value {kind})")
