"""``kwiresniff groups``: what happened in consumer, share and streams groups."""

from __future__ import annotations

import sys

from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.cli.collect import FORMS, end, print_objects, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.export.groups import group_event_json
from kwiresniff.render.groups import GroupWriter
from kwiresniff.render.terminal import stdout_for


@capture_command("groups")
@form_option(FORMS)
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """What happened in each group: joins, assignments, commits, leaves, errors.

    Groups of both rebalance protocols, share groups and streams groups. Heartbeats that say nothing new are left out,
    and commits of one member in a row are one line. One group alone: -Y 'group == NAME'.
    """
    source = EventSource(captures, options, GroupTimeline.NEEDS, screen=False)
    timeline = GroupTimeline(source.topic_name, source.clusters)

    finished, messages = read_through(source, timeline.add)
    found = timeline.events()
    if form == "table":
        GroupWriter(*stdout_for(options.color), source.files).write(found)
    else:
        print_objects((group_event_json(event, source.files) for event in found), form)
    left_out = forgotten = ""
    if timeline.left_out:
        left_out = f"{timeline.left_out} older events are left out; narrow it with -Y or --since"
    if timeline.forgotten:
        forgotten = f"what members had was forgotten {timeline.forgotten} times, so that what came next looks all new"
        forgotten += "; narrow it with -Y or --since"
    code = end(source, finished, messages, left_out, forgotten)
    if finished and source.shown and not found and not options.quiet:
        print("kwiresniff: there was Kafka, but nothing about groups", file=sys.stderr)
    return code
