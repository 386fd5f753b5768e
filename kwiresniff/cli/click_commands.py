"""What the commands add to click: suggestions for misspelt commands, help in two sections, tracebacks on ``-v``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import augment_usage_errors

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only in newer releases of click

#: Set in ``Context.meta`` by ``-v``: errors come with their traceback.
TRACEBACK = "kwiresniff.traceback"


class SuggestingGroup(click.Group):
    """A group that answers a command it does not have with those that are spelt like it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that ``args`` begin with; raises UsageError where there is none."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], known, n=2, cutoff=0.55)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
            ctx.fail(f"no such command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)


class SharedOption(click.Option):
    """An option that commands which read traffic have in common; ``--help`` shows them apart."""


class TrafficCommand(click.Command):
    """A command whose ``--help`` shows its own options first and the shared ones in a section of their own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                (shared if isinstance(param, SharedOption) else own).append(record)
        for title, records in (("Options", own), ("Options shared by commands that read traffic", shared)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; a mistake that it finds in its options is told with its name."""
        with augment_usage_errors(ctx):
            return super().invoke(ctx)


def remember_traceback(ctx: click.Context, param: click.Parameter, value: int) -> int:
    """The callback of ``-v``: errors come with their traceback."""
    if value:
        ctx.meta[TRACEBACK] = True
    return value
