"""Plugins: functions of others that read record keys and values, comment on exchanges, or are observers, causes and
rules of ``doctor``.

A plugin is a Python file (``--plugin PATH``) or an installed entry point of the group ``kwiresniff.plugins``, with a
function ``register(hooks)`` that calls ``hooks.value_decoder(...)`` and ``hooks.annotator(...)``; ``plugins/`` has
worked examples. It runs in this process with all its rights, so load only what you would run.

A function that raises, or returns what has no JSON form, is reported once, counted, and switched off after
``MAX_FAILURES``; the reading goes on without it. An answer that is nested too deep or too large is left out and
reported once: that is the doing of whoever wrote the record, so it does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kwiresniff.errors import PluginError
from kwiresniff.model import Body, Exchange, Problem

#: One odd record must not silence a plugin; a plugin that is simply broken should not cost time for long.
MAX_FAILURES = 10
#: Deeper than any record anyone reads; keeps a hostile value from exhausting the stack of whoever prints it.
MAX_JSON_DEPTH = 64
#: Values in one answer. A list takes two bytes in JSON and thirty times as much here.
MAX_JSON_VALUES = 100_000
#: Values in the answers about the records of one record set, which are all held until it is printed.
MAX_DECODED_VALUES = 1_000_000

#: So many characters of text count as a value; a decoder may undo a compression.
CHARS_A_VALUE = 256
#: What an annotator says of one exchange: a person reads it.
MAX_NOTES = 1_000

#: The kinds of hooks that take part in an examination of ``doctor``.
EXAMINERS = ("doctor observer", "doctor cause")

#: ``decode(topic, part, data, headers)``: ``part`` is ``key`` or ``value``, ``headers`` the record's headers as
#: ``{"key": ..., "value": ...}`` dicts. Returns anything with a JSON form, or None when the bytes are not its kind.
ValueDecoder = Callable[[str | None, str, bytes, Sequence[Body]], Any]
#: ``annotate(exchange)``: returns None or an iterable of notes; a str or dict becomes one of the exchange's
#: ``notes``, a ``Problem`` one of its ``problems``.
Annotator = Callable[[Exchange], "Iterable[str | Body | Problem] | None"]
#: ``make(context)``: returns an object like ``kwiresniff.analysis.doctor.Observer`` or ``Cause``, best of a class
#: derived from it.
DoctorMaker = Callable[[Any], Any]


class TooMuch(PluginError):
    """An answer that would take too much to hold or to print."""


class Hook:
    """One registered function and how it has done so far."""

    def __init__(self, plugin: str, kind: str, name: str, summary: str, function: Callable[..., Any]) -> None:
        self.plugin = plugin
        self.kind = kind
        self.name = name
        self.summary = summary
        self.function = function
        self.failures = 0
        self.overflows = 0  # answers that were too much

    @property
    def enabled(self) -> bool:
        return self.failures < MAX_FAILURES


class Plugin:
    """A loaded plugin: where it came from and what it adds."""

    def __init__(self, name: str, origin: str) -> None:
        self.name = name
        self.origin = origin
        self.hooks: list[Hook] = []


class Hooks:
    """What ``register`` is given. Its methods return the function, so they serve as decorators too."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    def value_decoder(self, function: ValueDecoder, name: str = "") -> ValueDecoder:
        """Adds a decoder of record keys and values; the first one that returns something wins."""
        self._add("value decoder", function, name)
        return function

    def annotator(self, function: Annotator, name: str = "") -> Annotator:
        """Adds a function that is shown every exchange before it is printed."""
        self._add("annotator", function, name)
        return function

    def doctor_observer(self, function: DoctorMaker, name: str = "") -> DoctorMaker:
        """Adds an observer to ``doctor``: a class, of which one object is made for each examination."""
        self._add("doctor observer", function, name)
        return function

    def doctor_cause(self, function: DoctorMaker, name: str = "") -> DoctorMaker:
        """Adds a cause to ``doctor``, which weighs what observers saw: a class as with ``doctor_observer``."""
        self._add("doctor cause", function, name)
        return function

    def _add(self, kind: str, function: Callable[..., Any], name: str) -> None:
        summary = (function.__doc__ or "").strip().partition("\n")[0]
        name = name or getattr(function, "__name__", type(function).__name__)
        self._plugin.hooks.append(Hook(self._plugin.name, kind, name, summary, function))


