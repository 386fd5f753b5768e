"""``kwiresniff flows``: who produces to what, who consumes it, in which group."""

from __future__ import annotations

import sys

from kwiresniff.analysis.flow_picture import picture_of
from kwiresniff.analysis.flows import flows_of
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.cli.collect import end, print_objects, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.export.flows import record_flow_json
from kwiresniff.identity.addresses import AddressBook
from kwiresniff.model import Exchange
from kwiresniff.render.flow_graphs import graphviz, mermaid
from kwiresniff.render.flow_table import write_flows
from kwiresniff.render.terminal import printable, stdout_for

FORMS = ("table", "csv", "json", "jsonl", "dot", "mermaid")
_GRAPHS = {"dot": graphviz, "mermaid": mermaid}


@capture_command("flows")
@form_option(FORMS)
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """Who produces to which topic, who consumes it, in which group.

    A picture of it: -o dot for Graphviz, -o mermaid for Markdown. Arrows are as wide as many bytes went through, red
    where something went wrong, orange where consumers lag behind. Where there are too many clients, those that are
    alike are one, with their number; JSON has them all. Zones are those that clients and brokers name (client.rack,
    broker.rack); what brokers fetch from each other is in the table and in JSON, and in no picture.
    """
    source = EventSource(captures, options, TopicTraffic.NEEDS, screen=False)
    traffic, book = TopicTraffic(source.topic_name, source.clusters), AddressBook(source.names)

    def take(exchange: Exchange) -> None:
        book.exchange(exchange)
        traffic.exchange(exchange)

    finished, messages = read_through(source, take)
    found = flows_of(traffic.topics(), book)
    not_shown = 0
    if form in ("csv", "json", "jsonl"):
        print_objects(map(record_flow_json, found), form)
    elif form == "table":
        picture = picture_of(found)
        not_shown = picture.left_out
        write_flows(*stdout_for(options.color), picture)
    else:
        picture = picture_of([flow for flow in found if flow.role != "replica"])
        sys.stdout.writelines(printable(line + "\n", sys.stdout) for line in _GRAPHS[form](picture))
    shown = f"{not_shown} smaller flows are not shown; -o json has them all" if not_shown else ""
    left_out = f"{traffic.left_out} names or rows found no room and are not listed" if traffic.left_out else ""
    return end(source, finished, messages, shown, left_out)
