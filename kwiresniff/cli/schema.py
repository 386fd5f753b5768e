"""``kwiresniff schema``: the protocol as data. Browse it, extend it, verify it against a release of Kafka."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kwiresniff.cli.click_commands import SuggestingGroup
from kwiresniff.errors import SchemaError
from kwiresniff.render.tables import plain_table
from kwiresniff.render.terminal import console
from kwiresniff.schema.apis import DATA, apis, data_index, find_api
from kwiresniff.schema.check import differences
from kwiresniff.schema.enums import API_KEY
from kwiresniff.schema.grammar import grammar
from kwiresniff.schema.importer import (
    in_order_of_age,
    merge_sources,
    read_files,
    read_releases,
    read_source,
    write_files,
)
from kwiresniff.schema.index import Api
from kwiresniff.schema.registry import definitions
from kwiresniff.schema.release_table import FILE, release_history, with_release
from kwiresniff.schema.resolve import resolve
from kwiresniff.schema.types import MessageVersion, WireField

DIRECTIONS = ("request", "response")
HEADERS = {"RequestHeader": "request", "ResponseHeader": "response"}
SOURCE = click.Path(exists=True, path_type=Path)


@click.group("schema", cls=SuggestingGroup, no_args_is_help=False)
def command() -> None:
    """The protocol as data: browse it, extend it, verify it."""


@command.command("list")
@click.option("-o", "form", type=click.Choice(["table", "jsonl", "json"]), default="table", show_default=True)
def list_command(form: str) -> None:
    """Every API in every version that any release of Kafka has had."""
    rows = [_row(api) for api in apis()]
    if form != "table":
        _write_json(rows, form)
        return
    titles = ("key", "name", "versions", "flexible", "added", "removed", "older names")
    cells = [
        (
            row[API_KEY],
            row["api"],
            "-".join(map(str, row["versions"])),
            None if row["flexible_from"] is None else f"{row['flexible_from']}+",
            row["added"],
            row["removed"] or "",
            ", ".join(row["aliases"]),
        )
        for row in rows
    ]
    console().print(plain_table(titles, cells, right=["key"]))


def _row(api: Api) -> dict[str, Any]:
    history = release_history(api.key)
    return {
        "api_key": api.key,
        "api": api.name,
        "versions": list(api.versions),
        "flexible_from": api.flexible_from,
        "listeners": list(api.listeners),
        "added": history[0][0] if history else None,
        "removed": history[-1][0] if history and history[-1][1] is None else None,
        "aliases": list(api.aliases),
    }


@command.command("show")
@click.argument("api", required=False)
@click.option("--version", type=int, help="Only this version.")
@click.option("--request", "request", is_flag=True, help="Only the request.")
@click.option("--response", "response", is_flag=True, help="Only the response.")
@click.option("-o", "form", type=click.Choice(["grammar", "json", "jsonl"]), default="grammar", show_default=True)
def show_command(api: str | None, version: int | None, request: bool, response: bool, form: str) -> None:
    """Messages as grammars or JSON, those of all APIs by default.

    API is a name, an older name or a key; or RequestHeader, ResponseHeader, or the name of something carried inside
    messages or stored in logs, such as ConsumerProtocolSubscription; or one of Kafka's definitions, a .json file.
    """
    only = tuple(one for one, wanted in zip(DIRECTIONS, (request, response), strict=True) if wanted)
    messages = _messages(api, version, only or DIRECTIONS)
    if form == "grammar":
        print("\n\n".join(map(grammar, messages)))
    else:
        _write_json((_message_json(message) for message in messages), form)


def _is_key(text: str) -> bool:
    """Whether an API is given by its key."""
    return text.isascii() and text.removeprefix("-").isdecimal()


def _messages(api: str | None, version: int | None, directions: tuple[str, ...]) -> Iterator[MessageVersion]:
    """The messages that were asked for; raises SchemaError when there are none."""
    if api is not None and api.endswith(".json"):
        found = [message for message in read_source(Path(api)) if version is None or version in message.versions]
    elif api is not None and api in data_index().files:
        found = [message for message in definitions(data_index().files[api]) if message.name == api]
    elif api in HEADERS:
        found = [message for message in definitions("headers") if message.name == HEADERS[api]]
    else:
        chosen = [find_api(int(api) if _is_key(api) else api)] if api is not None else apis()
        found = [
            message
            for one in chosen
            for direction in directions
            for message in definitions(one.name)
            if message.kind == direction and (api is not None or version is None or version in message.versions)
        ]
    if not found:
        lacking = f"{api} has no version" if api else "no API has a version"
        raise SchemaError(f"{lacking} {version}; see: kwiresniff schema list")
    for message in found:
        low, high = message.versions
        for number in range(low, high + 1) if version is None else (version,):
            yield resolve(message, number)


def _message_json(message: MessageVersion) -> dict[str, Any]:
    return {
        "api": message.name,
        "api_key": message.api_key if message.api_key >= 0 else None,
        "direction": message.kind,
        "version": message.version,
        "flexible": message.flexible,
        "header_version": message.header_version if message.header_version >= 0 else None,
        "fields": [_field_json(field) for field in message.fields],
    }


def _field_json(field: WireField) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": field.type,
        "array": field.array,
        "nullable": field.nullable,
        "tag": field.tag,
        "fields": [_field_json(inner) for inner in field.fields],
    }


def _write_json(rows: Any, form: str) -> None:
    if form == "json":
        json.dump(list(rows), sys.stdout, indent=2)
        print()
        return
    for row in rows:
        print(json.dumps(row, separators=(",", ":")))


@command.command("import")
@click.argument("sources", metavar="JAR|FOLDER|JSON...", nargs=-1, required=True, type=SOURCE)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Where to write  [default: our own].")
def import_command(sources: tuple[Path, ...], out: Path | None) -> None:
    """Write definition files from Kafka's official ones.

    They are JSON, in the jars of a release, in folders, or single files. Several sources are releases: by number when
    their names tell one, else from the oldest to the newest as given. What the folder already holds counts as the
    oldest release, so versions that Kafka dropped stay. The table of releases, where the folder has one, learns what
    the brokers of a new release offer from its kafka-clients jar.
    """
    folder, paths = out or Path(DATA), in_order_of_age(sources)
    releases = [read_files(folder), *(read_source(path) for path in paths)]
    files = merge_sources(releases)
    offered = read_releases(paths)
    write_files(files, folder)
    if (table := folder / FILE).is_file():
        for release, ranges in offered.items():
            table.write_text(with_release(table.read_text("utf-8"), release, ranges), "utf-8")
    messages = sum(len(held) for held in files.values())
    versions = sum(held.versions.high - held.versions.low + 1 for file in files.values() for held in file)
    print(f"{folder}: {len(files)} files, {messages} messages in {versions} versions")


@command.command("check")
@click.argument("source", metavar="JAR|FOLDER|JSON", type=SOURCE)
@click.option("-v", "verbose", is_flag=True, help="Also what later releases changed in place, and why it is known.")
def check_command(source: Path, verbose: bool) -> int:
    """Compare our definitions with a release of Kafka.

    Exit code 1 when anything differs. Compared are names, order, types, nullability, tags, defaults and flexible
    versions of every message in every version that the release has.
    """
    messages = [message for message in read_source(source) if message.versions]
    found = known = 0
    for difference in differences(messages):
        if not difference.reason:
            print(difference.text)
            found += 1
            continue
        known += 1
        if verbose:
            print(f"{difference.text} (known: {difference.reason})")
    versions = sum(message.versions.high - message.versions.low + 1 for message in messages)
    changed = f", {known} more that later releases made in place (-v)" if known else ""
    print(f"{len(messages)} messages in {versions} versions, {found} differences{changed}", file=sys.stderr)
    return 1 if found else 0
