"""``read -e FIELD``: chosen fields of each exchange on a line, with tabs between, as ``tshark -T fields`` prints them.

Fields are those of filters. Of several values of a field all are printed, with commas between, names each once.
Durations are seconds, times RFC 3339, sizes bytes, so that ``awk`` and spreadsheets can calculate with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from kwiresniff.analysis.filter.fields import Field, body_field, fields, unknown_step
from kwiresniff.base.depths import DEPTHS, Depth
from kwiresniff.base.needs import Needs
from kwiresniff.base.time_units import SECOND_NS
from kwiresniff.cli.collect import read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.export.encode import bytes_json, json_text
from kwiresniff.export.escaping import escape_text
from kwiresniff.export.output import Output
from kwiresniff.export.times import rfc3339
from kwiresniff.model import Exchange, TopicNames
from kwiresniff.schema import API_NAMES, error

#: The separators of fields, and of the values of one field.
_BETWEEN: Final = "\t"
_BETWEEN_VALUES: Final = ","


class _Chosen(NamedTuple):
    field: Field
    text: Callable[[Any], str]


def needs_of_fields(names: Sequence[str]) -> Needs:
    """The needs of these fields; raises UsageError for one that there is not."""
    chosen = [_field(name, None) for name in names]
    depths: list[Depth] = [one.depth for one in chosen]
    depth = max(depths, key=DEPTHS.index)
    return Needs(depth, sessions=any(one.sessions is not None for one in chosen), digests=True)


def print_fields(source: EventSource, names: Sequence[str]) -> bool:
    """Prints a line for each exchange; False when the user interrupted it."""
    chosen = [_Chosen(field, _TEXTS.get(field.kind, _text)) for field in (_field(n, source.topic_name) for n in names)]

    def line(exchange: Exchange) -> bytes:
        cells = [_BETWEEN_VALUES.join(_texts(one, exchange)) for one in chosen]
        return (_BETWEEN.join(cells) + "\n").encode("utf-8", "backslashreplace")

    with Output("-") as out:

        def write(exchange: Exchange) -> None:
            out.stream.write(line(exchange))
            if source.live:
                out.stream.flush()

        finished, messages = read_through(source, write)
    if finished:
        messages.end()
    return finished


def _texts(one: _Chosen, exchange: Exchange) -> Iterable[str]:
    """The values of a field as text; those of a path into a body as often as they stand there."""
    texts = map(one.text, one.field.final(exchange) or ())
    return texts if one.field.kind == "any" else dict.fromkeys(texts)


def _field(name: str, topic_name: TopicNames | None) -> Field:
    known = fields(topic_name)
    name = name.strip()
    found = known.get(name) or body_field(name)
    if found is None:
        raise click.UsageError(f"-e {name}: no field of that name; there are {', '.join(known)}, request.body.PATH")
    if name not in known and (wrong := unknown_step(name)) is not None:
        near = f"; near it: {', '.join(wrong.near)}" if wrong.near else ""
        raise click.UsageError(f"-e {name}: {wrong.path!r} has no {wrong.step!r}{near}")
    return found


def _text(value: Any) -> str:
    """A value without what would end its field or act on a terminal."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        value = bytes_json(value)
    if isinstance(value, dict | list):
        value = json_text(value).decode("utf-8", "backslashreplace")
    return escape_text(str(value)).replace("\t", "\\t").replace("\n", "\\n")


def _seconds(ns: int) -> str:
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // SECOND_NS}.{ns % SECOND_NS:09d}"


_TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "api": lambda key: API_NAMES.get(key, ""),
    "duration": _seconds,
    "error": lambda code: error(code).name,
    "time": lambda ns: rfc3339(ns) or str(ns),
}
