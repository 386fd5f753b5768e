"""The loaded plugins at work: asked one after the other, and survived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    described,
    json_ready,
    redacted_member,
)
from kwiresniff.plugins.hooks import EXAMINERS, MAX_FAILURES, SEE_VALUES, Hook, Plugin
from kwiresniff.plugins.misfits import Misfits

#: What an annotator says of one exchange: a person reads it.
MAX_NOTES = 1_000


class Plugins:
    """Asks the functions of plugins. ``take_problems`` gives what went wrong since it was last asked.

    With ``hides_values`` what the errors of those say that see keys and values is left out of problems.
    """

    def __init__(self, loaded: Sequence[Plugin] = (), problems: Sequence[Problem] = ()) -> None:
        self.loaded = list(loaded)
        self.decoders = [hook for plugin in loaded for hook in plugin.hooks if hook.kind == "value decoder"]
        self.learners = [hook for hook in self.decoders if callable(getattr(hook.function, "learn", None))]
        self.annotators = [hook for plugin in loaded for hook in plugin.hooks if hook.kind == "annotator"]
        self.examiners = [hook for plugin in loaded for hook in plugin.hooks if hook.kind in EXAMINERS]
        self.others = [hook for plugin in loaded for hook in plugin.hooks if hook.kind not in SEE_VALUES]
        self.redactors = [hook for plugin in loaded for hook in plugin.hooks if hook.kind == "redactor"]
        self.hides_values = False
        self._problems = list(problems)

    def take_problems(self) -> list[Problem]:
        """What went wrong since this was last called."""
        problems, self._problems = self._problems, []
        return problems

    def annotate(self, exchange: Exchange) -> None:
        """Lets every annotator comment on an exchange."""
        for hook in self.annotators:
            if hook.enabled:
                self._annotate(hook, exchange)

    def learn(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Shows a record of a topic with schemas to every decoder that learns."""
        for hook in self.learners:
            if hook.enabled:
                try:
                    hook.function.learn(topic, key, value)  # type: ignore[attr-defined]
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    self.failed(hook, error)

    def decode_records(self, topic: str | None, batches: Any, misfits: Misfits | None = None) -> None:
        """Gives each record that a decoder understands a member ``decoded``:
        ``{"key" and/or "value": {"plugin": name, "data": ...}}``. What names a schema and does not fit it is added to
        ``misfits``.
        """
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
        """The name of the first plugin that understands ``data`` and what it makes of it, or None.

        ``room`` is how many values there may still be in it and in the answers that follow. What plugins say of bytes
        that do not fit their schema is added to ``refused``.
        """
        for hook in self.decoders:
            if hook.enabled:
                try:
                    found = hook.function(topic, part, data, headers)
                    if found is not None:
                        return hook.plugin, checked_copy(found, room)
                except DoesNotFit as error:
                    if refused is not None:
                        refused.append((hook.plugin, error))
                except TooMuch as error:
                    self._overflowed(hook, error)
                    return None
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # SystemExit, GeneratorExit, a cancelled task: it has failed
                    self.failed(hook, error)
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

    def failed(self, hook: Hook, error: BaseException) -> None:
        """Counts a failure; the first one, and the one that ends it, are reported."""
        hook.failures += 1
        if hook.failures == 1:
            what = type(error).__name__ if self.hides_values and hook.kind in SEE_VALUES else described(error)
            self._problems.append(Problem("plugin_failed", f"{hook} raised {what}; going on without its answer"))
        if hook.failures == MAX_FAILURES:
            self._problems.append(Problem("plugin_disabled", f"{hook} failed {MAX_FAILURES} times and is switched off"))

    def _redact(self, topic: str | None, part: str, data: Any) -> Any:
        """What all redactors together leave of a decoded value; None for nothing, also where one of them fails."""
        for hook in self.redactors:
            if data is None or not hook.enabled:
                return None
            try:
                data = checked_copy(hook.function(topic, part, data), None)
            except TooMuch as error:
                self._overflowed(hook, error)
                return None
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self.failed(hook, error)
                return None
        return data

    def _annotate(self, hook: Hook, exchange: Exchange) -> None:
        notes: list[Body] = []
        problems: list[Problem] = []
        try:
            left = [MAX_JSON_VALUES]
            for number, note in enumerate(_each(hook.function(exchange))):
                if number == MAX_NOTES:
                    raise TooMuch(f"of more than {MAX_NOTES} notes")
                if isinstance(note, Problem):
                    problems.append(checked_problem(note))
                else:
                    members = note if isinstance(note, dict) else {"message": str(note)}
                    notes.append({"plugin": hook.plugin, **json_ready(members, left)})
        except TooMuch as error:
            self._overflowed(hook, error)
            return
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.failed(hook, error)
            return
        exchange.problems.extend(problems)
        if notes:
            exchange.notes = [*exchange.notes, *notes]

    def _overflowed(self, hook: Hook, error: TooMuch) -> None:
        hook.overflows += 1
        if hook.overflows == 1:
            what = f"{hook} gave an answer {error}; it is left out, and others like it"
            self._problems.append(Problem("plugin_answer_too_large", what))


def _each(found: Iterable[Any] | None) -> Iterator[Any]:
    if found is None:
        return iter(())
    return iter((found,)) if isinstance(found, str | dict | Problem) else iter(found)
