"""What functions of plugins may answer, how much of it, and the checked copy that is kept of it."""

from __future__ import annotations

import getpass
import os
from typing import Any, NamedTuple

from kwiresniff.base.body_members import REDACTED
from kwiresniff.errors import PluginError
from kwiresniff.model import Problem

#: Deeper than any record anyone reads; keeps a hostile value from exhausting the stack of whoever prints it.
MAX_JSON_DEPTH = 64
#: Values in one answer. A list takes two bytes in JSON and thirty times as much here.
MAX_JSON_VALUES = 100_000
#: Values in the answers about the records of one record set, which are all held until it is printed.
MAX_DECODED_VALUES = 1_000_000
#: So many characters of text count as a value; a decoder may undo a compression.
CHARS_A_VALUE = 256
#: Characters of the schema and of the reason that a ``DoesNotFit`` gives: a person reads them.
MAX_REASON_CHARS = 200


class Decoded(NamedTuple):
    """An answer of a value decoder with the ``schema`` and ``format`` by which the bytes were read."""

    data: Any
    schema: str | int | None = None
    format: str | None = None


class DoesNotFit(PluginError):
    """Raised by a value decoder when bytes do not fit the ``schema`` they name: the writer is at fault."""

    def __init__(self, schema: object, why: object = "") -> None:
        self.schema = str(schema)[:MAX_REASON_CHARS]
        self.why = str(why)[:MAX_REASON_CHARS]
        super().__init__(f"does not fit {self.schema}: {self.why}")


class TooMuch(PluginError):
    """An answer that would take too much to hold or to print."""


class NotStarted(PluginError):
    """The process of an isolated decoder does not start, or does not load the plugin; nor will it the next time."""


def checked_copy(found: Any, room: list[int] | None) -> Any:
    """A copy of a decoder's answer, counted against the ``room`` that there is for all answers together, if any."""
    if room is None:
        room = [MAX_JSON_VALUES]
    given = min(room[0], MAX_JSON_VALUES)
    left = [given]
    if isinstance(found, Decoded):
        copy: Any = Decoded(_json_ready(found.data, 0, left), _name(found.schema, left), _name(found.format, left))
    else:
        copy = _json_ready(found, 0, left)
    room[0] -= given - left[0]
    return copy


def decoded_member(plugin: str, found: Any) -> dict[str, Any]:
    """The member ``decoded`` of a record: the plugin's name, format and schema, and the data."""
    if not isinstance(found, Decoded):
        return {"plugin": plugin, "data": found}
    member: dict[str, Any] = {"plugin": plugin}
    if found.format is not None:
        member["format"] = found.format
    if found.schema is not None:
        member["schema"] = found.schema
    member["data"] = found.data
    return member


def redacted_member(member: dict[str, Any], left: Any) -> dict[str, Any] | None:
    """The redacted ``decoded_member``, without the schema's name, which may be a record's word, or None."""
    if left is None:
        return None
    format = {"format": member["format"]} if "format" in member else {}
    return {"plugin": member["plugin"], **format, REDACTED: True, "data": left}


def checked_problem(problem: Problem) -> Problem:
    """A problem as it is, if what it says is what a problem says; else PluginError."""
    if not (isinstance(problem.code, str) and isinstance(problem.message, str) and isinstance(problem.path, str)):
        raise PluginError("a problem's code, message and path are texts")
    if not all(one is None or isinstance(one, int) for one in problem[2:3] + problem[4:6]):
        raise PluginError("a problem's offset, packet and time are integers")
    if not isinstance(problem.details, dict | None):
        raise PluginError("a problem's details are a dict")
    return problem._replace(details=json_ready(problem.details))


def json_ready(value: Any, left: list[int] | None = None) -> Any:
    """A copy of JSON values and bytes, at most ``left``; raises TooMuch, or PluginError for other types."""
    return _json_ready(value, 0, [MAX_JSON_VALUES] if left is None else left)


def out_of_reach(path: str) -> str:
    """Who may not use ``path`` and what to do, for ``sniff``, which has given up root; empty where it may be used."""
    if os.access(path, os.X_OK):
        return ""
    return f"the user {getpass.getuser()} may not use {path}; -Z USER names one who may, -Z root goes on as root"


def described(error: BaseException) -> str:
    """An error of a plugin by its class and its text, as far as that can be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, which does not say why"


def _name(value: Any, left: list[int]) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise PluginError(f"a schema or format is a text or a number, not {type(value).__name__}")
    return _json_ready(value, 0, left)


def _json_ready(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0:
        raise _too_many()
    if depth > MAX_JSON_DEPTH:
        raise TooMuch(f"nested deeper than {MAX_JSON_DEPTH} levels")
    if isinstance(value, str | bytes):
        left[0] -= len(value) // CHARS_A_VALUE
        if left[0] < 0:
            raise _too_many()
        return value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): _json_ready(member, depth + 1, left) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_json_ready(member, depth + 1, left) for member in value]
    raise PluginError(f"{type(value).__name__} has no JSON form")


def _too_many() -> TooMuch:
    return TooMuch(
        f"of more than {MAX_JSON_VALUES} values, or {MAX_DECODED_VALUES} together; "
        f"{CHARS_A_VALUE} characters of a text count as one more"
    )
