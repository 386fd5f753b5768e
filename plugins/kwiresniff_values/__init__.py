"""Decoders of the formats that keys and values of records are in, and of the schemas that they name.

A plugin of kwiresniff that comes with it. It is loaded where ``--schemas`` or ``--value-format`` is given, because it
has every record read. docs/values.md is for its users. Each format is read by the library made for it, which the extra
``values`` installs; what is here finds out the format and the schema, and keeps hostile bytes from the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kwiresniff_values.apicurio import PATH, Apicurio
from kwiresniff_values.decoder import ValueDecoder
from kwiresniff_values.folder import Folder
from kwiresniff_values.formats import Formats
from kwiresniff_values.registry import Registry
from kwiresniff_values.schema_server import SchemaServer
from kwiresniff_values.schemas import Source
from kwiresniff_values.tracing import annotate


def source_of(place: str) -> Source:
    """The registry at a URL, or the folder or file of a path; raises Unusable."""
    if "://" not in place:
        return Folder(place)
    server = SchemaServer(place)
    return Apicurio(server) if server.url.endswith(PATH) else Registry(server)


def register(hooks: Any) -> None:
    """Called once when the plugin is loaded; raises PluginError where the options are wrong."""
    places: Sequence[str] = hooks.options.schemas
    decoder = ValueDecoder([source_of(place) for place in places], Formats(hooks.options.value_formats))
    decoder.check()
    hooks.value_decoder(decoder, name="values")
    hooks.annotator(annotate, name="traces")
