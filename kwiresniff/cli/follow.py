"""``kwiresniff follow``: one connection, client, group, producer or correlation id, in time order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Any, Final

import click

from kwiresniff.analysis.filter import compile_filter
from kwiresniff.base.needs import Needs
from kwiresniff.cli.click_commands import ParamType
from kwiresniff.cli.collect import end, print_objects, read_through
from kwiresniff.cli.event_output import needs_of_form
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.cli.spool import readable_twice
from kwiresniff.export.follow import follow_event_json
from kwiresniff.model import Exchange, Message
from kwiresniff.packets import Selection, Source
from kwiresniff.packets.following import MAX_EVENTS, tcp_events
from kwiresniff.render.follow_lines import FollowWriter
from kwiresniff.render.info_column import facts
from kwiresniff.render.terminal import stdout_for
from kwiresniff.results.follow import FollowEvent

#: The subjects, each with the filters that choose its exchanges; ``{}`` is the value, as a literal.
SUBJECTS: Final = {
    "connection": ("connection == {}",),
    "client": ("client_id == {}",),
    "group": ("group == {}",),
    "transactional_id": ("transactional_id == {}",),
    "producer": (
        "request.body.producer_id == {}",
        "response.body.producer_id == {}",
        "request.body.topic_data.partition_data.records.producer_id == {}",
        "request.body.transactions.producer_id == {}",
        "request.body.markers.producer_id == {}",
    ),
    "correlation_id": ("correlation_id == {}",),
}
_NUMBERS: Final = ("connection", "producer", "correlation_id")


class SubjectType(ParamType):
    """``client=billing`` and the like; its value is a filter expression."""

    name = "what"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name, equals, text = str(value).partition("=")
        if not equals or name not in SUBJECTS:
            self.fail(f"{value!r} begins with none of {', '.join(f'{one}=' for one in SUBJECTS)}", param, ctx)
        if name in _NUMBERS and not text.isdecimal():
            self.fail(f"{text!r} is not a number", param, ctx)
        literal = text if name in _NUMBERS else json.dumps(text, ensure_ascii=False)
        found = [one.format(literal) for one in SUBJECTS[name]]
        if name == "client" and (_is_address(text) or "/" in text):
            found.append(f"client == {literal}")
        return " or ".join(found)


def _is_address(text: str) -> bool:
    for host in (text, text.rpartition(":")[0]):
        try:
            ip_address(host.strip("[]"))
        except ValueError:
            continue
        return True
    return False


@capture_command("follow", click.argument("what", type=SubjectType(), metavar="WHAT"))
@form_option(("table", "jsonl"))
def command(captures: tuple[str, ...], options: ReadOptions, what: str, form: str) -> int:
    """What one connection, client, group or producer did, message by message, and what TCP did between them.

    WHAT is connection=3, client=NAME (or an address), group=NAME, transactional_id=NAME, producer=ID or
    correlation_id=N. Requests and responses are lines of their own, in the order of their times.
    """
    if options.filter is not None:
        compile_filter(options.filter)  # a mistake in it is reported with its own column
        what = f"({what}) and ({options.filter})"
    with ExitStack() as stack:
        names = [readable_twice(one, stack) for one in captures]
        selection = Selection()
        told: list[FollowEvent] = []
        left_out = 0
        needs = needs_of_form("summary", options) | Needs("bodies", sessions=True, digests=True)
        source = EventSource(names, options._replace(filter=what), needs, screen=False, all_views=True)

        def take(exchange: Exchange) -> None:
            nonlocal left_out
            if len(told) >= MAX_EVENTS:
                left_out += 1
                return
            selection.choose(exchange)
            told.extend(_messages(exchange, source))

        finished, messages = read_through(source, take)
        if finished:
            told.extend(tcp_events(Source(source.files, options.decode_as), selection, MAX_EVENTS))
        told.sort(key=lambda event: (event.timestamp_ns, event.packet))
        if form == "table":
            FollowWriter(*stdout_for(options.color), source.files).write(told)
        else:
            print_objects(_json(told, source.files), form)
        more = f"{left_out} later exchanges are left out; narrow it with -Y or --since" if left_out else ""
        nothing = "" if told or not source.exchanges else "there was Kafka, but nothing of what is followed"
        return end(source, finished, messages, more, told=nothing)


def _messages(exchange: Exchange, source: EventSource) -> Iterator[FollowEvent]:
    """The request and the response of an exchange, each with what it is about."""
    request, response = exchange.request, exchange.response
    problems = [(problem.path, problem.code) for problem in exchange.problems]
    known: list[str] = []
    if request is not None:
        alone = Exchange(exchange.connection, exchange.api_key, exchange.api_version, 0, None, request, None)
        alone.api, alone.fetched, alone.topics = exchange.api, exchange.fetched, exchange.topics
        asked = [code for path, code in problems if path != "response"]
        known = facts(alone, source.topic_name)
        yield _event(request, True, exchange, known, asked)
    if response is not None:
        answered = [code for path, code in problems if path == "response"]
        new = [fact for fact in facts(exchange, source.topic_name) if fact not in known]
        yield _event(response, False, exchange, new, answered)


def _event(message: Message, asks: bool, exchange: Exchange, about: list[str], problems: list[str]) -> FollowEvent:
    connection = exchange.connection
    details: dict[str, Any] = {
        "api": exchange.api,
        "api_key": exchange.api_key,
        "api_version": exchange.api_version,
        "correlation_id": exchange.correlation_id,
        "client_id": exchange.client_id,
        "size_bytes": message.size_bytes,
        "outcome": exchange.outcome,
    }
    if not asks:
        details["latency_ns"] = exchange.latency_ns
        details["waiting"] = exchange.waiting
        details["errors"] = list(dict.fromkeys(name for _, _, name, _ in exchange.errors))
    details["problems"] = list(dict.fromkeys(problems))
    details["facts"] = about
    name = "request" if asks else "response"
    ends = connection.client, connection.broker
    return FollowEvent(message.first_ns, message.first_packet, connection.id, *ends, asks, name, details)


def _json(events: Sequence[FollowEvent], files: Sequence[str]) -> Iterator[dict[str, Any]]:
    before_ns: int | None = None
    for event in events:
        yield follow_event_json(event, before_ns, files)
        before_ns = event.timestamp_ns
