"""Click's form of the commands, which it needs for help, mistakes, completion and unusual command lines.

Commands that read captures are made of their definitions (``options``); the others are click's own. Subcommands are
imported on use.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from kwiresniff.base.light_typing import TYPE_CHECKING, Any, NoReturn
from kwiresniff.base.process_memory import collect_from_here
from kwiresniff.cli.help import COMMANDS, HELP_OF_HELP, help_text, version_text
from kwiresniff.cli.options import (
    OF_TRAFFIC,
    CaptureCommand,
    Choice,
    Kind,
    Number,
    Option,
    ReadOptions,
    port_option,
)
from kwiresniff.cli.outcomes import INTERRUPTED, UsageMistake, exit_code, outcome, reader_left, usage

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only in newer releases of click

#: Set in ``Context.meta`` by ``-v``: errors come with their traceback.
TRACEBACK = "kwiresniff.traceback"
#: What click itself raises and deals with.
_OF_CLICK = (click.ClickException, click.exceptions.Exit, click.Abort)


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


def _print_help(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _add_help(command: click.Command) -> None:
    """Give a command its ``--help``: click looks in catalogues of translations for the text of its own."""
    option = click.option(
        "-h", "--help", is_flag=True, is_eager=True, expose_value=False, callback=_print_help, help=HELP_OF_HELP
    )
    option(command)
    command.add_help_option = False


class CommandGroup(SuggestingGroup):
    """A group that imports a subcommand when it is used and turns every failure into one line and an exit code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _add_help(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = import_module(f"kwiresniff.cli.{name}").command
        collect_from_here()
        return _as_click(command) if isinstance(command, CaptureCommand) else command

    def get_help(self, ctx: click.Context) -> str:
        return help_text()

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Runs and exits; never returns, never shows a traceback unasked."""
        kwargs.setdefault("prog_name", "kwiresniff")
        kwargs["standalone_mode"] = False
        sys.exit(exit_code(lambda: self._main(*args, **kwargs)))

    def _main(self, *args: Any, **kwargs: Any) -> object:
        try:
            return super().main(*args, **kwargs)
        except click.UsageError as error:
            return usage(error.ctx.command_path if error.ctx else "kwiresniff", error.format_message())
        except click.Abort:
            return INTERRUPTED
        except SystemExit as error:
            if not isinstance(error.__context__, BrokenPipeError):
                raise
            return reader_left()  # click found it first, while printing help

    def invoke(self, ctx: click.Context) -> Any:
        """What the subcommand returns."""
        work = super().invoke
        return outcome(lambda: work(ctx), lambda: bool(ctx.meta.get(TRACEBACK)), _OF_CLICK)


def remember_traceback(ctx: click.Context, param: click.Parameter, value: int) -> int:
    """The callback of ``-v``: errors come with their traceback."""
    if value:
        ctx.meta[TRACEBACK] = True
    return value


class SharedOption(click.Option):
    """An option that commands which read traffic have in common; ``--help`` shows them apart."""


class TrafficCommand(click.Command):
    """A command whose ``--help`` shows its own options first and the shared ones in a section of their own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _add_help(self)

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


class KindType(ParamType):
    """The type of an option whose text has to be of a kind of ours."""

    def __init__(self, kind: Kind) -> None:
        self.name = kind.name
        self._convert = kind.convert

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # converted before
            return value
        try:
            return self._convert(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _as_click(command: CaptureCommand) -> TrafficCommand:
    def run(**values: Any) -> int:
        try:
            return command.call(values)
        except UsageMistake as mistake:
            raise click.UsageError(str(mistake)) from mistake

    params: list[click.Parameter] = [click.Argument(["captures"], metavar="CAPTURE...", nargs=-1)]
    params += (_click_option(one, SharedOption if one not in command.own else click.Option) for one in command.options)
    return TrafficCommand(command.name, callback=run, params=params, help=command.run.__doc__)


def _click_option(option: Option, kind: type[click.Option]) -> click.Option:
    given: dict[str, Any] = {"metavar": option.metavar, "help": option.help, "hidden": option.hidden}
    if option.default is not None:
        given["default"] = option.default
    if option.is_flag:
        given["is_flag"] = True
    elif option.counts:
        given.update(count=True, callback=remember_traceback)
    else:
        given.update(type=_type(option.kind), multiple=option.multiple, required=option.required)
    return kind([*option.flags, option.name], show_default=option.show_default, envvar=option.environment, **given)


def _type(kind: Kind | None) -> ParamType | None:
    if isinstance(kind, Choice):
        return click.Choice(kind.words)
    if isinstance(kind, Number):
        return click.IntRange(kind.low, kind.high)
    return None if kind is None else KindType(kind)


def live_options(command: TrafficCommand) -> TrafficCommand:
    """Adds the shared options to a command that reads a network; it receives one ``options: ReadOptions``."""
    work = command.callback
    assert work is not None

    def run(**values: Any) -> Any:
        given = {name: values.pop(name) for name in ReadOptions._fields if name in values}
        return work(options=ReadOptions(**given), **values)

    port = port_option("Only packets to or from this port, chosen in the kernel; may be repeated.")
    command.params += (_click_option(one, SharedOption) for one in (port, *OF_TRAFFIC))
    command.callback = run
    return command


def _print_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(version_text())
        ctx.exit()


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version)
def group() -> None:
    """Sniffs Kafka's wire protocol."""
