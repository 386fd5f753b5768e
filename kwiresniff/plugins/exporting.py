"""Formats of ``export`` that plugins write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Any

from kwiresniff.errors import ExportError
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange
from kwiresniff.plugins.answers import described
from kwiresniff.plugins.hooks import Hook

#: The methods of a plugin's sink, by the class of the event; what has none is passed over.
_METHODS = {Exchange: "on_exchange", Connection: "on_connection", ConnectionAttempt: "on_attempt"}


class PluginWriter:
    """Gives events to a plugin's sink. Raises ExportError for whatever it raises: half a file is none."""

    def __init__(self, hook: Hook, out: IO[bytes], files: Sequence[str]) -> None:
        self._hook = hook
        self._sink: Any = None
        self._sink = self._call(hook.function, out, list(files))

    def write(self, event: Event) -> None:
        """Writes one event."""
        method = getattr(self._sink, _METHODS.get(type(event), "on_problem"), None)
        if method is not None:
            self._call(method, event)

    def close(self) -> None:
        """Ends the document; the stream is not the plugin's to close."""
        method = getattr(self._sink, "close", None)
        if method is not None:
            self._call(method)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (KeyboardInterrupt, OSError):  # a full disk is no failure of the plugin
            raise
        except BaseException as error:
            raise ExportError(f"{self._hook} raised {described(error)}; nothing is written") from error
