"""``kwiresniff decode``: one message from hex, base64 or a file."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from pathlib import Path

import click

from kwiresniff.base.light_typing import TYPE_CHECKING
from kwiresniff.cli.click_commands import ParamType, remember_traceback
from kwiresniff.cli.outcomes import FAILED
from kwiresniff.errors import KwiresniffError
from kwiresniff.schema.apis import find_api

if TYPE_CHECKING:
    from kwiresniff.model import Direction, Exchange
    from kwiresniff.session.standalone import Start

#: The longest frame that a connection is taken to carry, twice, for hex.
MAX_INPUT_BYTES = 2 * (128 << 20)

_HEX = re.compile(rb"(?:0[xX])?[0-9a-fA-F\s:,]*")
_SEPARATORS = re.compile(rb"[\s:,]|0[xX]")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")


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
    type=click.Choice(["auto", "hex", "base64", "raw"]),
    default="auto",
    show_default=True,
    help="How DATA or the file is written.",
)
@click.option("-o", "output", type=click.Choice(["tree", "json"]), default="tree", show_default=True)
@click.option("--show-secrets", is_flag=True, help="Print SASL, SCRAM, token and config secrets too.")
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
    verbose: int,
    color: str,
) -> int:
    """One message from hex, base64 or a file.

    DATA is hex (colons, commas, spaces and 0x are fine) or base64. A request that begins with its header says what it
    is; for everything else give --api and --version. The exit code is 1 when the message does not decode to its last
    byte.

    \b
        kwiresniff decode 00120000000000010003636c69
        kwiresniff decode --api Metadata --version 9 --response --file body.bin
    """
    from kwiresniff.session.standalone import decode_message

    found = decode_message(_bytes(data, file, form), direction, api, version, start, show_secrets=show_secrets)
    if output == "json":
        from kwiresniff.export import Output, json_line
        from kwiresniff.export.json_objects import single_json

        with Output("-") as out:
            out.stream.write(json_line(single_json(found, direction)))
    else:
        _draw(found, direction, show_secrets, verbose, color)
    return FAILED if found.problems else 0


def _draw(exchange: Exchange, direction: Direction, show_secrets: bool, verbose: int, color: str) -> None:
    from kwiresniff.render import TreeWriter, stdout_for
    from kwiresniff.session import dissect_message

    dissection = dissect_message(exchange, direction, show_secrets=show_secrets)
    assert dissection is not None
    TreeWriter(*stdout_for(color), verbose).write_message(exchange, direction, dissection)


def _bytes(data: str | None, file: str | None, form: str) -> bytes:
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
    where = file if file is not None else "the DATA given"
    if len(raw) > MAX_INPUT_BYTES:
        raise click.UsageError(f"{where}: more than {MAX_INPUT_BYTES >> 20} MB, which no message has")
    message = _parsed(raw, form, data is None)
    if message is None:
        wanted = "hex or base64" if form == "auto" else form
        raise click.UsageError(f"{where} is not {wanted}")
    if not message:
        raise click.UsageError(f"{where} is empty")
    return message


def _parsed(raw: bytes, form: str, may_be_raw: bool) -> bytes | None:
    """The bytes that the text stands for, or None when it is no such text."""
    if form == "raw":
        return raw
    text = raw.strip()
    if form in ("hex", "auto") and _HEX.fullmatch(text):
        digits = _SEPARATORS.sub(b"", text)
        if len(digits) % 2 == 0:
            return bytes.fromhex(digits.decode("ascii"))
    if form in ("base64", "auto"):
        joined = b"".join(text.split())
        if _BASE64.fullmatch(joined):
            try:
                return base64.b64decode(joined.translate(bytes.maketrans(b"-_", b"+/")) + b"=" * (-len(joined) % 4))
            except binascii.Error:
                pass
    return raw if form == "auto" and may_be_raw else None
