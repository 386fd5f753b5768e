"""Committed offsets that move backwards: an annotator, which sees exchanges and remembers what it needs.

A group that commits an offset below its last one will read records again: after a reset on purpose, or because two
members believe they own the same partition. Try it::

    kwiresniff read -o summary --plugin plugins/commit_audit.py captures/

An annotator is registered with ``hooks.annotator(function)`` and called as ``function(exchange)`` for every exchange
that will be shown, in the order in which they were answered. ``exchange`` is ``kwiresniff.model.Exchange``: ``api``,
``api_version``, ``client_id``, ``connection.client``, ``request.body`` and ``response.body`` (dicts with Kafka's own
field names, or None), ``errors``, ``latency_ns`` and more. Return None, or a list of

* strings or dicts: they become ``notes`` of the exchange, with your plugin's name,
* ``kwiresniff.model.Problem``: they become problems of the exchange, and count for ``--strict``.

State belongs in an object like the one below, not in globals, and must stay bounded: a capture can be endless.
"""

from __future__ import annotations

from typing import Any

from kwiresniff.model import Exchange, Problem

#: Group, topic and partition triples remembered; the oldest are forgotten.
MAX_REMEMBERED = 100_000


class CommitAudit:
    """The last offset that each group committed for each partition."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, int], int] = {}

    def __call__(self, exchange: Exchange) -> list[Problem] | None:
        """Says when an OffsetCommit goes back."""
        if exchange.api != "OffsetCommit" or exchange.outcome != "ok" or exchange.request is None:
            return None
        body = exchange.request.body or {}
        problems = []
        for topic in body.get("topics", ()):
            name = topic.get("name") or topic.get("topic_id")
            for partition in topic["partitions"]:
                before = self._remember((body["group_id"], name, partition["partition_index"]), partition)
                if before is not None and partition["committed_offset"] < before:
                    problems.append(
                        Problem(
                            "offset_moved_back",
                            f"group {body['group_id']} moves {name}-{partition['partition_index']} back "
                            f"from {before} to {partition['committed_offset']}",
                        )
                    )
        return problems

    def _remember(self, key: tuple[str, str, int], partition: dict[str, Any]) -> int | None:
        before = self._last.pop(key, None)
        self._last[key] = partition["committed_offset"]
        if len(self._last) > MAX_REMEMBERED:
            del self._last[next(iter(self._last))]
        return before


def register(hooks: Any) -> None:
    """Called once when the plugin is loaded."""
    hooks.annotator(CommitAudit(), name="commit_audit")
