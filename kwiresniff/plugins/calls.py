"""Calls of functions of plugins, and what became of them: counted, reported, and after a while left out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any, Final

from kwiresniff.errors import PluginError
from kwiresniff.model import Problem
from kwiresniff.plugins.answers import NotStarted, TooMuch, described
from kwiresniff.plugins.hooks import MAX_FAILURES, SEE_VALUES, Hook
from kwiresniff.plugins.timing import (
    CALL_MS,
    FIRST_CALL_MS,
    MAX_SLOW_CALLS,
    NAMED_MS,
    SLOW_MS,
    TookTooLong,
    limited,
)

#: Stand for an answer: the function failed, or took too long; its answer was too large.
FAILED: Final = object()
TOO_MUCH: Final = object()


class HookCalls:
    """Calls hooks and collects problems; ``hides_values`` omits error texts of those that see values."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.hides_values = False
        self._problems = list(problems)

    def take_problems(self) -> list[Problem]:
        """Returns the problems since the last call."""
        problems, self._problems = self._problems, []
        return problems

    def call(self, hook: Hook, copy: Callable[[Any], Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """The ``copy`` of a hook's answer, FAILED or TOO_MUCH; the hook's time is limited."""
        try:
            return copy(self._timed(hook, function, *arguments))
        except KeyboardInterrupt:
            raise
        except TooMuch as error:
            self._overflowed(hook, error)
            return TOO_MUCH
        except TookTooLong:
            return FAILED
        except BaseException as error:  # SystemExit, GeneratorExit, a cancelled task: it has failed
            self.failed(hook, error)
            return FAILED

    def _timed(self, hook: Hook, function: Callable[..., Any], *arguments: Any) -> Any:
        limit_ms = CALL_MS if hook.calls else FIRST_CALL_MS
        hook.calls += 1
        begun, used = time.monotonic(), time.process_time()
        interrupted = False
        try:
            if hook.isolated:
                return function(*arguments)
            with redirect_stdout(sys.stderr):  # what it prints is no output
                return limited(limit_ms, function, *arguments)
        except TookTooLong:
            interrupted = True
            raise
        finally:
            took_s, used_ms = time.monotonic() - begun, (time.process_time() - used) * 1000
            hook.seconds += took_s
            if interrupted or used_ms > limit_ms:
                self._slow(hook, took_s)
            elif hook.seconds * 1000 > max(NAMED_MS, hook.calls * SLOW_MS) and not hook.is_named:
                hook.is_named = True
                what = f"{hook} has taken {hook.seconds:.0f} s for {hook.calls} calls so far"
                self._problems.append(Problem("plugin_too_slow", what))

    def failed(self, hook: Hook, error: BaseException) -> None:
        """Counts a failure; the first one, and the one that ends it, are reported."""
        if isinstance(error, NotStarted):
            hook.failures = MAX_FAILURES
            self._problems.append(Problem("plugin_disabled", f"{hook} is switched off: {error}"))
            return
        hook.failures += 1
        if hook.failures == 1:
            hides = self.hides_values and hook.kind in SEE_VALUES
            if isinstance(error, PluginError):  # it is worded for users
                what = "failed" if hides else f"failed: {error}"
            else:
                what = f"raised {type(error).__name__ if hides else described(error)}"
            self._problems.append(Problem("plugin_failed", f"{hook} {what}; going on without its answer"))
        if hook.failures == MAX_FAILURES:
            self._disabled(f"{hook} failed {MAX_FAILURES} times")

    def _slow(self, hook: Hook, took: float) -> None:
        hook.slow_calls += 1
        if hook.slow_calls == 1:
            what = f"{hook} took longer than {took:.1f} s; going on without waiting for it"
            self._problems.append(Problem("plugin_too_slow", what))
        if hook.slow_calls == MAX_SLOW_CALLS:
            self._disabled(f"{hook} took too long {MAX_SLOW_CALLS} times")

    def _disabled(self, why: str) -> None:
        self._problems.append(Problem("plugin_disabled", f"{why} and is switched off"))

    def _overflowed(self, hook: Hook, error: TooMuch) -> None:
        hook.overflows += 1
        if hook.overflows == 1:
            what = f"{hook} gave an answer {error}; it is left out, and others like it"
            self._problems.append(Problem("plugin_answer_too_large", what))
