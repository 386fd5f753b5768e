"""Facts about each (API, version) that are needed for every frame, looked up once and kept.

Everything here comes from the schema; the table only saves asking it for every frame. And which version a message is
read as, which is nearly always the one asked for.
"""

from __future__ import annotations

from typing import Final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import API_VERSIONS, FETCH, JOIN_GROUP, SHARE_FETCH, SYNC_GROUP
from kwiresniff.codec.body_walker import NumberReader
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction, Exchange

#: (API, version) pairs remembered. Real traffic has a few dozen; an attacker can invent 2^32.
MAX_FACTS = 4096

#: APIs whose answers a broker may hold back on purpose.
MAY_HOLD: Final = frozenset({FETCH, JOIN_GROUP, SYNC_GROUP, SHARE_FETCH})
UNSUPPORTED_VERSION = 35


class ApiFacts:
    """One (API, version). ``read_as`` is the version its definition is taken from, -1 when the API is unknown.

    ``request_header_version`` and ``response_header_version`` are those of the headers (KIP-482), ``may_hold`` says
    that a broker may hold answers back on purpose.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "known",
        "may_hold",
        "name",
        "numbers",
        "read_as",
        "request_header_version",
        "response_header_version",
    )  # fmt: skip

    def __init__(
        self,
        api_key: int,
        api_version: int,
        name: str,
        known: bool,
        read_as: int,
        request_header_version: int,
        response_header_version: int,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.name = name
        self.known = known
        self.read_as = read_as
        self.request_header_version = request_header_version
        self.response_header_version = response_header_version
        self.may_hold = api_key in MAY_HOLD
        self.numbers: dict[str, NumberReader] = {}

    def number(self, direction: Direction, field: str) -> NumberReader:
        """The reader of a number in requests or responses; of an unknown API it finds none."""
        reader = self.numbers.get(field)
        if reader is None:
            reader = self.numbers[field] = self._number_reader(direction, field)
        return reader

    def _number_reader(self, direction: Direction, field: str) -> NumberReader:
        if self.read_as >= 0:  # looking for the definitions of unknown APIs would be what a stream of them costs
            try:
                return codec.number_reader(self.api_key, self.read_as, direction, field)
            except SchemaError:
                pass
        return NumberReader([])


_VERSIONS: Final[dict[int, tuple[int, int]]] = {}
#: Looked up so far, by ``(api_key << 16) + api_version``; the hot path asks here before it asks ``api_facts``.
FACTS: Final[dict[int, ApiFacts]] = {}


def api_facts(api_key: int, api_version: int) -> ApiFacts:
    """Facts about an API at a version; for an unknown version those of the nearest known one."""
    key = (api_key << 16) + api_version
    facts = FACTS.get(key)
    if facts is None:
        if len(FACTS) >= MAX_FACTS:
            FACTS.clear()
        facts = FACTS[key] = _look_up(api_key, api_version)
    return facts


def _look_up(api_key: int, api_version: int) -> ApiFacts:
    name = schema.API_NAMES.get(api_key)
    if name is None:
        return ApiFacts(api_key, api_version, f"UNKNOWN_API_{api_key}", False, -1, 1, 0)
    low, high = schema.version_range(api_key)
    read_as = min(max(api_version, low), high)
    return ApiFacts(
        api_key,
        api_version,
        name,
        read_as == api_version,
        read_as,
        schema.request_header_version(api_key, read_as),
        schema.response_header_version(api_key, read_as),
    )


def known_versions() -> dict[int, tuple[int, int]]:
    """Every known API key and the versions that have existed, first and last."""
    if not _VERSIONS:
        _VERSIONS.update({api_key: schema.version_range(api_key) for api_key in schema.API_NAMES})
    return _VERSIONS


def response_version(api_key: int, version: int, frame: bytes, body_offset: int = 4) -> int:
    """The version of a response frame with its body at ``body_offset``: 0 for an ApiVersions of an unknown version
    (UNSUPPORTED_VERSION, KIP-511), else the request's.
    """
    if api_key == API_VERSIONS and int.from_bytes(frame[body_offset : body_offset + 2], "big") == UNSUPPORTED_VERSION:
        return 0
    return version


def read_version(exchange: Exchange, direction: Direction) -> int:
    """The version an exchange's request or response is read as, or -1 when its API is unknown."""
    facts = api_facts(exchange.api_key, exchange.api_version)
    response = exchange.response
    if direction == "response" and response is not None and response.frame is not None:
        return response_version(exchange.api_key, facts.read_as, response.frame, response.body_offset)
    return facts.read_as
