"""``kwiresniff clients``: who talks to which broker, with what."""

from __future__ import annotations

import click

from kwiresniff.cli.collect import FORMS_OF_ROWS, print_json
from kwiresniff.cli.inventory import collect, writer
from kwiresniff.cli.options import ReadOptions, TrafficCommand, capture_options


@click.command("clients", cls=TrafficCommand)
@click.option("-o", "form", type=click.Choice(FORMS_OF_ROWS), default="table", show_default=True)
@capture_options
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """Who talks to which broker: software, versions, topics, groups, user, TLS.

    One entry for each client id, address, broker, software and user. The software is what the client says of itself
    in ApiVersions (v3 and newer). Nodes of the cluster that talk to each other are told as such.
    """
    found = collect(captures, options)
    if form == "table":
        writer(found.source).clients(found.clients)
    elif form == "lines":
        from kwiresniff.cli.rows import print_rows
        from kwiresniff.render.one_line import client_columns

        print_rows(found.clients, client_columns, options)
    else:
        from kwiresniff.export.clients import client_json

        print_json((client_json(one, found.source.files) for one in found.clients), form)
    return found.end()
