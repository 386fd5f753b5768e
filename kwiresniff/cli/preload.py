"""Imports of everything that a live capture may need later, done before root is given up.

Python and what it has installed may lie where only root can look, such as ``/root``; what comes up in the traffic
decides which modules and definitions are needed.
"""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from importlib import import_module

import kwiresniff
from kwiresniff.render.line_wrapping import cells
from kwiresniff.schema.apis import keep_data

#: Rooms, and parts of them, that a live capture never enters; some bring large libraries.
_ELSEWHERE = (
    "kwiresniff.__main__",
    "kwiresniff.browse",
    "kwiresniff.cli.browse",
    "kwiresniff.cli.pipeline",
    "kwiresniff.cli.pipeline_options",
    "kwiresniff.cli.pipeline_progress",
    "kwiresniff.cli.report",
    "kwiresniff.export.parquet",
    "kwiresniff.pipeline",
    "kwiresniff.render.page",
    "kwiresniff.schema.check",
    "kwiresniff.schema.importer",
)
#: Modules of others that are imported where they are used.
_OTHERS = (
    "base64",
    "binascii",
    "bz2",
    "cramjam",
    "datetime",
    "difflib",
    "encodings.idna",
    "google.protobuf.message",
    "google_crc32c",
    "ipaddress",
    "lz4.block",
    "lz4.frame",
    "opentelemetry.proto.metrics.v1.metrics_pb2",
    "orjson",
    "prometheus_client",
    "prometheus_client.core",
    "pyshark",
    "rich.box",
    "rich.cells",
    "rich.console",
    "rich.markup",
    "rich.table",
    "rich.text",
    "socketserver",
    "termios",
    "textwrap",
    "threading",
    "traceback",
    "tty",
    "wsgiref.simple_server",
    "zlib",
    "zstandard",
)

#: The same for the screen, beside what its modules import.
_OF_SCREEN = (
    "concurrent.futures.thread",
    "rich.ansi",
    "rich.traceback",
    "textual._xterm_parser",
    "textual.drivers.headless_driver",
    "textual.drivers.linux_driver",
    "textual.layouts.factory",
    "textual.layouts.stream",
    "textual.pilot",
    "textual.scrollbar",
    "textual.widgets._toast",
)
#: The same for ``--schemas`` and ``--value-format``, beside what their modules import.
_OF_VALUES = (
    "_strptime",
    "cbor2",
    "fastavro.schema",
    "google.protobuf.descriptor_pool",
    "google.protobuf.json_format",
    "google.protobuf.message_factory",
    "jsonschema.validators",
    "msgpack",
    "referencing.jsonschema",
)
#: Protobuf's own types, which schemas import.
_TYPES = "any api duration empty field_mask source_context struct timestamp type wrappers"


def _preload_values() -> None:
    import kwiresniff_values

    found = pkgutil.walk_packages(kwiresniff_values.__path__, "kwiresniff_values.")
    types = (f"google.protobuf.{name}_pb2" for name in _TYPES.split())
    for name in (*(one.name for one in found), *_OF_VALUES, *types):
        with suppress(ImportError):
            import_module(name)


def _preload_screen() -> None:
    import kwiresniff.browse

    found = pkgutil.walk_packages(kwiresniff.browse.__path__, "kwiresniff.browse.")
    for name in ("kwiresniff.cli.browse", "kwiresniff.cli.browse_jobs", *(one.name for one in found), *_OF_SCREEN):
        with suppress(ImportError):
            import_module(name)


def preload(*, screen: bool, values: bool) -> None:
    """Takes half a second, with what the screen or values need twice as long; what is not installed is left out."""
    ours = (one.name for one in pkgutil.walk_packages(kwiresniff.__path__, "kwiresniff.", lambda name: None))
    for name in (*(one for one in ours if not one.startswith(_ELSEWHERE)), *_OTHERS):
        with suppress(ImportError):
            import_module(name)
    if screen:
        _preload_screen()
    if values:
        _preload_values()
    cells("漢 ✓")  # rich loads its table of widths when it first meets what is not ASCII
    keep_data()
