"""What Python sources import, found without parsing the rest of them."""

from __future__ import annotations

import ast
import re

#: A line that imports; names in parentheses may go on over several lines.
_STATEMENT = re.compile(
    r"^[ \t]*(from[ \t]+[\w.]+[ \t]+import[ \t]+(?:\([^)]*\)|[^\n]+)|import[ \t][^\n]+)", re.MULTILINE
)


def import_statements(source: str) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a source, inside functions and for type checking included; each begins a line, as ruff demands.

    Lines of a text that read like imports count as well. Where some only begin like one, all of the source is parsed.
    """
    try:
        tree = ast.parse("\n".join(_STATEMENT.findall(source)))
    except SyntaxError:
        tree = ast.parse(source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
