"""What a plugin registers: the object that its ``register`` is given, and what becomes of each function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, NamedTuple

from kwiresniff.errors import PluginError
from kwiresniff.model import Body, Exchange, Problem
from kwiresniff.plugins.timing import MAX_SLOW_CALLS

#: One odd record must not silence a plugin; a plugin that is simply broken should not cost time for long.
MAX_FAILURES = 10

#: The kinds of hooks that are given keys and values in plain, so that what they say of an error may quote them.
SEE_VALUES = ("value decoder", "redactor")
#: The kinds of hooks that take part in an examination of ``doctor``.
EXAMINERS = ("doctor observer", "doctor cause")

#: ``decode(topic, part, data, headers)``: ``part`` is ``key`` or ``value``, ``headers`` the record's headers as
#: ``{"key": ..., "value": ...}`` dicts. Returns anything with a JSON form, a ``Decoded``, or None when the bytes are
#: not its kind; raises ``DoesNotFit``. An object may have a method ``learn(topic, key, value)`` as well, which is
#: called with the records of the topic ``_schemas`` in the capture, and then ``enter(node, scope)``, which is called
#: before the records of an exchange: ``scope(node)`` is equal for brokers of one cluster, as far as is known by then.
ValueDecoder = Callable[[str | None, str, bytes, Sequence[Body]], Any]
#: ``redact(topic, part, data)``: what ``--redact`` leaves of decoded data, or None.
ValueRedactor = Callable[[str | None, str, Any], Any]
#: ``annotate(exchange)``: None or notes; a str or dict becomes one of ``notes``, a ``Problem`` of ``problems``.
Annotator = Callable[[Exchange], "Iterable[str | Body | Problem] | None"]
#: ``make(context)``: an object like ``kwiresniff.analysis.doctor.Observer``, ``Cause`` or ``Rule``.
DoctorMaker = Callable[[Any], Any]


#: ``make(out, files)``: a sink with ``close`` for a binary stream; ``files`` are the captures' names.
ExporterMaker = Callable[[IO[bytes], Sequence[str]], Any]


class Hook:
    """One registered function and how it has done so far."""

    def __init__(
        self, plugin: str, kind: str, name: str, summary: str, function: Callable[..., Any], *, isolated: bool = False
    ) -> None:
        self.plugin = plugin
        self.kind = kind
        self.name = name
        self.summary = summary
        self.function = function
        self.isolated = isolated
        self.failures = 0
        self.overflows = 0  # answers that were too much
        self.calls = 0
        self.slow_calls = 0
        self.is_named = False  # for the time it takes on average
        self.seconds = 0.0

    @property
    def enabled(self) -> bool:
        return self.failures < MAX_FAILURES and self.slow_calls < MAX_SLOW_CALLS

    def __str__(self) -> str:
        return f"plugin {self.plugin}: {self.kind} {self.name}"


class PluginOptions(NamedTuple):
    """The user's ``--schemas`` and ``--value-format``, as given."""

    schemas: tuple[str, ...] = ()
    value_formats: tuple[str, ...] = ()

    @property
    def places(self) -> list[str]:
        """The sources of schemas, without the user and password of a URL."""
        return [re.sub(r"//[^/]*@", "//", place) for place in self.schemas]


NO_OPTIONS = PluginOptions()


class Plugin:
    """A loaded plugin: where it came from and what it adds. ``source`` is by what another process loads it again."""

    def __init__(
        self, name: str, origin: str, source: tuple[str, str] | None = None, options: PluginOptions = NO_OPTIONS
    ) -> None:
        self.name = name
        self.origin = origin
        self.source = source
        self.options = options
        self.hooks: list[Hook] = []


class Hooks:
    """The argument of ``register``. Its methods also serve as decorators; ``options`` are the user's."""

    def __init__(self, plugin: Plugin) -> None:
        self.options = plugin.options
        self._plugin = plugin

    def value_decoder(self, function: ValueDecoder, name: str = "", *, isolated: bool = False) -> ValueDecoder:
        """Adds a value decoder, ``isolated`` in its own process or not; the first that returns something wins."""
        self._add("value decoder", function, name, isolated=isolated)
        return function

    def redactor(self, function: ValueRedactor, name: str = "") -> ValueRedactor:
        """Adds a function that ``--redact`` applies to decoded values, after those added before."""
        self._add("redactor", function, name)
        return function

    def annotator(self, function: Annotator, name: str = "") -> Annotator:
        """Adds a function that is shown every exchange before it is printed."""
        self._add("annotator", function, name)
        return function

    def exporter(self, suffix: str, function: ExporterMaker) -> ExporterMaker:
        """Adds a format to ``export``, by ending or ``-o``. Raises PluginError for a wrong name."""
        if not re.fullmatch(r"[a-z0-9]+", suffix):
            raise PluginError(f"exporter {suffix!r}: a format is named by small letters and digits, without a dot")
        self._add("exporter", function, suffix)
        return function

    def doctor_observer(self, function: DoctorMaker, name: str = "") -> DoctorMaker:
        """Adds an observer to ``doctor``: a class, of which one object is made for each examination."""
        self._add("doctor observer", function, name)
        return function

    def doctor_cause(self, function: DoctorMaker, name: str = "") -> DoctorMaker:
        """Adds a cause to ``doctor``, which weighs what observers saw: a class as with ``doctor_observer``."""
        self._add("doctor cause", function, name)
        return function

    def _add(self, kind: str, function: Callable[..., Any], name: str, *, isolated: bool = False) -> None:
        summary = (function.__doc__ or "").strip().partition("\n")[0]
        name = name or getattr(function, "__name__", type(function).__name__)
        self._plugin.hooks.append(Hook(self._plugin.name, kind, name, summary, function, isolated=isolated))
