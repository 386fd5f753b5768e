"""Record keys and values that are JSON, shown as JSON: the smallest useful plugin.

Try it::

    kwiresniff read --plugin plugins/json_values.py -o jsonl captures/first-look.pcap

A plugin is a Python file with a function ``register``. It is called once, with an object to register functions on:

* ``hooks.value_decoder(function)``: the function is called for every key and every value of every record, as
  ``function(topic, part, data, headers)``. ``topic`` is the topic's name, or None when the capture does not tell it;
  ``part`` is ``"key"`` or ``"value"``; ``data`` the bytes, never empty; ``headers`` the record's headers, a list of
  ``{"key": str, "value": bytes or None}``. Return anything made of dicts, lists, strings, numbers, booleans and None,
  or None when the bytes are not yours. The first decoder that returns something wins.
* ``hooks.annotator(function)``: see ``commit_audit.py``.

In JSON output the record keeps its key and value, and what you return stands beside them::

    "decoded": {"value": {"plugin": "json_values", "data": {"order": 1001}}}

An exception does no harm: it is reported once, and a function that keeps failing is switched off.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def decode(topic: str | None, part: str, data: bytes, headers: Sequence[dict[str, Any]]) -> Any:
    """Objects and arrays in JSON."""
    # A number or a quoted word is JSON too, but shows nothing that the text did not, and often is none.
    if data[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def register(hooks: Any) -> None:
    """Called once when the plugin is loaded."""
    hooks.value_decoder(decode)
