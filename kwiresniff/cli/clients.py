"""``kwiresniff clients``: who talks to which broker, with what."""

from __future__ import annotations

from kwiresniff.cli.collect import FORMS_OF_ROWS, print_objects
from kwiresniff.cli.inventory import collect, writer
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.export.clients import client_json
from kwiresniff.render.clients import client_columns
from kwiresniff.render.one_line import write_lines
from kwiresniff.render.terminal import stdout_for


@capture_command("clients")
@form_option(FORMS_OF_ROWS)
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """Who talks to which broker: software, versions, topics, groups, user, TLS.

    One entry for each client id, address, broker, software and user. The software is what the client says of itself
    in ApiVersions (v3 and newer). Nodes of the cluster that talk to each other are told as such.
    """
    found = collect(captures, options)
    if form == "table":
        writer(found.source).clients(found.clients)
    elif form == "lines":
        write_lines(*stdout_for(options.color), found.clients, client_columns)
    else:
        print_objects((client_json(one, found.source.files) for one in found.clients), form)
    return found.end()
