"""Results into files: JSON Lines, JSON, CSV and Parquet, plain or compressed."""

from kwiresniff.export.encode import bytes_json, json_line, json_text
from kwiresniff.export.json_objects import connection_json, event_json, exchange_json, problem_json, stat_json
from kwiresniff.export.output import Output
from kwiresniff.export.times import rfc3339
from kwiresniff.export.writers import WRITERS, JsonArrayWriter, JsonLinesWriter, Writer, format_of

__all__ = [
    "WRITERS",
    "JsonArrayWriter",
    "JsonLinesWriter",
    "Output",
    "Writer",
    "bytes_json",
    "connection_json",
    "event_json",
    "exchange_json",
    "format_of",
    "json_line",
    "json_text",
    "problem_json",
    "rfc3339",
    "stat_json",
]
