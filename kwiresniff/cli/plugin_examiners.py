"""Plugins' parts of ``doctor``: one that raises is reported and left out, and the examination goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from kwiresniff.analysis.doctor import SEVERITIES, Cause, Context, Explanation, Maker, Observation, Observed, Observer
from kwiresniff.errors import PluginError
from kwiresniff.model import Connection, ConnectionAttempt, Exchange, Problem
from kwiresniff.plugins import Hook, Plugins

#: Observations or explanations that one class of a plugin may give.
MAX_GIVEN = 1_000


class GuardedObserver(Observer):
    """A plugin's observer. Each exception counts as a failure of the plugin, which ends after several."""

    apis = None

    def __init__(self, context: Context, hook: Hook, plugins: Plugins) -> None:
        super().__init__(context)
        self._hook = hook
        self._plugins = plugins
        self._observer: Any = None
        self._call(self._make)

    def _make(self) -> None:
        self._observer = self._hook.function(self.context)
        apis: Any = getattr(self._observer, "apis", frozenset())
        judges: Any = getattr(self._observer, "judges", frozenset())
        # Those of the class that is wrapped stand for this object.
        vars(self).update(apis=None if apis is None else frozenset(apis), judges=frozenset(judges))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return _guarded(self._hook, self._plugins, function, *arguments)

    def _report(self, what: str, event: Any) -> None:
        method = getattr(self._observer, what, None)
        if method is not None:
            self._call(method, event)

    def exchange(self, exchange: Exchange) -> None:
        self._report("exchange", exchange)

    def failure(self, exchange: Exchange) -> None:
        self._report("failure", exchange)

    def connection(self, connection: Connection) -> None:
        self._report("connection", connection)

    def ending(self, ending: Any) -> None:
        self._report("ending", ending)

    def attempt(self, attempt: ConnectionAttempt) -> None:
        self._report("attempt", attempt)

    def problem(self, problem: Problem) -> None:
        self._report("problem", problem)

    def observations(self) -> Iterator[Observation]:
        """The observations of the plugin, as far as they have that type."""
        method = getattr(self._observer, "observations", None)
        if method is None:
            return iter(())
        return iter(self._call(lambda: [_of(Observation, one) for one in islice(method(), MAX_GIVEN)]) or ())


class GuardedCause(Cause):
    """A plugin's cause, guarded in the same way."""

    def __init__(self, context: Context, hook: Hook, plugins: Plugins) -> None:
        super().__init__(context)
        self._hook = hook
        self._plugins = plugins
        self._cause: Any = _guarded(hook, plugins, hook.function, context)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """The explanations of the plugin, as far as they have that type."""
        if self._cause is None:
            return iter(())

        def given() -> list[Explanation]:
            return [_explanation(one) for one in islice(self._cause.weigh(observed), MAX_GIVEN)]

        return iter(_guarded(self._hook, self._plugins, given) or ())


def _guarded(hook: Hook, plugins: Plugins, function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result of a plugin's function; None where it raises, or has raised too often."""
    if not hook.enabled:
        return None
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        plugins.failed(hook, error)
        return None


def _of(kind: type, given: Any) -> Any:
    if not isinstance(given, kind):
        raise PluginError(f"{type(given).__name__} is no {kind.__name__}")
    return given


def _explanation(given: Any) -> Explanation:
    _of(Explanation, given)
    if given.severity not in ("", *SEVERITIES):
        raise PluginError(
            f"an explanation's severity is empty or one of {', '.join(SEVERITIES)}, not {given.severity!r}"
        )
    return given  # type: ignore[no-any-return]


def examiners_of(plugins: Plugins) -> list[Maker]:
    """Makers of the observers and causes of plugins."""

    def maker(hook: Hook) -> Maker:
        guard = GuardedCause if hook.kind == "doctor cause" else GuardedObserver
        return lambda context: guard(context, hook, plugins)

    return [maker(hook) for hook in plugins.examiners]
