"""``kwiresniff plugins``: what is loaded, from where, and what it adds."""

from __future__ import annotations

import sys

import click

from kwiresniff.cli.options import PLUGIN, SCHEMAS, VALUE_FORMAT
from kwiresniff.export.encode import json_line
from kwiresniff.plugins.hooks import PluginOptions
from kwiresniff.plugins.loading import ENTRY_POINTS, load_plugins
from kwiresniff.render.tables import plain_table
from kwiresniff.render.terminal import console


@click.command("plugins")
@PLUGIN
@SCHEMAS
@VALUE_FORMAT
@click.option("-o", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(plugin: tuple[str, ...], schemas: tuple[str, ...], value_format: tuple[str, ...], form: str) -> int:
    """What is loaded, from where, and what it adds."""
    plugins = load_plugins(plugin, PluginOptions(schemas, value_format))
    rows = [
        {"plugin": loaded.name, "origin": loaded.origin, "adds": hook.kind, "name": hook.name, "summary": hook.summary}
        for loaded in plugins.loaded
        for hook in loaded.hooks
    ]
    for problem in plugins.take_problems():
        print(f"kwiresniff: {problem.message}", file=sys.stderr)
    if form == "json":
        sys.stdout.buffer.write(json_line(rows))
    elif rows:
        screen = console()
        screen.print(plain_table(list(rows[0]), [list(row.values()) for row in rows]))
    else:
        print(f"no plugins; give a file with --plugin, or install a package with entry points in {ENTRY_POINTS!r}")
    return 0
