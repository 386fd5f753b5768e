"""Error finders: for one response, a compiled search through its decoded body for every error code that is not zero.

It reads no bytes: where there is a body, looking through all of it for fields named like error codes takes more
than ten times as long, and could not give the path of each.
"""

from __future__ import annotations

from collections.abc import Callable

from kwiresniff.codec.codegen import SourceCode
from kwiresniff.codec.field_layout import check_nesting
from kwiresniff.model import Body
from kwiresniff.schema.types import MessageVersion, WireField

#: ``[(path, code), ...] = find(body)``
ErrorFinder = Callable[[Body], "list[tuple[str, int]]"]

ERROR_CODE = "error_code"


def compile_error_finder(message: MessageVersion) -> ErrorFinder:
    """Make the search through a decoded body of this message.

    It gives the path (``topics[0].partitions[2].error_code``) and code of every non-zero error code. In a body that
    was decoded only in part it finds what is there. Raises SchemaError for a definition that nests too deep.
    """
    check_nesting(message)
    return _FinderSource(message).compile()


class _FinderSource(SourceCode):
    def __init__(self, message: MessageVersion) -> None:
        super().__init__({"__builtins__": {"enumerate": enumerate}, "MISSING": (KeyError, TypeError)})
        self.message = message

    def compile(self) -> ErrorFinder:
        with self.block("def find(body):"):
            self.line("found = []")
            with self.block("try:"):
                self.structure(self.message.fields, "body", "", [])
            # A body decoded in part ends somewhere, and nothing follows there.
            self.line("except MISSING: pass")
            self.line("return found")
        return self.function("find", f"errors {self.message.name} v{self.message.version}")

    def structure(self, fields: tuple[WireField, ...], holder: str, path: str, indexes: list[str]) -> None:
        """Search one structure; ``path`` has ``%d`` where the values of ``indexes`` go."""
        for field in fields:
            if holds_errors(field):
                inner = (f"{path}." if path else "") + field.name.replace("%", "%%")
                self.field(field, f"{holder}[{field.name!r}]", inner, indexes)

    def field(self, field: WireField, value: str, path: str, indexes: list[str]) -> None:
        name = self.fresh()
        if field.array:
            index = self.fresh("i")
            with self.block(f"for {index}, {name} in enumerate({value} or ()):"):
                self.entry(field, name, f"{path}[%d]", [*indexes, index])
        else:
            self.line(f"{name} = {value}")
            with self.block(f"if {name}:"):
                self.entry(field, name, path, indexes)

    def entry(self, field: WireField, name: str, path: str, indexes: list[str]) -> None:
        if field.type == "STRUCT":
            self.structure(field.fields, name, path, indexes)
            return
        where = f"{path!r} % ({', '.join(indexes)},)" if indexes else repr(path.replace("%%", "%"))
        self.line(f"if {name}: found.append(({where}, {name}))")


def holds_errors(field: WireField) -> bool:
    """Whether the field is an error code or has one inside."""
    return field.enum == ERROR_CODE or any(holds_errors(child) for child in field.fields)
