"""Waiting for Spark, and its errors as one line; it prints the stacks of two languages itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any

from kwiresniff.errors import KwiresniffError

#: Seconds between two looks at what is done.
_POLL_SECONDS = 0.5
#: An error of this package at the end of a stack that Spark reports.
_OURS = re.compile(r"^kwiresniff\.[\w.]+Error: (.+)$", re.MULTILINE)
#: The first line of a stack of Python's, and the last one, with or without a module before the name of the error.
_STACK = "Traceback (most recent call last):"
_PYTHON = re.compile(r"^((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b(?:: .+)?)$", re.MULTILINE)
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]*)"')
#: The text before the error of a call from Python to Java.
_CALL = "An error occurred while calling "
#: The text before the cause of a Java error, and the class of an error before its message.
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


def wait_for(work: Callable[[], Any], look: Callable[[], None], stop: Callable[[], Any]) -> None:
    """Waits for ``work`` of Spark, and has a ``look`` from time to time and in the end. When something else ends the
    waiting, ``stop`` is to end the work. What it raises is raised as by ``spark_errors``.

    It has a thread of its own: Spark answers Ctrl-C from the main one, which must not be waiting for it then.
    """
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(work)
        try:
            while not wait([result], _POLL_SECONDS).done:
                look()
        except BaseException:
            with suppress(Exception):
                stop()
            raise
        finally:
            wait([result])
            look()
        with spark_errors():
            result.result()


@contextmanager
def spark_errors(whose: str = "Spark") -> Iterator[None]:
    """Raises a KwiresniffError of one line for whatever Spark raises, and says ``whose`` it is. Errors of this package
    pass unchanged, and those that Spark tells of its workers as they were there."""
    try:
        yield
    except KwiresniffError:
        raise
    except Exception as error:
        what = first_line(error)
        raise KwiresniffError(what if _OURS.search(str(error)) else f"{whose}: {what}") from error
