"""Whether a decoded body is what a broker wrote of it into its request log, before that was JSON.

From 0.9 on the log prints a body's fields in wire order, ``{replica_id=3,topics=[{topic=a,partitions=[...]}]}``, under
names and in groups of the time. So the values are compared, in order, and where arrays begin and end; names and braces
are passed over. The brokers of 0.8 print a class's members in an order of their own: there every value of the text must
be among the decoded ones, numbers as often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kwiresniff.schema.types import WireField

#: What stands between two values: commas, braces and names.
_BETWEEN = re.compile(r"(?:[{},]|[A-Za-z_]+=)*")
_BUFFER = re.compile(r"java\.nio\.HeapByteBuffer\[pos=(\d+) lim=(\d+) cap=\d+\]")
#: Record sets are printed as a list of their batches, or as the stretch of a file that they are.
_RECORDS = re.compile(r"null|\[(?:[^][]|\[[^][]*\])*\]|FileRecords\([^()]*(?:\([^()]*\)[^()]*)*\)|\w+\(size=\d+[^)]*\)")
_PARTITION_SIZES = re.compile(r"^\{acks=(-?\d+),timeout=(\d+),partitionSizes=\[(.*)\]\}$")

#: A value in the text of a 0.8 broker: what is no name of a member, of a class or of a unit.
_VALUE = re.compile(r"(?<![^\s:;,()\[\]>])[^\s:;,()\[\]>]+(?![^\s;,()\]]|\()")
_WORDS = {"-", "ms", "bytes", "Some"}
#: Members of the header; a generation that version 0 of a commit does not have; and the broker's clock, which it puts
#: into a commit that says nothing of the time before it writes the log.
_NOT_OF_THE_BODY = re.compile(
    r"(?:CorrelationId: ?-?\d+|ClientId: ?[^;]*|GroupGenerationId: -1)(?:;|$)|(?<=,)\d{13}(?=\])"
)


def differences(fields: tuple[WireField, ...], body: dict[str, Any], text: str, path: str) -> list[str]:
    """Where a decoded body and the log's text of it disagree; nothing when they do not."""
    if not text:
        return []  # answered, and the log does not say what
    if not text.startswith("{"):
        return named_differences(body, text, path)
    if sizes := _PARTITION_SIZES.match(text):
        return produce_differences(body, sizes, path)
    at = 0
    for kind, value in leaves(fields, body):
        between = _BETWEEN.match(text, at)
        assert between is not None
        start = between.end()
        found = matches(kind, value, text, start)
        if found < 0:
            return [f"{path} has {value!r} where the log has {text[start : start + 60]!r}"]
        at = found
    rest = _BETWEEN.sub("", text[at:], count=1)
    return [f"{path} ends before the log's {rest[:60]!r}"] if rest else []


def leaves(fields: tuple[WireField, ...], body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values in wire order, each with its type; the brackets of arrays as values of their own."""
    for field in fields:
        value = body[field.name]
        if not field.array or value is None:
            yield from one(field, value)
            continue
        yield "MARK", "["
        for element in value:
            yield from one(field, element)
        yield "MARK", "]"


def one(field: WireField, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and field.fields:
        yield from leaves(field.fields, value)
    else:
        yield field.type, value


def matches(kind: str, value: Any, text: str, at: int) -> int:
    """Where the text goes on behind this value, or -1 when it is another one."""
    if kind.endswith("RECORDS"):
        printed = _RECORDS.match(text, at)
        return printed.end() if printed else -1
    if isinstance(value, bytes):
        buffer = _BUFFER.match(text, at)
        return buffer.end() if buffer and int(buffer[2]) - int(buffer[1]) == len(value) else -1
    said = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return at + len(said) if text.startswith(said, at) else -1


def produce_differences(body: dict[str, Any], sizes: re.Match[str], path: str) -> list[str]:
    """A Produce request, of which the log has the sizes of its record sets."""
    ours = [
        f"{topic['name']}-{partition['index']}={sum(batch['size_bytes'] for batch in partition['records'] or ())}"
        for topic in body["topic_data"]
        for partition in topic["partition_data"]
    ]
    mine = (body["acks"], body["timeout_ms"], sorted(ours))
    theirs = (int(sizes[1]), int(sizes[2]), sorted(filter(None, sizes[3].split(","))))
    return [] if mine == theirs else [f"{path} is {mine}, in the log {theirs}"]


def named_differences(body: dict[str, Any], text: str, path: str) -> list[str]:
    """A request in the manner of 0.8, its header's members among the body's."""
    theirs = [word for word in _VALUE.findall(_NOT_OF_THE_BODY.sub("", text)) if word not in _WORDS]
    ours = list(words(body))
    missing = Counter(filter(is_number, theirs)) - Counter(ours) + Counter(set(theirs) - set(ours))
    return [f"{path} lacks {dict(missing)} of {text}"] if missing else []


def is_number(word: str) -> bool:
    return word.lstrip("-").isdigit()


def words(value: Any) -> Iterator[str]:
    """Every value as the log spells it, texts by their words, arrays with their length."""
    if isinstance(value, dict):
        for member in value.values():
            yield from words(member)
    elif isinstance(value, list):
        yield str(len(value))
        yield str(sum(element.get("size_bytes", 0) for element in value if isinstance(element, dict)))
        for element in value:
            yield from words(element)
    else:
        yield from (str(value).lower() if isinstance(value, bool) else str(value)).split()
