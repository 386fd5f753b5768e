"""What Spark says went wrong, as one line; the texts are what Spark 4.3 raised, shortened in the middle of stacks."""

from __future__ import annotations

import pytest

from kwiresniff.errors import ExportError, KwiresniffError
from kwiresniff.pipeline.failures import MAX_MESSAGE_CHARS, first_line, spark_errors
from kwiresniff.pipeline.spark_session import start_session

TEXTS = {
    "a package that workers do not have": (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent call last):\n"
        '  File "pyspark.zip/pyspark/serializers.py", line 483, in loads\n'
        "    return cloudpickle.loads(obj, encoding=encoding)\n"
        "ModuleNotFoundError: No module named 'kwiresniff' SQLSTATE: 38000",
        "/p has no module 'kwiresniff' where its workers run; there, too: pip install 'kwiresniff[spark]'",
    ),
    "a Python that workers do not have": (
        'An error occurred while calling o66.load.\n: java.io.IOException: Cannot run program "/opt/python": error=2\n'
        "\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)\n",
        "its workers have no Python at /opt/python; set PYSPARK_PYTHON to one that is there and here, with kwiresniff "
        "installed",
    ),
    "an error of ours": (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "x.py", line 1, in read\nOSError: [Errno 28] No space left on device\n\n'
        "The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
        '  File "x.py", line 2, in read\nkwiresniff.errors.ExportError: /out: No space left on device; make room\n',
        "/out: No space left on device; make room",
    ),
    "an error of Python's": (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "pyarrow/error.pxi", line 89, in pyarrow.lib.check_status\n'
        "UnicodeEncodeError: 'utf-8' codec can't encode character '\\udcff' in position 19: surrogates not allowed\n",
        "UnicodeEncodeError: 'utf-8' codec can't encode character '\\udcff' in position 19: surrogates not allowed",
    ),
    "an error that a row brought": (
        "An error occurred while calling o131.getResult.\n: org.apache.spark.SparkException: Exception thrown in "
        "awaitResult: \n\tat org.apache.x(y)\n"
        "Caused by: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] boom SQLSTATE: P0001\n\tat x\n",
        "[USER_RAISED_EXCEPTION] boom SQLSTATE: P0001",
    ),
    "a mistake in SQL": (
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nSELEC",
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. SQLSTATE: 42601 (line 1, pos 0)",
    ),
    "nothing": ("", "ValueError"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_line_says_what_was_wrong_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where two languages were at the time."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/p")
    text, line = TEXTS[name]
    assert first_line(ValueError(text)) == line
    assert len(first_line(ValueError("x" * 1000))) == MAX_MESSAGE_CHARS


def test_errors_of_ours_pass_as_they_are() -> None:
    """Everything else is Spark's."""
    with pytest.raises(ExportError, match=r"^no room$"), spark_errors():
        raise ExportError("no room")
    with pytest.raises(KwiresniffError, match=r"^Spark: KeyError$"), spark_errors():
        raise KeyError


def test_errors_of_ours_on_a_worker_are_none_of_spark() -> None:
    """A full disk, where a task has found it."""
    text, line = TEXTS["an error of ours"]
    with pytest.raises(KwiresniffError) as error, spark_errors():
        raise ValueError(text)
    assert str(error.value) == line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "line"),
    [
        ("foo", "no Spark master; one is local[*], spark://HOST:7077, yarn or k8s://URL"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "no Spark master answers there ([Errno 111] Connection refused)"),
        ("spark://127.0.0.1:x", "no Spark master answers there (invalid literal for int() with base 10: 'x')"),
    ],
)
def test_a_master_that_is_none_is_told_before_spark_starts(master: str, line: str) -> None:
    """Spark's launcher would print a stack of its own, or try for a minute."""
    pytest.importorskip("pyspark")
    with pytest.raises(KwiresniffError) as error:
        start_session(master)
    assert str(error.value) == f"{master}: {line}"
