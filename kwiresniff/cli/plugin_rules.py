"""Plugins' rules for ``doctor``: one that raises is reported and left out, and the examination goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from kwiresniff.analysis.doctor import SEVERITIES, Context, Rule
from kwiresniff.errors import PluginError
from kwiresniff.model import Connection, ConnectionAttempt, Exchange, Problem
from kwiresniff.plugins import Hook, Plugins
from kwiresniff.results.findings import Finding

#: Findings that one rule of a plugin may have.
MAX_FINDINGS = 1_000


class GuardedRule(Rule):
    """A plugin's rule. What it raises is the plugin's failure, counted and after a while the end of it."""

    apis = None

    def __init__(self, context: Context, hook: Hook, plugins: Plugins) -> None:
        super().__init__(context)
        self._hook = hook
        self._plugins = plugins
        self._rule: Any = None
        self._call(self._make)

    def _make(self) -> None:
        self._rule = self._hook.function(self.context)
        apis: Any = getattr(self._rule, "apis", frozenset())
        judges: Any = getattr(self._rule, "judges", frozenset())
        # Those of the class that is wrapped stand for this object.
        vars(self).update(apis=None if apis is None else frozenset(apis), judges=frozenset(judges))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if not self._hook.enabled:
            return None
        try:
            return function(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._plugins.failed(self._hook, error)
            return None

    def _report(self, what: str, event: Any) -> None:
        method = getattr(self._rule, what, None)
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

    def findings(self) -> Iterator[Finding]:
        """What it found, as far as that has the form of a finding."""
        method = getattr(self._rule, "findings", None)
        given = (
            self._call(lambda: [_checked(one) for one in islice(method(), MAX_FINDINGS)])
            if method is not None
            else None
        )
        return iter(given or ())


def _checked(finding: Any) -> Finding:
    if not isinstance(finding, Finding):
        raise PluginError(f"{type(finding).__name__} is no Finding")
    if finding.severity not in SEVERITIES:
        raise PluginError(f"a finding's severity is one of {', '.join(SEVERITIES)}, not {finding.severity!r}")
    return finding


def rules_of(plugins: Plugins) -> list[Callable[[Context], Rule]]:
    """What makes the rules that plugins bring."""

    def maker(hook: Hook) -> Callable[[Context], Rule]:
        return lambda context: GuardedRule(context, hook, plugins)

    return [maker(hook) for hook in plugins.rules]
