"""Whether a decoded body is what a broker wrote of it into its request log, before that was JSON.

From 0.9 on the log prints a body's fields in wire order, ``{replica_id=3,topics=[{topic=a,partitions=[...]}]}``, under
names and in groups of the time. So the values are compared, in order but for an array's elements; names and braces are
passed over. The brokers of 0.8 print a class's members in an order of their own: there every value of the text must be
among the decoded ones, numbers as often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kwiresniff.schema.types import WireField

#: What stands before a value: the ends of structures behind the value before, the structures it is in, and its name.
_NAME = re.compile(r"[},]*\{?(?:[A-Za-z_]+=\{)*[A-Za-z_]+=")
_COMMA = re.compile(r"\}*,")
_CLOSING = re.compile(r"\}*\]")
_BUFFER = re.compile(r"java\.nio\.HeapByteBuffer\[pos=(?P<start>\d+) lim=(?P<end>\d+) cap=\d+\]")
#: Record sets are a list of their batches, an object, or a stretch of a file, which tells their size.
_RECORDS = re.compile(
    r"null|\[(?:[^][]|\[[^][]*\])*\]|org\.apache\.kafka\.common\.record\.\w+@[0-9a-f]+"
    r"|FileRecords\(file=[^,]*, start=(?P<start>\d+), end=(?P<end>\d+)\)"
)
_PARTITION_SIZES = re.compile(r"^\{acks=(-?\d+),timeout=(\d+),partitionSizes=\[(.*)\]\}$")

#: A value in the text of a 0.8 broker: what is no name of a member, of a class or of a unit.
_VALUE = re.compile(r"(?<![^\s:;,()\[\]>])[^\s:;,()\[\]>]+(?![^\s;,()\]]|\()")
_WORDS = {"-", "ms", "bytes", "Some", "NO_METADATA", "PLAINTEXT"}
#: Members of the header; what a commit does not have in each version; and the broker's clock, which it puts into a
#: commit that says nothing of the time before it writes the log.
_NOT_OF_THE_BODY = re.compile(
    r"(?:CorrelationId: ?-?\d+|ClientId: ?[^;]*|GroupGenerationId: -1)(?:;|$)"
    r"|(?:CommitTime|ExpirationTime) -1|(?<=,)\d{13}(?=\])"
)


def differences(fields: tuple[WireField, ...], body: dict[str, Any], text: str, path: str) -> list[str]:
    """Where a decoded body and the log's text of it disagree; nothing when they do not."""
    if not text:
        return []  # answered, and the log does not say what
    if not text.startswith("{"):
        return named_differences(body, text, path)
    if sizes := _PARTITION_SIZES.match(text):
        return produce_differences(body, sizes, path)
    try:
        at = members(fields, body, text, 0)
    except Disagreement as differ:
        return [f"{path} {differ}"]
    rest = text[at:].strip("{}")
    return [f"{path} ends before the log's {rest[:60]!r}"] if rest else []


class Disagreement(Exception):
    """A value and the text in its place."""


def members(fields: tuple[WireField, ...], body: dict[str, Any], text: str, at: int) -> int:
    """Where the text goes on behind the values of a structure; raises Disagreement when they are others."""
    for field in fields:
        name = _NAME.match(text, at)
        if name is None:
            raise Disagreement(f"has {field.name} where the log has {text[at : at + 60]!r}")
        value, start = body[field.name], name.end()
        if field.array and value is not None:
            at = array(field, value, text, start)
        elif isinstance(value, dict):
            at = members(field.fields, value, text, start)
        else:
            at = scalar(field.type, value, text, start)
    return at


def array(field: WireField, elements: list[Any], text: str, at: int) -> int:
    """Where the text goes on behind an array. The broker keeps some as sets, so the order may be another."""
    try:
        return array_in_order(field, elements, text, at)
    except Disagreement:
        pieces, end = split_array(text, at)
    if len(pieces) != len(elements):
        raise Disagreement(f"has {len(elements)} {field.name} where the log has {text[at:end]!r}")
    for element in elements:
        found = next((piece for piece in pieces if is_piece(field, element, piece)), None)
        if found is None:
            raise Disagreement(f"has {element!r} in {field.name} where the log has {pieces!r}")
        pieces.remove(found)
    return end


def array_in_order(field: WireField, elements: list[Any], text: str, at: int) -> int:
    if not text.startswith("[", at):
        raise Disagreement(f"has an array where the log has {text[at : at + 60]!r}")
    at += 1
    for place, element in enumerate(elements):
        if place:
            comma = _COMMA.match(text, at)
            if comma is None:
                raise Disagreement(f"has more {field.name} where the log has {text[at : at + 60]!r}")
            at = comma.end()
        at = element_end(field, element, text, at)
    closing = _CLOSING.match(text, at)
    if closing is None:
        raise Disagreement(f"has no more {field.name} where the log has {text[at : at + 60]!r}")
    return closing.end()


def element_end(field: WireField, element: Any, text: str, at: int) -> int:
    """Where the text goes on behind an element; what is a structure of one member may be a plain value in the other."""
    if isinstance(element, dict):
        if len(element) == 1 and not text.startswith("{", at):
            (only,) = field.fields
            return scalar(only.type, element[only.name], text, at)
        return members(field.fields, element, text, at)
    name = _NAME.match(text, at) if text.startswith("{", at) else None
    return scalar(field.type, element, text, name.end() if name else at)


def is_piece(field: WireField, element: Any, piece: str) -> bool:
    try:
        return not piece[element_end(field, element, piece, 0) :].strip("}")
    except Disagreement:
        return False


def split_array(text: str, at: int) -> tuple[list[str], int]:
    """The elements of the array that begins at ``at``, and where it ends."""
    if not text.startswith("[", at):
        raise Disagreement(f"has an array where the log has {text[at : at + 60]!r}")
    depth, start, pieces = 0, at + 1, []
    for place in range(at, len(text)):
        letter = text[place]
        depth += (letter in "[{") - (letter in "]}")
        if depth == 0 or (depth == 1 and letter == ","):
            pieces.append(text[start:place])
            start = place + 1
        if depth == 0:
            return [piece for piece in pieces if piece or len(pieces) > 1], start
    raise Disagreement(f"has an array that the log does not end: {text[at : at + 60]!r}")


def scalar(kind: str, value: Any, text: str, at: int) -> int:
    """Where the text goes on behind this value; raises Disagreement when it is another one."""
    if kind.endswith("RECORDS"):
        printed = _RECORDS.match(text, at) or _BUFFER.match(text, at)
        size = sum(batch["size_bytes"] for batch in value or ())
        if printed and (printed["start"] is None or int(printed["end"]) - int(printed["start"]) == size):
            return printed.end()
    elif isinstance(value, bytes):
        buffer = _BUFFER.match(text, at)
        if buffer:
            start, end = int(buffer["start"]), int(buffer["end"])
            if end - start == len(value) or start == end >= len(value):  # the broker may have read it before it logs
                return buffer.end()
    else:
        for said in spellings(value):
            if text.startswith(said, at) and text[at + len(said) : at + len(said) + 1] in ("", ",", "]", "}"):
                return at + len(said)
    raise Disagreement(f"has {value!r} where the log has {text[at : at + 60]!r}")


def spellings(value: Any) -> tuple[str, ...]:
    """How the log may spell a value; what is a boolean now was a number once."""
    if isinstance(value, bool):
        return (str(value).lower(), str(int(value)))
    return ("null",) if value is None else (str(value),)


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
