"""The protocol guide's grammars, kept as digests: every message of a release in one line.

Kafka prints the guide from the schemas its own generator made, with ``java -cp kafka-clients-X.jar:slf4j-api.jar
org.apache.kafka.common.protocol.Protocol``. A digest is the start of the SHA-256 of a message's grammar, lines without
blanks at the end and joined by line ends. ``python -m tests.schema.guide GUIDE.html`` prints a guide's digests.
"""

from __future__ import annotations

import hashlib
import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kwiresniff.schema import MessageVersion, WireField

DATA = Path(__file__).parent / "data"

_TITLE = re.compile(r"(\w+) (Request|Response) \(Version: (\d+)\) => ?")
_PART = re.compile(r" +\S+( \d+>)? => ")


class Digest(NamedTuple):
    api: str
    direction: str
    version: int
    digest: str


def digest(grammar: str) -> str:
    return hashlib.sha256(grammar.encode()).hexdigest()[:16]


def digests(release: str) -> Iterator[Digest]:
    """The digests of the guide of ``release``."""
    for line in (DATA / f"guide-{release}.txt").read_text("utf-8").splitlines():
        api, direction, version, found = line.split()
        yield Digest(api, direction, int(version), found)


def grammars(guide: str) -> Iterator[tuple[str, str, int, str]]:
    """The grammars in a guide: API, direction, version and text."""
    lines = [html.unescape(line).rstrip() for line in guide.splitlines()]
    for at, line in enumerate(lines):
        if title := _TITLE.search(line):
            text = [line[title.start() :]]
            for part in lines[at + 1 :]:
                if not _PART.match(part):
                    break
                text.append(part)
            yield title[1], title[2].lower(), int(title[3]), "\n".join(text)


def grammar_of_4(message: MessageVersion) -> str:
    """A grammar in the form the guide has since 4.1, which shows tagged fields and what may be null."""
    title = f"{message.name} {message.kind.capitalize()} (Version: {message.version})"
    fields, flexible = message.fields, message.flexible
    return "\n".join([f"{title} => {_parts(fields, flexible)}", *_lines(fields, flexible, 1)])


def _parts(fields: tuple[WireField, ...], flexible: bool) -> str:
    return " ".join(["{", *(_part(field, flexible) for field in fields), "}"])


def _part(field: WireField, flexible: bool) -> str:
    if field.tag is not None:
        return _name(field)
    if not field.array:
        return field.name
    return ("?" if field.nullable else "") + (f"({field.name})" if flexible else f"[{field.name}]")


def _name(field: WireField) -> str:
    return field.name if field.tag is None else f"{field.name}<tag: {field.tag}>"


def _lines(fields: tuple[WireField, ...], flexible: bool, depth: int) -> Iterator[str]:
    for field in fields:
        start = f"{'  ' * depth}{_name(field)} => "
        if field.type == "STRUCT":
            yield start + ("?" if field.nullable and not field.array else "") + _parts(field.fields, flexible)
            yield from _lines(field.fields, flexible, depth + 1)
        elif field.nullable and field.type.endswith("RECORDS"):
            yield start + field.type.replace("RECORDS", "NULLABLE_RECORDS")
        else:
            yield start + field.type


if __name__ == "__main__":
    for name, direction, version, text in grammars(Path(sys.argv[1]).read_text("utf-8")):
        print(name, direction, version, digest(text))
