"""Errors of Spark as one line; Spark itself prints the stacks of two languages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from kwiresniff.errors import KwiresniffError

#: An error of ours at the end of a stack that Spark tells.
_OURS = re.compile(r"^kwiresniff\.[\w.]+Error: (.+)$", re.MULTILINE)
#: The first line of a stack of Python's, and the last one, with or without a module before the name of the error.
_STACK = "Traceback (most recent call last):"
_PYTHON = re.compile(r"^((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b(?:: .+)?)$", re.MULTILINE)
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]*)"')
#: What stands before the error of a call from Python to Java.
_CALL = "An error occurred while calling "
#: What Java puts before what was wrong first, and the class of an error before its message.
_CAUSE = "Caused by: "
_JAVA_NAME = re.compile(r"^(?:Caused by)?:? ?(?:[\w$]+\.)+[\w$]+: (?=\S)")
#: A message of Spark may list every column there is.
MAX_MESSAGE_CHARS = 300


def first_line(error: BaseException) -> str:
    """Spark's error in one line, with what to do where that is known."""
    text = str(error)
    if found := _NO_PYTHON.search(text):
        return (
            f"its workers have no Python at {found[1]}; set PYSPARK_PYTHON to one that is there and here, with "
            "kwiresniff installed"
        )
    if found := _NO_MODULE.search(text):
        python = os.environ.get("PYSPARK_PYTHON", "Python")
        return f"{python} has no module {found[1]!r} where its workers run; there, too: pip install 'kwiresniff[spark]'"
    if found := _OURS.search(text):
        return found[1][:MAX_MESSAGE_CHARS]
    if found := _PYTHON.search(text.partition(_STACK)[2]):
        return found[1][:MAX_MESSAGE_CHARS]
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_CALL)]
    causes = [line for line in lines if line.startswith(_CAUSE)]
    last = (causes or lines or [type(error).__name__])[-1 if causes else 0]
    return _JAVA_NAME.sub("", last)[:MAX_MESSAGE_CHARS]


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raises a KwiresniffError of one line for whatever Spark raises. Errors of this package pass unchanged, and those
    that Spark tells of its workers as they were there."""
    try:
        yield
    except KwiresniffError:
        raise
    except Exception as error:
        whose = "" if _OURS.search(str(error)) else "Spark: "
        raise KwiresniffError(whose + first_line(error)) from error
