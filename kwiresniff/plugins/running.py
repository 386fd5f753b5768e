"""The loaded plugins at work: asked one after the other, and survived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from kwiresniff.model import Body, Exchange, Problem
from kwiresniff.plugins.answers import (
    MAX_DECODED_VALUES,
    MAX_JSON_VALUES,
    DoesNotFit,
    TooMuch,
    checked_copy,
    checked_problem,
    decoded_member,
    json_ready,
    redacted_member,
)
from kwiresniff.plugins.calls import FAILED, TOO_MUCH, HookCalls
from kwiresniff.plugins.hooks import EXAMINERS, SEE_VALUES, Hook, Plugin
from kwiresniff.plugins.misfits import Misfits

#: What an annotator says of one exchange: a person reads it.
MAX_NOTES = 1_000


class Plugins(HookCalls):
    """Asks the functions of plugins; ``close`` ends the processes of those that are isolated."""

    def __init__(self, loaded: Sequence[Plugin] = (), problems: Sequence[Problem] = ()) -> None:
        super().__init__(problems)
        self.loaded = list(loaded)
        for plugin in loaded:
            _isolate(plugin)
        hooks = [hook for plugin in loaded for hook in plugin.hooks]
        self.decoders = [hook for hook in hooks if hook.kind == "value decoder"]
        self.learners = [hook for hook in self.decoders if callable(getattr(hook.function, "learn", None))]
        self.redactors = [hook for hook in hooks if hook.kind == "redactor"]
        self.annotators = [hook for hook in hooks if hook.kind == "annotator"]
        self.exporters = {hook.name: hook for hook in reversed(hooks) if hook.kind == "exporter"}  # the first wins
        self.examiners = [hook for hook in hooks if hook.kind in EXAMINERS]
        self.others = [hook for hook in hooks if hook.kind not in (*SEE_VALUES, "exporter")]

    def close(self) -> None:
        """Ends the processes of isolated decoders."""
        for hook in self.decoders:
            if hook.isolated:
                hook.function.close()  # type: ignore[attr-defined]

    def annotate(self, exchange: Exchange) -> None:
        """Lets every annotator comment on an exchange."""
        for hook in self.annotators:
            if hook.enabled:
                found = self.call(hook, partial(_comments, hook.plugin), _listed, hook, exchange)
                if isinstance(found, tuple):
                    notes, problems = found
                    exchange.problems.extend(problems)
                    if notes:
                        exchange.notes = [*exchange.notes, *notes]

    def learn(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Shows a record of a topic with schemas to every decoder that learns."""
        for hook in self.learners:
            if hook.enabled:
                self.call(hook, _nothing, hook.function.learn, topic, key, value)  # type: ignore[attr-defined]

    def enter(self, node: int, scope: Callable[[int], int]) -> None:
        """Tells decoders which node of the clusters the next records are of."""
        for hook in self.learners:
            enter = getattr(hook.function, "enter", None)
            if hook.enabled and callable(enter):
                self.call(hook, _nothing, enter, node, scope)

    def decode_records(self, topic: str | None, batches: Any, misfits: Misfits | None = None) -> None:
        """Adds ``decoded`` to records: ``{"key" and/or "value": {"plugin": name, "data": ...}}``; counts misfits."""
        if not self.decoders or not isinstance(batches, list):
            return
        room = [MAX_DECODED_VALUES]
        for batch_index, batch in enumerate(batches):
            for index, record in enumerate(batch.get("records") or ()):
                decoded = {}
                for part in ("key", "value"):
                    data = record.get(part)
                    if not data or not isinstance(data, bytes):
                        continue
                    refused: list[tuple[str, DoesNotFit]] = []
                    found = self.decode(topic, part, data, record.get("headers") or (), room, refused)
                    if found is not None:
                        decoded[part] = decoded_member(*found)
                    elif refused and misfits is not None:
                        misfits.add(f"[{batch_index}].records[{index}].{part}", record, part, *refused[0])
                if decoded:
                    record["decoded"] = {**record.get("decoded", {}), **decoded}

    def decode(
        self,
        topic: str | None,
        part: str,
        data: bytes,
        headers: Sequence[Body],
        room: list[int] | None = None,
        refused: list[tuple[str, DoesNotFit]] | None = None,
    ) -> tuple[str, Any] | None:
        """The first plugin that understands ``data`` and its answer, within ``room`` values, or None; misfits are added
        to ``refused``.
        """
        for hook in self.decoders:
            if not hook.enabled:
                continue
            found = self.call(hook, partial(_copied, room), _decoded, hook, topic, part, data, headers)
            if found is TOO_MUCH:
                return None
            if isinstance(found, DoesNotFit):
                if refused is not None:
                    refused.append((hook.plugin, found))
            elif found is not FAILED and found is not None:
                return hook.plugin, found
        return None

    def redact_records(self, topic: str | None, batches: Any) -> None:
        """Leaves of what decoders made of records what the redactors leave of it."""
        for batch in batches if isinstance(batches, list) else ():
            for record in batch.get("records") or ():
                decoded = record.get("decoded")
                if isinstance(decoded, dict):
                    for part, member in tuple(decoded.items()):
                        if isinstance(member, dict) and "plugin" in member:
                            left = self._redact(topic, part, member["data"])
                            decoded[part] = redacted_member(member, left)

    def _redact(self, topic: str | None, part: str, data: Any) -> Any:
        """The rest that all redactors leave of a decoded value; None for nothing, and where one of them fails."""
        for hook in self.redactors:
            if data is None or not hook.enabled:
                return None
            data = self.call(hook, partial(_copied, None), hook.function, topic, part, data)
            if data is FAILED or data is TOO_MUCH:
                return None
        return data


