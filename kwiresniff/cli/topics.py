"""``kwiresniff topics``: topic first, who produces, who consumes, how far behind they are."""

from __future__ import annotations

from kwiresniff.analysis.named import topic_with_names
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.cli.collect import FORMS_OF_ROWS, end, print_objects, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.export.topics import topic_json
from kwiresniff.render.one_line import write_lines
from kwiresniff.render.terminal import stdout_for
from kwiresniff.render.topic_blocks import TopicWriter, topic_columns


@capture_command("topics")
@form_option(FORMS_OF_ROWS)
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """Topic first: producers, consumers, groups, rates, lag, errors, time from produce to consume.

    Lag is the high watermark less what a consumer fetches next, and less what its group has committed. The time from
    produce to consume is that from a Produce response to the Fetch response that carries the batch, where the capture
    has both.
    """
    source = EventSource(captures, options, TopicTraffic.NEEDS, screen=False)
    traffic = TopicTraffic(source.topic_name, source.clusters)
    finished, messages = read_through(source, traffic.exchange)
    found = [topic_with_names(topic, source.names) for topic in traffic.topics()]
    if form == "table":
        TopicWriter(*stdout_for(options.color)).topics(found)
    elif form == "lines":
        write_lines(*stdout_for(options.color), found, topic_columns)
    else:
        print_objects(map(topic_json, found), form)
    left_out = f"{traffic.left_out} names or rows found no room and are not listed" if traffic.left_out else ""
    return end(source, finished, messages, left_out)
