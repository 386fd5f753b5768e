"""JSON in records, as RFC 8259 has it: neither NaN nor infinities, and no more levels than can be shown."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from kwiresniff_values.problems import Misfit


def parse(data: bytes) -> Any:
    """The value of a JSON text in UTF-8; raises Misfit."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_constant)
    except RecursionError:
        raise Misfit("JSON nests too deep") from None
    except UnicodeDecodeError as error:
        raise Misfit(f"no JSON: no UTF-8 from byte {error.start} on") from None
    except ValueError as error:
        raise Misfit(f"no JSON: {error}") from None


def parse_object(data: bytes) -> dict[str, Any] | None:
    """The object of a JSON text, or None where it is anything else."""
    if data[:1] != b"{":
        return None
    try:
        found = parse(data)
    except Misfit:
        return None
    return found if isinstance(found, dict) else None


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