class Plugins:
    """The loaded plugins at work. ``take_problems`` gives what went wrong since it was last asked."""

    def __init__(self, loaded: Sequence[Plugin] = (), problems: Sequence[Problem] = ()) -> None:
        self.loaded = list(loaded)
        self.decoders = [hook for plugin in loaded for hook in plugin.hooks if hook.kind == "value decoder"]
        self.annotators = [hook for plugin in loaded for hook in plugin.hooks if hook.kind == "annotator"]
        self.examiners = [hook for plugin in loaded for hook in plugin.hooks if hook.kind in EXAMINERS]
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

    def decode_records(self, topic: str | None, batches: Any) -> None:
        """Gives each record that a decoder understands a member ``decoded``:
        ``{"key" and/or "value": {"plugin": name, "data": ...}}``."""
        if not self.decoders or not isinstance(batches, list):
            return
        room = [MAX_DECODED_VALUES]
        for batch in batches:
            for record in batch.get("records") or ():
                decoded = {}
                for part in ("key", "value"):
                    data = record.get(part)
                    found = self.decode(topic, part, data, record.get("headers") or (), room) if data else None
                    if found is not None:
                        decoded[part] = {"plugin": found[0], "data": found[1]}
                if decoded:
                    record["decoded"] = {**record.get("decoded", {}), **decoded}

    def decode(
        self, topic: str | None, part: str, data: bytes, headers: Sequence[Body], room: list[int] | None = None
    ) -> tuple[str, Any] | None:
        """The name of the first plugin that understands ``data`` and what it makes of it, or None.

        ``room`` is how many values there may still be in it and in the answers that follow.
        """
        for hook in self.decoders:
            if hook.enabled:
                try:
                    found = hook.function(topic, part, data, headers)
                    if found is not None:
                        return hook.plugin, _copied(found, room)
                except TooMuch as error:
                    self._overflowed(hook, error)
                    return None
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # SystemExit, GeneratorExit, a cancelled task: it has failed
                    self.failed(hook, error)
        return None

    def _annotate(self, hook: Hook, exchange: Exchange) -> None:
        notes: list[Body] = []
        problems: list[Problem] = []
        try:
            left = [MAX_JSON_VALUES]
            for number, note in enumerate(_each(hook.function(exchange))):
                if number == MAX_NOTES:
                    raise TooMuch(f"of more than {MAX_NOTES} notes")
                if isinstance(note, Problem):
                    problems.append(_checked(note))
                else:
                    members = note if isinstance(note, dict) else {"message": str(note)}
                    notes.append({"plugin": hook.plugin, **_json_ready(members, 0, left)})
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
            what = f"{_where(hook)} gave an answer {error}; it is left out, and others like it"
            self._problems.append(Problem("plugin_answer_too_large", what))

    def failed(self, hook: Hook, error: BaseException) -> None:
        hook.failures += 1
        where = _where(hook)
        if hook.failures == 1:
            self._problems.append(
                Problem("plugin_failed", f"{where} raised {described(error)}; going on without its answer")
            )
        if hook.failures == MAX_FAILURES:
            self._problems.append(
                Problem("plugin_disabled", f"{where} failed {MAX_FAILURES} times and is switched off")
            )


def _each(found: Iterable[Any] | None) -> Iterator[Any]:
    if found is None:
        return iter(())
    return iter((found,)) if isinstance(found, str | dict | Problem) else iter(found)


def _checked(problem: Problem) -> Problem:
    """A problem as it is, if what it says is what a problem says; else PluginError."""
    if not (isinstance(problem.code, str) and isinstance(problem.message, str) and isinstance(problem.path, str)):
        raise PluginError("a problem's code, message and path are texts")
    if not all(one is None or isinstance(one, int) for one in problem[2:3] + problem[4:6]):
        raise PluginError("a problem's offset, packet and time are integers")
    if not isinstance(problem.details, dict | None):
        raise PluginError("a problem's details are a dict")
    return problem._replace(details=json_ready(problem.details))


def _where(hook: Hook) -> str:
    return f"plugin {hook.plugin}: {hook.kind} {hook.name}"


def _copied(found: Any, room: list[int] | None) -> Any:
    """A copy of an answer, counted against the room that there is for all of them."""
    if room is None:
        return json_ready(found)
    given = min(room[0], MAX_JSON_VALUES)
    left = [given]
    copy = _json_ready(found, 0, left)
    room[0] -= given - left[0]
    return copy


def json_ready(value: Any) -> Any:
    """A copy made of what JSON knows, and bytes; raises TooMuch for too much, PluginError for anything else."""
    return _json_ready(value, 0, [MAX_JSON_VALUES])


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


def described(error: BaseException) -> str:
    """An error of a plugin by its class and its text, as far as that can be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, which does not say why"
