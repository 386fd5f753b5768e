"""A small table of what the definition files hold, so that names, keys and ranges need none of them opened.

``index.txt`` has one line an API, ``KEY NAME REQUEST_VERSIONS RESPONSE_VERSIONS FLEXIBLE_FROM LISTENERS ALIASES``, in
the order of keys, with ``-`` for what is not there, and one line ``data NAME FILE`` for any other message. The
importer writes it. A record of an internal topic has its role and number behind the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition import Message, Record

INDEX_NAME = "index.txt"
NOTHING = "-"
#: How the lines begin that are about no API.
DATA = "data "


class Api(NamedTuple):
    """An API with its newest official name, ``aliases`` and all versions; ``flexible_from`` is the first flexible one
    or None, ``listeners`` are ``broker``, ``controller``, ``zkBroker``.
    """

    key: int
    name: str
    request_versions: tuple[int, int]
    response_versions: tuple[int, int]
    flexible_from: int | None
    listeners: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[int, int]:
        """The lowest and the highest version, which requests and responses share."""
        return self.request_versions


def print_index(files: dict[str, tuple[Message, ...]]) -> str:
    """The index of these definition files."""
    apis: dict[int, str] = {}
    others: list[str] = []
    for file, messages in sorted(files.items()):
        by_kind = {message.kind: message for message in messages}
        others += [_data_line(message, file) for message in messages if message.kind == "data"]
        if "request" in by_kind and "response" in by_kind:
            request, response = by_kind["request"], by_kind["response"]
            flexible = str(request.flexible.low) if request.flexible else NOTHING
            words = [
                str(request.api_key),
                request.name,
                *(f"{low}-{high}" for low, high in (request.versions, response.versions)),
                flexible,
                ",".join(request.listeners) or NOTHING,
                ",".join(request.aliases) or NOTHING,
            ]
            apis[request.api_key] = " ".join(words)
    return "\n".join([*(line for _, line in sorted(apis.items())), *others]) + "\n"


def _data_line(message: Message, file: str) -> str:
    line = f"{DATA}{message.name} {file}"
    return f"{line} {message.record.role} {message.record.number}" if message.record else line


def parse_apis(text: str) -> dict[int, Api]:
    """The APIs of an index by ascending key. Raises SchemaError with the malformed line."""
    apis: dict[int, Api] = {}
    for line in text.splitlines():
        if line.startswith(DATA):
            continue
        try:
            api = _api(*line.split())
        except (TypeError, ValueError) as error:
            raise _wrong(line) from error
        apis[api.key] = api
    return apis


class DataIndex(NamedTuple):
    """The file that holds each message which is of no API, and which of those are records of internal topics."""

    files: dict[str, str]
    records: dict[str, Record]


def parse_data(text: str) -> DataIndex:
    """The messages of an index that belong to no API. Raises SchemaError with the malformed line."""
    found = DataIndex({}, {})
    for line in text.splitlines():
        if not line.startswith(DATA):
            continue
        try:
            _, name, file, *record = line.split()
            found.files[name] = file
            if record:
                role, number = record
                found.records[name] = Record(role, int(number))
        except ValueError as error:
            raise _wrong(line) from error
    return found


def _wrong(line: str) -> SchemaError:
    return SchemaError(f"{INDEX_NAME}: not a line of an index: {line[:80]!r}")


def _api(key: str, name: str, request: str, response: str, flexible: str, listeners: str, aliases: str) -> Api:
    return Api(
        key=int(key),
        name=name,
        request_versions=_versions(request),
        response_versions=_versions(response),
        flexible_from=None if flexible == NOTHING else int(flexible),
        listeners=_names(listeners),
        aliases=_names(aliases),
    )


def _versions(text: str) -> tuple[int, int]:
    low, high = text.split("-")
    return int(low), int(high)


def _names(text: str) -> tuple[str, ...]:
    return () if text == NOTHING else tuple(text.split(","))


def names_of(apis: Iterable[Api]) -> dict[str, Api]:
    """Every accepted name, folded by ``fold_name``; an API's own name goes before an older name of another."""
    found: dict[str, Api] = {}
    listed = list(apis)
    for api in listed:
        for alias in api.aliases:
            found[fold_name(alias)] = api
    for api in listed:
        found[fold_name(api.name)] = api
    return found


def fold_name(name: str) -> str:
    """A name without case and separators: ``LIST_OFFSETS``, ``list-offsets`` and ``ListOffsets`` are one."""
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()
