"""Saved states: all that an analyzer knows between two files, as bytes and back, for reading that goes on later.

The form is explicit. Besides numbers, texts, bytes and Python's own containers only objects of the classes in ``EMPTY``
are written, by the names of the fields that each class has in its ``STATE``; reading makes nothing else and calls
nothing. So the form follows the classes, and a file made by classes with other fields is refused, not guessed at.

    uint64, little-endian: bytes of the text; the text, JSON; what the text refers to as bytes, one behind the other

The whole is deflated (RFC 1950). In the text ``objects`` is a list of ``[class, content...]``; the analyzer is number
0, its topics are number 1, its output is number 2. A value is a JSON number, text, boolean or null, or
``["b", offset, length]`` (bytes), ``["t", value...]`` (tuple), ``["p", value...]`` (problem), ``["o", number]``
(object), ``["u"]`` (the connection of one that is not identified), ``["-"]`` (field not set).
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import Any, TypeAlias

from kwiresniff.errors import KwiresniffError
from kwiresniff.model import Connection, Exchange, FetchedTopics, Message, Problem, SessionIdentity, SessionMembers
from kwiresniff.session.analyzer import Analyzer
from kwiresniff.session.attempt import Attempt
from kwiresniff.session.channel import Channel
from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.session.connection_state import UNIDENTIFIED_CONNECTION, Lifecycle
from kwiresniff.session.connection_table import ConnectionTable
from kwiresniff.session.credential_blanking import begins_credentials, blank_exchange, blank_unread
from kwiresniff.session.detection import ProtocolDetector
from kwiresniff.session.fetch_sessions import FetchSession, FetchSessions, MemberLog
from kwiresniff.session.flow_table import Endpoint
from kwiresniff.session.handshake_buffer import HandshakeBuffer
from kwiresniff.session.in_flight import InFlightRequests
from kwiresniff.session.non_kafka import NonKafkaTraffic
from kwiresniff.session.output import EventOutput
from kwiresniff.session.proxy_preamble import ProxyPreamble
from kwiresniff.session.response_reordering import ResponseReorderBuffer
from kwiresniff.session.sasl import Sasl
from kwiresniff.session.sasl_opaque import OpaqueTokens
from kwiresniff.session.secret_configs import SensitiveNames
from kwiresniff.session.tls_decryption import TlsDecryption
from kwiresniff.session.tls_handshake import HandshakeParser
from kwiresniff.session.tls_inspection import TlsInspection
from kwiresniff.session.tls_opening import RecordOpener
from kwiresniff.session.tls_records import RecordReader
from kwiresniff.session.tls_session import TlsSession
from kwiresniff.session.topic_ids import TopicNameTable
from kwiresniff.stream.buffer_budget import BufferBudget
from kwiresniff.stream.frame_reader import FrameReader
from kwiresniff.stream.half_stream import HalfStream
from kwiresniff.stream.out_of_order import OutOfOrderQueue
from kwiresniff.stream.resync import Resynchronizer
from kwiresniff.stream.resync_buffer import ResyncBuffer

_Maker: TypeAlias = Callable[[], Any]


@lru_cache(maxsize=1)
def _placeholder() -> Analyzer:
    """A placeholder for the analyzer of connections that are not filled yet."""
    return Analyzer("headers")


def _half() -> HalfStream:
    return HalfStream(b"", 0, _placeholder().budget)


def _connection() -> ConnectionAnalyzer:
    return ConnectionAnalyzer(_placeholder(), b"", b"", 0, 0)


#: Class -> how an empty one is made. Compiled classes are made by their constructors alone.
EMPTY: dict[type, _Maker] = {
    Attempt: lambda: Attempt(0, 0, b"", 0),
    BufferBudget: BufferBudget,
    Channel: Channel,
    Connection: lambda: Connection(0, "", ""),
    ConnectionAnalyzer: _connection,
    ConnectionTable: lambda: ConnectionTable(_placeholder()),
    Endpoint: lambda: Endpoint(_half(), _half(), _connection()),
    Exchange: lambda: Exchange(UNIDENTIFIED_CONNECTION, 0, 0, 0, None, None, None),
    FetchSession: lambda: FetchSession(True),
    FetchSessions: FetchSessions,
    FetchedTopics: lambda: FetchedTopics(SessionIdentity(), SessionMembers([], [], 0), SessionMembers([], [], 0), True),
    FrameReader: lambda: FrameReader(0, 0, _placeholder().budget),
    HandshakeParser: HandshakeParser,
    HalfStream: _half,
    Lifecycle: lambda: Lifecycle(0, 0),
    MemberLog: MemberLog,
    Message: lambda: Message(0, 0, 0, 0, 0, None),
    OpaqueTokens: OpaqueTokens,
    OutOfOrderQueue: OutOfOrderQueue,
    HandshakeBuffer: HandshakeBuffer,
    InFlightRequests: InFlightRequests,
    ProxyPreamble: ProxyPreamble,
    ProtocolDetector: lambda: ProtocolDetector(b"", frozenset()),
    RecordOpener: RecordOpener,
    RecordReader: RecordReader,
    ResponseReorderBuffer: ResponseReorderBuffer,
    Resynchronizer: lambda: Resynchronizer(0, _placeholder().budget),
    ResyncBuffer: ResyncBuffer,
    SensitiveNames: SensitiveNames,
    SessionIdentity: SessionIdentity,
    SessionMembers: lambda: SessionMembers([], [], 0),
    Sasl: lambda: Sasl(UNIDENTIFIED_CONNECTION),
    NonKafkaTraffic: NonKafkaTraffic,
    TlsDecryption: lambda: TlsDecryption(_placeholder(), 0, (HandshakeParser(), HandshakeParser())),
    TlsInspection: TlsInspection,
    TlsSession: TlsSession,
}


def state_of(cls: type) -> tuple[str, ...]:
    """The fields of a class that are state, those of the classes it derives from first."""
    return tuple(name for one in reversed(cls.__mro__) for name in vars(one).get("STATE", ()))


_FIELDS = {cls: state_of(cls) for cls in (Analyzer, TopicNameTable, EventOutput, *EMPTY)}
_LAYOUT = {cls.__name__: list(names) for cls, names in _FIELDS.items()}
_CONTAINERS: dict[str, _Maker] = {"list": list, "deque": deque, "dict": dict, "bytearray": bytearray}
_MAKERS = {**{cls.__name__: maker for cls, maker in EMPTY.items()}, **_CONTAINERS}
_PLAIN = frozenset({int, str, bool, float, type(None)})
_length = Struct("<Q")


class StateError(KwiresniffError):
    """A state that cannot be written or read."""


def dump(analyzer: Analyzer) -> bytes:
    """The analyzer's state between two segments, without credentials. Raises StateError for one that strips responses:
    what was passed over is not known.
    """
    if analyzer.filters:
        raise StateError("the state of an analyzer that looks for error codes or topic names alone cannot be written")
    for connection in analyzer.table.connections():
        blank_unread(connection)
        if connection.carried is not None:
            blank_unread(connection.carried)
    analyzer.table.drop_held_back(begins_credentials)
    writer = _Writer(analyzer.topics)
    for known in (analyzer, analyzer.topics, analyzer.output):
        writer.number(known)
    objects = [writer.entry(one) for one in writer.pending()]
    text = json.dumps({"layout": _LAYOUT, "objects": objects}, separators=(",", ":")).encode()
    return zlib.compress(b"".join([_length.pack(len(text)), text, *writer.pieces]), 1)


def load(analyzer: Analyzer, state: bytes) -> None:
    """Restores a dumped state in a new analyzer. Raises StateError for another build's or a damaged one."""
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

    def __init__(self, topics: TopicNameTable) -> None:
        self._topics = topics
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
        if cls is Exchange:
            blank_exchange(one, self._topics)
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
        if cls is Problem:
            return ["p", *map(self._value, value)]
        if value is UNIDENTIFIED_CONNECTION:
            return ["u"]
        return ["o", self.number(value)]


class _Reader:
    """Makes all objects empty, then fills them, since they refer to each other in circles."""

    def __init__(self, analyzer: Analyzer, entries: list[list[Any]], data: bytes) -> None:
        if [entry[0] for entry in entries[:3]] != ["Analyzer", "TopicNameTable", "EventOutput"]:
            raise StateError("the state is damaged (it is of something else)")
        self._entries = entries
        self._data = data
        self._objects = [analyzer, analyzer.topics, analyzer.output, *(_MAKERS[entry[0]]() for entry in entries[3:])]

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
        if kind == "p":
            return Problem(*map(self._value, written[1:]))
        if kind == "u":
            return UNIDENTIFIED_CONNECTION
        raise StateError(f"the state is damaged (value {kind})")
