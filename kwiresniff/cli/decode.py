"""``kwiresniff decode``: messages from hex, base64, dumps and literals, or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kwiresniff.cli.click_commands import ParamType, remember_traceback
from kwiresniff.cli.dumps import NotationError, lines_beside
from kwiresniff.cli.notations import NAMES, NOTATIONS, readings
from kwiresniff.cli.options import MAX_DECOMPRESSED
from kwiresniff.cli.outcomes import FAILED, one_line
from kwiresniff.codec.record_limits import decompress_always
from kwiresniff.errors import DecodeError, KwiresniffError, SchemaError
from kwiresniff.export.encode import json_line
from kwiresniff.export.json_objects import single_json
from kwiresniff.export.output import Output
from kwiresniff.render.terminal import stdout_for
from kwiresniff.render.tree import TreeWriter
from kwiresniff.schema.apis import find_api
from kwiresniff.session.annotation import dissect_message
from kwiresniff.session.standalone import decode_messages, is_clean

if TYPE_CHECKING:
    from kwiresniff.model import Direction, Exchange
    from kwiresniff.session.standalone import Start

#: The longest frame that a connection is taken to carry, twice, for hex.
MAX_INPUT_BYTES = 2 * (128 << 20)
#: Of a text that is in no known notation, so much is shown.
_SHOWN_CHARS = 30


class _Api(ParamType):
    name = "api"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        try:
            return find_api(int(text) if text.isascii() and text.removeprefix("-").isdecimal() else text).key
        except KwiresniffError as error:
            self.fail(str(error), param, ctx)


@click.command("decode")
@click.argument("data", required=False)
@click.option("--file", "file", metavar="FILE", help="Read the message from a file, or '-' for standard input.")
@click.option("--api", type=_Api(), metavar="API", help="Name or key; a request with its header tells it itself.")
@click.option("--version", type=int, metavar="N", help="Its version.")
@click.option("--request", "direction", flag_value="request", default="request", help="It is a request  [default].")
@click.option("--response", "direction", flag_value="response", help="It is a response.")
@click.option(
    "--from",
    "start",
    type=click.Choice(["length", "header", "body"]),
    help="What the bytes begin with  [default: what fits].",
)
@click.option(
    "--input",
    "form",
    type=click.Choice(["auto", *NOTATIONS, "raw"]),
    default="auto",
    show_default=True,
    help="How DATA or the file is written.",
)
@click.option("-o", "output", type=click.Choice(["tree", "json"]), default="tree", show_default=True)
@click.option("--show-secrets", is_flag=True, help="Print SASL, SCRAM, token and config secrets too.")
@MAX_DECOMPRESSED
@click.option("-v", "verbose", count=True, callback=remember_traceback, help="Offsets and headers; -vv bytes too.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours.")
def command(
    data: str | None,
    file: str | None,
    api: int | None,
    version: int | None,
    direction: Direction,
    start: Start | None,
    form: str,
    output: str,
    show_secrets: bool,
    max_decompressed: int | None,
    verbose: int,
    color: str,
) -> int:
    """Messages from hex, base64, dumps and literals, or a file.

    DATA is hex (colons, commas, dashes, spaces and 0x are fine), base64, a dump (hexdump, xxd, od, tcpdump -x and -X,
    Wireshark), a byte array (C, Go, Java, Python, JavaScript), an escaped string, or packets in such a dump. Several
    messages, each with its length, are decoded one after another. A request that begins with its header says what it
    is; for everything else give --api and --version. The exit code is 1 when a message does not decode to its last
    byte.

    \b
        kwiresniff decode 00120000000000010003636c69
        kwiresniff decode --api Metadata --version 9 --response --file body.bin
    """
    decompress_always(max_decompressed)
    notations, where, left_out = _readings(data, file, form)
    found, notation, others = _best(
        notations, lambda data: decode_messages(data, direction, api, version, start, show_secrets=show_secrets)
    )
    if notation == "dump" and left_out:
        lines = "1 line that belongs" if left_out == 1 else f"{left_out} lines that belong"
        print(f"kwiresniff: {where}: {lines} to no dump left out", file=sys.stderr)
    if notation == "packet" and sum(name == "packet" for name, _ in notations) > 1:
        print(
            f"kwiresniff: {where} has packets of more connections or directions than the one decoded; text2pcap makes "
            "a capture of them for kwiresniff read",
            file=sys.stderr,
        )
    elif others:
        names = ", ".join(sorted(others))
        print(f"kwiresniff: {where} is read as {notation}; as {names} it would fit as well: --input", file=sys.stderr)
    if output == "json":
        with Output("-") as out:
            for one in found:
                out.stream.write(json_line(single_json(one, direction)))
    else:
        for one in found:
            _draw(one, direction, show_secrets, verbose, color)
    return 0 if all(map(is_clean, found)) else FAILED


def _best(
    notations: list[tuple[str, bytes]], read: Callable[[bytes], list[Exchange]]
) -> tuple[list[Exchange], str, set[str]]:
    """The messages of the first bytes that decode to their end, else of the first that decode in part; their notation;
    and the other notations in which the text stands for bytes that decode as well.

    Raises DecodeError or SchemaError where none decode.
    """
    whole: list[tuple[list[Exchange], str]] = []
    part: list[tuple[list[Exchange], str]] = []
    trouble: DecodeError | SchemaError | None = None
    for name, data in notations:
        try:
            found = read(data)
        except (DecodeError, SchemaError) as error:
            if trouble is None and name not in ("hex", "raw"):
                error = type(error)(f"read as {name}: {error}")
            trouble = trouble or error
            continue
        (whole if all(map(is_clean, found)) else part).append((found, name))
    candidates = whole or part
    if not candidates:
        assert trouble is not None
        raise trouble
    return *candidates[0], {name for _, name in candidates[1:]}


def _draw(exchange: Exchange, direction: Direction, show_secrets: bool, verbose: int, color: str) -> None:
    dissection = dissect_message(exchange, direction, show_secrets=show_secrets)
    assert dissection is not None
    TreeWriter(*stdout_for(color), verbose).write_message(exchange, direction, dissection)


def _readings(data: str | None, file: str | None, form: str) -> tuple[list[tuple[str, bytes]], str, int]:
    """The bytes that the input may stand for, each with its notation; the input's name; its lines outside of dumps."""
    if (data is None) == (file is None):
        raise click.UsageError("give the message as DATA or with --file FILE, '-' for standard input")
    if data is not None:
        raw = data.encode("utf-8", "surrogateescape")
        if form == "raw":
            raise click.UsageError("--input raw needs --file")
    elif file == "-":
        try:
            raw = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard input") from None
    else:
        assert file is not None
        with Path(file).open("rb") as stream:
            raw = stream.read(MAX_INPUT_BYTES + 1)
    where = {None: "the DATA given", "-": "standard input"}.get(file) or str(file)
    if len(raw) > MAX_INPUT_BYTES:
        raise click.UsageError(f"{where}: more than {MAX_INPUT_BYTES >> 20} MB, which no message has")
    if not raw.strip() and form != "raw":
        raise click.UsageError(f"{where} is empty")
    text = _text(raw) if form != "raw" else None
    if text is None:
        if form not in ("raw", "auto") or data is not None:
            raise click.UsageError(f"{where} is not text; --file with --input raw reads bytes")
        return [("raw", raw)], where, 0
    try:
        found = readings(text) if form == "auto" else [(form, one) for one in NOTATIONS[form](text) if one]
    except NotationError as error:
        raise click.UsageError(f"{where}: {error}") from None
    if not found:
        known = f"a notation that is known: {NAMES}" if form == "auto" else form
        raise click.UsageError(f"{where} is not {known}; it begins {one_line(repr(text.strip()[:_SHOWN_CHARS]))}")
    return found, where, lines_beside(text)


def _text(raw: bytes) -> str | None:
    """Text in UTF-8, or in UTF-16 with its mark, as PowerShell writes it; None for other bytes."""
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text if all(one.isprintable() or one in "\t\r\n\f" for one in set(text)) else None