def _decoded(hook: Hook, *arguments: Any) -> Any:
    """The return value of a decoder, or the DoesNotFit that it raises."""
    try:
        return hook.function(*arguments)
    except DoesNotFit as error:
        return error


def _copied(room: list[int] | None, found: Any) -> Any:
    """A copy of an answer that is counted against the room there is."""
    return found if found is None or isinstance(found, DoesNotFit) else checked_copy(found, room)


def _nothing(found: Any) -> None:
    """Ignores an answer."""


def _listed(hook: Hook, exchange: Exchange) -> list[Any]:
    """The notes of an annotator on an exchange."""
    notes = list(islice(_each(hook.function(exchange)), MAX_NOTES + 1))
    if len(notes) > MAX_NOTES:
        raise TooMuch(f"of more than {MAX_NOTES} notes")
    return notes


def _comments(plugin: str, found: list[Any]) -> tuple[list[Body], list[Problem]]:
    """The notes and problems that an annotator gives an exchange."""
    notes: list[Body] = []
    problems: list[Problem] = []
    left = [MAX_JSON_VALUES]
    for note in found:
        if isinstance(note, Problem):
            problems.append(checked_problem(note))
        else:
            members = note if isinstance(note, dict) else {"message": str(note)}
            notes.append({"plugin": plugin, **json_ready(members, left)})
    return notes, problems


def _each(found: Iterable[Any] | None) -> Iterator[Any]:
    if found is None:
        return iter(())
    return iter((found,)) if isinstance(found, str | dict | Problem) else iter(found)


def _isolate(plugin: Plugin) -> None:
    """Replaces isolated decoders by clients of their own processes, where the plugin can be loaded there."""
    for number, hook in enumerate(plugin.hooks):
        hook.isolated = hook.isolated and plugin.source is not None
        if hook.isolated and plugin.source is not None:
            from kwiresniff.plugins.isolated import IsolatedDecoder, LearningDecoder  # few plugins need processes

            kind = LearningDecoder if callable(getattr(hook.function, "learn", None)) else IsolatedDecoder
            hook.function = kind(plugin, number)
