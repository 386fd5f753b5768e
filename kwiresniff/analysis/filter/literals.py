"""The values on the right of an operator, by the kind of field on the left.

``test`` turns an operator and its literals into a function of one value. Names of APIs and errors are the protocol's
own, so they are looked up in the schema room, the newest official names as well as older ones.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Any

from kwiresniff.analysis.filter.lexer import Token
from kwiresniff.analysis.filter.linear_search import MAX_SEARCHED_CHARS, search_function
from kwiresniff.analysis.filter.parser import TEXT_OPERATORS
from kwiresniff.analysis.parse_units import duration_ns, size_bytes, time_ns
from kwiresniff.errors import FilterError, SchemaError
from kwiresniff.model import OUTCOMES
from kwiresniff.schema import API_NAMES, api_by_name, error, error_by_name

Test = Callable[[Any], bool]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: Kinds whose values have no order that means anything.
_UNORDERED = {
    "api": "API names", "error": "errors", "outcome": "outcomes", "text": "texts", "endpoint": "addresses",
    "host": "addresses",
}  # fmt: skip


def test(field: str, kind: str, op: Token, values: tuple[Token, ...]) -> Test:
    """A function that tests one value of the field by ``op`` with any of the literals.

    ``!=`` is tested as ``==``; turning it round is left to the caller, because it is about all values of a field.
    """
    if kind == "record":  # what a record does not have passes no test
        of_value = test(field, "any", op, values)
        return lambda found: found is not None and of_value(found)
    if op.text in TEXT_OPERATORS:
        return _search(kind, op, values[0])
    if op.text in _ORDER:
        return _ordered(field, kind, op, values[0])
    if kind in ("endpoint", "host"):
        return _any_of([_endpoint(value, kind == "host") for value in values])
    if kind == "any":
        return _any_of([_equal_any(field, value) for value in values])
    wanted = frozenset(_literal(kind, value) for value in values)
    return wanted.__contains__


def is_null(value: Token) -> bool:
    """Whether the literal is the bare word ``null``: no value there at all."""
    return value.kind == "word" and value.text == "null"


def _any_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda value: any(each(value) for each in tests)


def _expected(what: str, value: Token) -> FilterError:
    return FilterError(f"expected {what}, not {value}", position=value.position)


def _ordered(field: str, kind: str, op: Token, value: Token) -> Test:
    if kind in _UNORDERED:
        raise FilterError(
            f"expected ==, !=, ~ or 'in', because {_UNORDERED[kind]} have no order, not {op}", position=op.position
        )
    limit = _number(field, value) if kind == "any" else _literal(kind, value)
    if limit is None:
        raise _expected("a number", value)
    compare = _ORDER[op.text]

    def ordered(found: Any) -> bool:
        return isinstance(found, int | float) and compare(found, limit)

    return ordered


def _search(kind: str, op: Token, value: Token) -> Test:
    if kind in ("duration", "size", "time"):
        raise FilterError(f"expected == != < <= > or >= beside a {kind}, not {op}", position=op.position)
    text_of = _TEXT_OF.get(kind, _text)
    if op.text == "contains":
        return _containing(value.text, text_of)
    try:
        search = search_function(value.text)
    except (re.error, OverflowError) as error:
        where = getattr(error, "pos", None) or 0
        # A string token starts one column before its text.
        position = value.position + where + (value.kind == "string")
        raise FilterError(f"expected a regular expression ({error})", position=position) from None
    return lambda found: search(text_of(found))


def _containing(wanted: str, text_of: Callable[[Any], str]) -> Test:
    """Whether a text, or bytes, hold another anywhere."""
    raw = wanted.encode()
    return lambda found: raw in found if isinstance(found, bytes) else wanted in text_of(found)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value[: 4 * MAX_SEARCHED_CHARS].decode("utf-8", "replace")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else ""


def _api_text(api_key: int) -> str:
    return API_NAMES.get(api_key, "")


def _error_text(code: int) -> str:
    return error(code).name


_TEXT_OF: dict[str, Callable[[Any], str]] = {"api": _api_text, "error": _error_text}


def _literal(kind: str, value: Token) -> Any:
    """The value a literal stands for beside a field of that kind; raises FilterError when it stands for none."""
    if kind == "text":
        return value.text
    if kind == "api":
        return _api_key(value)
    if kind == "error":
        return _error_code(value)
    found: Any
    if kind == "outcome":
        found, what = (value.text if value.text in OUTCOMES else None), f"one of {', '.join(OUTCOMES)}"
    elif kind == "duration":
        found, what = duration_ns(value.text), "a duration with its unit, like 100ms"
    elif kind == "size":
        found, what = size_bytes(value.text), "a size, like 512, 64kB or 1MiB"
    elif kind == "time":
        found, what = time_ns(value.text), "a time, like 2026-01-02T03:04:05Z"
    else:
        found, what = _integer(value.text), "an integer"
    if found is None:
        raise _expected(what, value)
    return found


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?\d{1,20}", text, re.ASCII) else None


def _api_key(value: Token) -> int:
    try:
        return api_by_name(value.text).key
    except SchemaError:
        raise _expected(f"an API name{_suggestion(value.text, API_NAMES.values())}", value) from None


def _error_code(value: Token) -> int:
    code = _integer(value.text)
    if code is not None:
        return code
    try:
        return error_by_name(value.text).code
    except SchemaError:
        raise _expected("an error name like NOT_LEADER_OR_FOLLOWER, or its code", value) from None


def _suggestion(text: str, names: Any) -> str:
    lowered = {name.lower(): name for name in names}
    close = get_close_matches(text.lower(), lowered, n=3, cutoff=0.6)
    return f" like {' or '.join(lowered[name] for name in close)}" if close else " like Fetch"


def _endpoint(value: Token, may_be_name: bool) -> Test:
    """``10.0.0.1:9092`` exactly, ``10.0.0.1`` on any port, ``:9092`` at any address; IPv6 in brackets or bare. A host's
    name may stand in place of an address if it ``may_be_name``.
    """
    host, port = _host_and_port(value.text)
    prefix = host and f"{host}:"
    try:
        address = ip_address(host) if host else None
        if address is not None:
            prefix = f"[{address}]:" if address.version == 6 else f"{address}:"
    except ValueError:
        if not may_be_name or ":" in host:
            raise _expected("an address like 10.0.0.1:9092, 10.0.0.1, :9092 or [::1]:9092", value) from None
    if port and prefix:
        return (prefix + port).__eq__
    if port:
        suffix = ":" + port
        return lambda found: found.endswith(suffix)
    return lambda found: found.startswith(prefix)


def _host_and_port(text: str) -> tuple[str, str]:
    """The host and the port that a literal names, each empty where it names none."""
    match = re.fullmatch(r"\[([^\]]+)\](?::(\d{1,5}))?|([^:]*):(\d{1,5})", text)
    return (match[1] or match[3] or "", match[2] or match[4] or "") if match else (text, "")


def asked_name(value: Token) -> str:
    """The name of a host that a literal beside an address has, empty where it is an address or a port."""
    host, _ = _host_and_port(value.text)
    try:
        ip_address(host)
    except ValueError:
        return host
    return ""


def _number(field: str, value: Token) -> int | float | None:
    """A number beside a body field; durations beside ``*_ms``, sizes and error names where they make sense."""
    text = value.text
    number = _integer(text)
    if number is not None:
        return number
    duration = duration_ns(text)
    if duration is not None:
        if field.endswith("_ms"):
            return duration / 1_000_000
        raise FilterError(
            "expected a number without a unit of time; only fields in _ms take one", position=value.position
        )
    try:
        return float(text)
    except ValueError:
        return size_bytes(text)


def _equal_any(field: str, value: Token) -> Test:
    """Equality beside a body field, whatever type the field turns out to have."""
    text, raw = value.text, value.text.encode()
    number: int | float | None = None
    boolean: bool | None = None
    if value.kind == "word":
        number = _number(field, value)
        boolean = {"true": True, "false": False}.get(text)
        if number is None and field.endswith("error_code"):
            number = _error_code(value)

    def equal(found: Any) -> bool:
        if isinstance(found, str):
            return found == text
        if isinstance(found, bytes):
            return found == raw
        if isinstance(found, bool):
            return found is boolean
        return number is not None and isinstance(found, int | float) and found == number

    return equal
