"""What a person can hold in mind: functions of sixty lines and classes of fifteen fields, unless they say why not."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "kwiresniff"
FILES = sorted(PACKAGE.rglob("*.py"))

MAX_FUNCTION_LINES = 60
MAX_FIELDS = 15
#: A hot loop that is longer says so, and why, in its docstring.
EXCUSE = "One long function"
#: Plain records, which have as many fields as there is to tell. Named tuples and data classes are seen to be some.
RECORDS = {"Connection", "Exchange", "Step", "TreeMarks"}


def fields(cls: ast.ClassDef) -> set[str]:
    """The fields that a class itself has: those in its list of them, or else those that it gives ``self``."""
    for node in cls.body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        value = getattr(node, "value", None)
        if names & {"STATE", "__slots__"} and isinstance(value, ast.Tuple):
            return set(ast.literal_eval(value))
    return {
        node.attr
        for node in ast.walk(cls)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def is_record(cls: ast.ClassDef) -> bool:
    """Whether it is told, or seen, to be a plain record."""
    said = [*cls.bases, *(one.func if isinstance(one, ast.Call) else one for one in cls.decorator_list)]
    names = {one.id for one in said if isinstance(one, ast.Name)}
    return cls.name in RECORDS or bool(names & {"NamedTuple", "TypedDict", "dataclass"})


def too_large(source: str) -> list[str]:
    """The functions and classes of a source that are."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES and EXCUSE not in (ast.get_docstring(node) or ""):
                found.append(f"{node.name} has {lines} lines")
        elif isinstance(node, ast.ClassDef) and not is_record(node) and len(fields(node)) > MAX_FIELDS:
            found.append(f"{node.name} has {len(fields(node))} fields")
    return found


def test_functions_and_classes_are_small_or_say_why_not() -> None:
    """Generated code is elsewhere."""
    assert len(FILES) > 400
    found = {str(path.relative_to(PACKAGE)): too_large(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_what_is_too_large_is_found() -> None:
    """By lines, by a list of fields, and by what is given to self."""
    long = "def f():\n" + "    pass\n" * 60
    excused = f'def g():\n    """{EXCUSE}: hot."""\n' + "    pass\n" * 60
    listed = f"class A:\n    __slots__ = {tuple(f'f{number}' for number in range(16))}\n"
    given = "class B:\n    def __init__(self):\n" + "".join(f"        self.f{number} = 0\n" for number in range(16))
    assert too_large(long + excused + listed + given) == ["f has 61 lines", "A has 16 fields", "B has 16 fields"]
