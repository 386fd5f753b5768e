"""Python source under construction: indented lines, fresh names, and the objects the source refers to.

Nothing from a definition ever becomes a name in the source: local names are counted, field names appear only as
string literals made by ``repr``. A definition from somebody else's folder can therefore not smuggle code in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

from kwiresniff.errors import SchemaError


class SourceCode:
    """Lines of one function, and the namespace it will run in."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = dict(namespace)
        self._lines: list[str] = []
        self._depth = 0
        self._count = 0

    def line(self, text: str) -> None:
        """Adds a line at the current indentation."""
        self._lines.append(f"{'  ' * self._depth}{text}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Adds ``head``, and indents what is added inside the context; an empty block gets ``pass``."""
        self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def fresh(self, prefix: str = "v") -> str:
        """A local name not used before."""
        self._count += 1
        return f"{prefix}{self._count}"

    def struct_method(self, format: str, method: str) -> str:
        """The name under which a method of the precompiled ``Struct(format)`` is at hand."""
        name = f"{method}_{format.lstrip('>').replace('?', 'Z')}"
        if name not in self.namespace:
            self.namespace[name] = getattr(Struct(format), method)
        return name

    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self._lines) + "\n"

    def function(self, name: str, title: str) -> Callable[..., Any]:
        """Compiles the lines and returns the function called ``name`` among them; ``title`` stands in tracebacks."""
        namespace = self.namespace
        exec(compile(self.text(), f"<{title}>", "exec"), namespace)
        made: Callable[..., Any] = namespace[name]
        return made


def literal(value: Any) -> str:
    """A plain value as source; raises SchemaError for anything that is not one."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(entry) for entry in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {literal(entry)}' for key, entry in value.items())}}}"
    raise SchemaError(f"a default cannot be a {type(value).__name__}")
